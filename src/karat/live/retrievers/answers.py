"""What a retriever calls the fields of a question and of an answer."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from karat.checks import did_you_mean
from karat.data.formats.json_lines import converted
from karat.data.formats.native_run import Call, RunLine, call_rows, timing_rows
from karat.data.results import (
    MISSING,
    RESULT_FIELDS,
    check_no_lone_surrogates,
    error_without_line,
    find_result_list,
    normalize_returned,
    parse_results,
    to_float,
    value_at_path,
)
from karat.errors import InputError, printable
from karat.live.protocol import SEARCH_SETTINGS, Answer, AttemptError, Search

REQUEST = ("query", *SEARCH_SETTINGS)
RESPONSE = ("results", *RESULT_FIELDS, "latency_ms", "calls")
_LONGEST_PATH = 1000
_MOST_KEYS = 100


@dataclass(frozen=True)
class Fields:
    """Their name for each of ours, as a path of keys with dots between them.

    A number is a place in a list. A setting with an empty path is not sent.
    """

    paths: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, given: Iterable[str] | Mapping[str, str]) -> Fields:
        """Read `OURS=THEIRS`, any number of times, or a mapping of the same."""
        if isinstance(given, Mapping):
            given = [f"{ours}={theirs}" for ours, theirs in given.items()]
        paths: dict[str, str] = {}
        for word in given:
            ours, equals, theirs = (part.strip() for part in word.partition("="))
            if not equals:
                raise _error(word, "there is no = in it", "write OURS=THEIRS, as in id=_id")
            if ours not in REQUEST and ours not in RESPONSE:
                known = [*REQUEST, *RESPONSE]
                meant = did_you_mean(ours, known) or ""
                hint = f"{meant} the fields are {', '.join(known)}".lstrip()
                raise _error(word, f"karat has no field {ours!r}", hint)
            if ours in paths:
                raise _error(word, f"{ours} is named twice", "name each field once")
            if not theirs and ours not in SEARCH_SETTINGS:
                raise _error(word, f"{ours} is needed", f"write {ours}=THEIRS")
            if theirs and not all(theirs.split(".")):
                raise _error(
                    word, "there is nothing between two dots", "write the keys with a dot between"
                )
            if len(theirs) > _LONGEST_PATH or theirs.count(".") >= _MOST_KEYS:
                raise _error(
                    f"{ours}=…",
                    f"the path has more than {_LONGEST_PATH:,} characters or {_MOST_KEYS} keys",
                    "write the keys that lead to the field, with dots between them",
                )
            paths[ours] = theirs
        return cls(paths)

    def as_dict(self) -> dict[str, str]:
        """Return what was named, for the header of a run."""
        return dict(self.paths)

    def sends(self, name: str) -> bool:
        """Tell whether a setting is sent; one with an empty path is not."""
        return self.paths.get(name, name) != ""

    def request(self, values: Mapping[str, Any], body: Mapping[str, Any]) -> dict[str, Any]:
        """Put values where their server looks for them, into a copy of what is always sent."""
        built = copy.deepcopy(dict(body))
        for name, value in values.items():
            if self.sends(name):
                _put(built, self.paths.get(name, name), value, name)
        return built

    def picked(self, held: Any, name: str) -> Any:
        """Return what goes by one of our names, None where it is not there."""
        found = value_at_path(held, self.paths.get(name, name))
        return None if found is MISSING else found


def _put(built: dict[str, Any], path: str, value: Any, name: str) -> None:
    """Set the value at a path, making the mappings that lead to it."""
    *way, last = path.split(".")
    at: Any = built
    for key in way:
        if isinstance(at, list) and key.isdecimal() and int(key) < len(at):
            at = at[int(key)]
        elif isinstance(at, dict):
            at = at.setdefault(key, {})
        else:
            raise _blocked(name, path, key)
    if isinstance(at, dict):
        at[last] = value
    elif isinstance(at, list) and last.isdecimal() and int(last) < len(at):
        at[int(last)] = value
    else:
        raise _blocked(name, path, last)


def _blocked(name: str, path: str, key: str) -> InputError:
    return _error(
        f"{name}={path}",
        f"{key!r} cannot stand there: what is before it is a value, or a list without that place",
        "let no path lead through the value of another, and write a list into the body first",
    )


def _error(word: str, problem: str, hint: str) -> InputError:
    return InputError(problem, field=f"field {word}", hint=hint)


def answer_of(returned: Any, fields: Fields) -> Answer:
    """Read a list of results, or what holds one, whatever library it comes from."""
    try:
        return _answer(returned, fields)
    except InputError as error:
        raise AttemptError("BadAnswer", printable(error.in_one_line), again=False) from error


def _answer(returned: Any, fields: Fields) -> Answer:
    held = normalize_returned(returned)
    _refuse_failure(held)
    listed = find_result_list(held, fields.paths)
    results = parse_results(listed, fields.paths)
    latency, calls = ({}, []) if listed is held else _beside(held, fields)
    answer = Answer(results, latency, calls)
    check_no_lone_surrogates(_texts(answer))
    return answer


def _beside(held: Any, fields: Fields) -> tuple[dict[str, float], list[Call]]:
    """Read what stands beside the results: how long stages took, and calls of models."""
    latency = _latency(fields.picked(held, "latency_ms"))
    line = _checked({"latency_ms": latency, "calls": fields.picked(held, "calls")})
    timing_rows("", line.latency_ms, 0, error_without_line)
    call_rows("", line.calls, 0, error_without_line)
    trace = value_at_path(held, "trace")
    if trace is MISSING or trace is None:
        return line.latency_ms or {}, line.calls or []
    from karat.live import otel

    traced = otel.usage(trace)  # what was told outright goes before it
    calls = traced.calls if line.calls is None else line.calls
    return traced.latency_ms | (line.latency_ms or {}), calls


def _checked(record: dict[str, Any]) -> RunLine:
    return converted(0, {"query_id": "-", **record}, RunLine, error_without_line)


def _refuse_failure(held: Any) -> None:
    failure = held.get("error") if isinstance(held, Mapping) else None
    if failure and to_float(failure) is None:  # a number is the score of an item called so
        kind, message = "Error", failure
        if isinstance(failure, Mapping):
            kind, message = failure.get("type") or kind, failure.get("message") or ""
        raise AttemptError(printable(str(kind)), printable(str(message)))


def _latency(given: Any) -> Any:
    """Return the time of each stage; a number alone is the whole time."""
    if (number := to_float(given)) is not None:
        return {"total": number}
    if isinstance(given, Mapping):
        numbers = {stage: to_float(value) for stage, value in given.items()}
        return {s: given[s] if n is None else n for s, n in numbers.items()}
    return given


def _texts(answer: Answer) -> list[Any]:
    texts: list[Any] = list(answer.latency_ms)
    for result in answer.results:
        texts += (result.id, result.doc_id, result.text)
    for call in answer.calls:
        texts += (call.stage, call.model)
    return texts


_LONGEST = 200


def handed(search: Search, fields: Fields) -> dict[str, Any]:
    """Return the settings that are sent: top_k, and what else somebody set."""
    return {
        name: getattr(search, name)
        for name in SEARCH_SETTINGS
        if (name == "top_k" or name in search.given)
        and getattr(search, name) is not None
        and fields.sends(name)
    }


def said(text: str) -> str:
    """Return the first line of what was said, cut where it is long."""
    first = printable(text.strip().partition("\n")[0].rstrip())
    return first if len(first) <= _LONGEST else f"{first[:_LONGEST]}…"
