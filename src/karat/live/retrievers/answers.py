"""Field names of requests and answers, and how an answer of any kind of retriever is parsed.

What is in this file:

- `Fields` maps karat's field names to those of a retriever (`--field id=_id`), and builds requests.
- `parse_answer` converts a list of results, or an object that contains one, into an `Answer`.
- `settings_to_send` and `first_line` are helpers of the HTTP and command retrievers.
"""

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
    parse_candidates,
    parse_results,
    to_float,
    value_at_path,
)
from karat.errors import InputError, printable
from karat.live.protocol import SEARCH_SETTINGS, Answer, AttemptError, Search

REQUEST = ("query", *SEARCH_SETTINGS)
RESPONSE = ("results", *RESULT_FIELDS, "latency_ms", "calls", "candidates")
_MAX_PATH_LENGTH = 1000
_MAX_PATH_KEYS = 100
_MAX_LINE_LENGTH = 200


@dataclass(frozen=True)
class Fields:
    """The retriever's name for each of karat's fields, as keys with dots between them.

    A number is an index of a list. A search setting with an empty path is not sent.
    """

    paths: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, mapping: Iterable[str] | Mapping[str, str]) -> Fields:
        """Parse strings `OURS=THEIRS`, or a mapping from our names to theirs."""
        if isinstance(mapping, Mapping):
            mapping = [f"{ours}={theirs}" for ours, theirs in mapping.items()]
        paths: dict[str, str] = {}
        for pair in mapping:
            ours, equals, theirs = (part.strip() for part in pair.partition("="))
            if not equals:
                raise _field_error(pair, '"=" is missing', "write OURS=THEIRS, as in id=_id")
            if ours in paths:
                raise _field_error(pair, f"{ours} is mapped twice", "map each field once")
            _check_field(pair, ours, theirs)
            paths[ours] = theirs
        return cls(paths)

    def as_dict(self) -> dict[str, str]:
        """Return the mapping, for the header of a run."""
        return dict(self.paths)

    def is_sent(self, name: str) -> bool:
        """Return whether a setting is sent; one with an empty path is not."""
        return self.paths.get(name, name) != ""

    def request(self, values: Mapping[str, Any], body: Mapping[str, Any]) -> dict[str, Any]:
        """Return a copy of the body, with the values at the paths where the server expects them."""
        request = copy.deepcopy(dict(body))
        for name, value in values.items():
            if self.is_sent(name):
                _set_at_path(request, self.paths.get(name, name), value, name)
        return request

    def get(self, response: Any, name: str) -> Any:
        """Return the value of one of karat's fields, or None if it is missing."""
        value = value_at_path(response, self.paths.get(name, name))
        return None if value is MISSING else value


def _check_field(pair: str, ours: str, theirs: str) -> None:
    if ours not in REQUEST and ours not in RESPONSE:
        names = [*REQUEST, *RESPONSE]
        suggestion = did_you_mean(ours, names) or ""
        hint = f"{suggestion} the fields are {', '.join(names)}".lstrip()
        raise _field_error(pair, f"unknown field {ours!r}", hint)
    if not theirs and ours not in SEARCH_SETTINGS:
        raise _field_error(
            pair,
            f"the name after {ours}= is missing",
            f"write {ours}=NAME, with the name that the retriever uses",
        )
    if theirs and not all(theirs.split(".")):
        raise _field_error(pair, "the path has an empty key", "write one dot between two keys")
    if len(theirs) > _MAX_PATH_LENGTH or theirs.count(".") >= _MAX_PATH_KEYS:
        raise _field_error(
            f"{ours}=…",
            f"the path has more than {_MAX_PATH_LENGTH:,} characters or {_MAX_PATH_KEYS} keys",
            "write the keys that lead to the field, with dots between them",
        )


def _set_at_path(request: dict[str, Any], path: str, value: Any, name: str) -> None:
    """Set the value at a path, and create the objects that lead to it."""
    *parents, last = path.split(".")
    target: Any = request
    for depth, key in enumerate(parents):
        if isinstance(target, list) and key.isdecimal() and int(key) < len(target):
            target = target[int(key)]
        elif isinstance(target, dict):
            target = target.setdefault(key, {})
        else:
            raise _blocked_path(name, path, depth)
    if isinstance(target, dict):
        target[last] = value
    elif isinstance(target, list) and last.isdecimal() and int(last) < len(target):
        target[int(last)] = value
    else:
        raise _blocked_path(name, path, len(parents))


def _blocked_path(name: str, path: str, depth: int) -> InputError:
    keys = path.split(".")
    key, parent = keys[depth], ".".join(keys[:depth])
    expected = "is not an object"
    hint = f"choose another path, or make {parent!r} an object in --body (body=)"
    if key.isdecimal():
        expected = f"is neither an object nor a list with an element at index {key}"
        hint = f"choose another path, or make {parent!r} a long enough list in --body (body=)"
    return _field_error(
        f"{name}={path}", f"cannot set {key!r}: the value at {parent!r} {expected}", hint
    )


def _field_error(pair: str, problem: str, hint: str) -> InputError:
    return InputError(problem, field=f"field {pair}", hint=hint)


def parse_answer(response: Any, fields: Fields) -> Answer:
    """Convert a list of results, or an object that contains one, from any library."""
    try:
        return _parse_answer(response, fields)
    except InputError as error:
        raise AttemptError("BadAnswer", printable(error.in_one_line), retryable=False) from error


def _parse_answer(response: Any, fields: Fields) -> Answer:
    plain = normalize_returned(response)
    _raise_returned_error(plain)
    result_list = find_result_list(plain, fields.paths)
    results = parse_results(result_list, fields.paths)
    latency: dict[str, float] = {}
    calls: list[Call] = []
    if result_list is not plain:
        latency, calls = _parse_usage(plain, fields)
    answer = Answer(results, latency, calls, parse_candidates(plain, fields.paths))
    check_no_lone_surrogates(_texts(answer))
    return answer


def _parse_usage(response: Any, fields: Fields) -> tuple[dict[str, float], list[Call]]:
    """Return the latencies and model calls that come with the results.

    `latency_ms` and `calls` take precedence over a `trace`.
    """
    latency_ms = _parse_latency(fields.get(response, "latency_ms"))
    record = {"query_id": "-", "latency_ms": latency_ms, "calls": fields.get(response, "calls")}
    line = converted(0, record, RunLine, error_without_line)
    timing_rows("", line.latency_ms, 0, error_without_line)
    call_rows("", line.calls, 0, error_without_line)
    trace = value_at_path(response, "trace")
    if trace is MISSING or trace is None:
        return line.latency_ms or {}, line.calls or []
    from karat.live import otel

    usage = otel.usage(trace)
    calls = usage.calls if line.calls is None else line.calls
    return usage.latency_ms | (line.latency_ms or {}), calls


def _raise_returned_error(response: Any) -> None:
    """Raise the error that a response contains.

    A number is not an error, but the score of an item with the id "error".
    """
    failure = response.get("error") if isinstance(response, Mapping) else None
    if failure and to_float(failure) is None:
        kind, message = "Error", failure
        if isinstance(failure, Mapping):
            kind, message = failure.get("type") or kind, failure.get("message") or ""
        raise AttemptError(printable(str(kind)), printable(str(message)))


def _parse_latency(latency: Any) -> Any:
    """Return the time of each stage; a single number is the total."""
    if (number := to_float(latency)) is not None:
        return {"total": number}
    if not isinstance(latency, Mapping):
        return latency
    numbers: dict[Any, Any] = {}
    for stage, value in latency.items():
        number = to_float(value)
        numbers[stage] = value if number is None else number
    return numbers


def _texts(answer: Answer) -> list[Any]:
    texts: list[Any] = list(answer.latency_ms)
    for result in answer.results:
        texts += (result.id, result.doc_id, result.text)
    for call in answer.calls:
        texts += (call.stage, call.model)
    return texts


def settings_to_send(search: Search, fields: Fields) -> dict[str, Any]:
    """Return the settings for a server or a program: top_k, and what the user has set."""
    return {
        name: getattr(search, name)
        for name in SEARCH_SETTINGS
        if (name == "top_k" or name in search.explicit)
        and getattr(search, name) is not None
        and fields.is_sent(name)
    }


def first_line(text: str) -> str:
    """Return the first line of a text, shortened if it is long."""
    line = printable(text.strip().partition("\n")[0].rstrip())
    return line if len(line) <= _MAX_LINE_LENGTH else f"{line[:_MAX_LINE_LENGTH]}…"
