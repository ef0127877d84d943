"""What a retriever returned, in karat's words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from typing import Any

import msgspec

from karat.data.frames import is_table, to_frame
from karat.data.lists import text_id
from karat.data.native_lines import Id, converted
from karat.data.native_run import Result, RunLine, check_result
from karat.data.native_usage import Call, call_rows, timing_rows
from karat.errors import InputError, printable
from karat.live.adapters.fields import ABSENT, RESULT, Fields, at_path
from karat.live.adapters.items import as_mapping, keys_of, number_of, row_of
from karat.live.exchange import Answer, AttemptError

# Where the list stands in what others return: Haystack, LlamaIndex, Qdrant, Pinecone,
# Elasticsearch, Meilisearch.
_HOLDERS = ("results", "documents", "source_nodes", "points", "matches", "hits.hits", "hits")
_SHAPES = "return a list of ids, of (id, score) pairs, of dicts, or of objects"


class _Native(Result, omit_defaults=True, forbid_unknown_fields=True):
    """A result in our own names and no others, as most are; it is read at once."""


def answer_of(returned: Any, fields: Fields) -> Answer:
    """Read a list of results, or what holds one, whatever library it comes from."""
    try:
        return _answer(returned, fields)
    except InputError as error:
        raise AttemptError("BadAnswer", printable(error.in_one_line), again=False) from error


def _answer(returned: Any, fields: Fields) -> Answer:
    held = returned if _has_rows(returned) else as_mapping(returned)
    _refuse_what_holds_no_list(held)
    listed = _listed(held, fields)
    results = _at_once(listed, fields)
    if results is None:
        read = _checked({"results": _rows(listed, fields)}).results or ()
        results = [result for result in read if isinstance(result, Result)]
    for at, result in enumerate(results):
        check_result(result, 0, at, _problem)
    latency, calls = ({}, []) if listed is held else _beside(held, fields)
    answer = Answer(results, latency, calls)
    _refuse_half_characters(answer)
    return answer


def _beside(held: Any, fields: Fields) -> tuple[dict[str, float], list[Call]]:
    """Read what stands beside the results: how long stages took, and calls of models."""
    latency = _latency(fields.picked(held, "latency_ms"))
    line = _checked({"latency_ms": latency, "calls": fields.picked(held, "calls")})
    timing_rows("", line.latency_ms, 0, _problem)
    call_rows("", line.calls, 0, _problem)
    trace = at_path(held, "trace")
    if trace is ABSENT or trace is None:
        return line.latency_ms or {}, line.calls or []
    from karat.live import otel

    traced = otel.usage(trace)  # what was told outright goes before it
    calls = traced.calls if line.calls is None else line.calls
    return traced.latency_ms | (line.latency_ms or {}), calls


def _checked(record: dict[str, Any]) -> RunLine:
    return converted(0, {"query_id": "-", **record}, RunLine, _problem)


def _at_once(listed: Any, fields: Fields) -> list[Result] | None:
    """Read a list of ids, or of results in our own names; None where it is anything else."""
    if not fields.paths.keys().isdisjoint(RESULT) or type(listed) is not list:
        return None
    if not {str, int, dict}.issuperset(map(type, listed)):
        return None
    try:
        read = msgspec.convert(listed, list[_Native | Id])
    except (msgspec.ValidationError, UnicodeEncodeError):
        return None
    return [_plain(result) for result in read]


def _plain(read: _Native | str | int) -> Result:
    if not isinstance(read, Result):
        return Result(str(read))
    result = Result(*msgspec.structs.astuple(read))
    result.id = None if read.id is None else str(read.id)
    result.doc_id = None if read.doc_id is None else str(read.doc_id)
    result.text = _plain_text(read.text)
    return result


def _refuse_what_holds_no_list(held: Any) -> None:
    if held is None:
        raise InputError("nothing was returned", hint="did the function forget its return?")
    if isinstance(held, (str, bytes)):
        raise InputError(f"a {type(held).__name__} was returned, and no list", hint=_SHAPES)
    if isinstance(held, Set):
        raise InputError("a set has no order", hint="return a list, the best first")
    failure = held.get("error") if isinstance(held, Mapping) else None
    if failure and number_of(failure) is None:  # a number is the score of an item called so
        kind, message = "Error", failure
        if isinstance(failure, Mapping):
            kind, message = failure.get("type") or kind, failure.get("message") or ""
        raise AttemptError(printable(str(kind)), printable(str(message)))


def _listed(held: Any, fields: Fields) -> Any:
    """Return what holds the results: what came back, or a part of it."""
    if path := fields.paths.get("results"):
        found = at_path(held, path)
        if found is ABSENT or found is None:
            raise InputError(
                f"there is nothing at {path}; it has {keys_of(held)}",
                hint="say where the list stands: --field results=…",
            )
        return found
    if isinstance(held, (list, tuple)) or _has_rows(held):
        return held
    for path in _HOLDERS:
        found = at_path(held, path)
        if found is not ABSENT and not callable(found) and number_of(found) is None:
            return [] if found is None else found
    return held


def _has_rows(value: Any) -> bool:
    """Tell a table from a single column, which is a list of ids."""
    return is_table(value) and type(value).__name__ != "Series"


def _rows(listed: Any, fields: Fields) -> list[dict[str, Any]]:
    if _has_rows(listed):
        return _of_table(listed, fields)
    if isinstance(listed, Mapping):
        return _of_scores(listed)
    if isinstance(listed, (str, bytes)) or not isinstance(listed, Iterable):
        raise InputError(
            f"what was returned is no list of results; it has {keys_of(listed)}",
            hint=f"{_SHAPES}, or say where the list stands: --field results=…",
        )
    rows = [_row(at, item, fields) for at, item in enumerate(listed)]
    _refuse_what_is_nowhere(rows, fields)
    return rows


def _row(at: int, item: Any, fields: Fields) -> dict[str, Any]:
    try:
        row = row_of(item, fields)
    except InputError as error:
        place = f"results[{at}]" + (f".{error.field}" if error.field else "")
        raise InputError(error.problem, field=place, hint=error.hint) from error
    if all(row.get(name) is None for name in ("id", "doc_id", "start", "text")):
        raise InputError(
            f"it has neither id, nor place, nor text; it has {keys_of(item)}",
            field=f"results[{at}]",
            hint="say where the id stands: --field id=…",
        )
    return {name: _plain_text(value) for name, value in row.items()}


def _plain_text(value: Any) -> Any:
    """Return text of another class, such as NumPy's, as what a file can hold."""
    return str.__str__(value) if isinstance(value, str) else value


def _of_table(table: Any, fields: Fields) -> list[dict[str, Any]]:
    """Read rows in the order of every table: by rank, else by score, else as they stand."""
    frame = to_frame(table)
    if "rank" in frame.columns:
        frame = frame.sort("rank", maintain_order=True)
    rows = [_row(at, item, fields) for at, item in enumerate(frame.iter_rows(named=True))]
    _refuse_what_is_nowhere(rows, fields)
    if "rank" not in frame.columns and all(row.get("score") is not None for row in rows):
        rows.sort(key=_by_score, reverse=True)
    return rows


def _of_scores(scores: Mapping[Any, Any]) -> list[dict[str, Any]]:
    """Rank `{id: score}` as everywhere: by score, ties by id, both descending."""
    if {"id", "score"} <= scores.keys():
        raise InputError("this is one result, and no list", hint="return a list, also of one")
    numbers = {key: number_of(value) for key, value in scores.items()}
    if None in numbers.values() or "query_id" in numbers:  # an echoed id may be a number too
        raise InputError(
            f"there is no list of results in it; it has {keys_of(scores)}",
            hint='return a list, or {"results": […]}, or say where it stands: --field results=…',
        )
    rows = [
        {"id": _plain_text(text_id(key, "id")), "score": score} for key, score in numbers.items()
    ]
    return sorted(rows, key=_by_score, reverse=True)


def _by_score(row: dict[str, Any]) -> tuple[float, bytes]:
    return row["score"], row.get("id", "").encode("utf-8", "surrogatepass")


def _refuse_what_is_nowhere(rows: list[dict[str, Any]], fields: Fields) -> None:
    """Refuse a path that none of the results has, which is more likely misspelt than empty."""
    for name in RESULT:
        if rows and name in fields.paths and not any(name in row for row in rows):
            path = fields.paths[name]
            raise InputError(
                f"none of the results has anything at {path}",
                field=name,
                hint=f"say where it stands: --field {name}=…",
            )


def _latency(given: Any) -> Any:
    """Return the time of each stage; a number alone is the whole time."""
    if (number := number_of(given)) is not None:
        return {"total": number}
    if isinstance(given, Mapping):
        numbers = {stage: number_of(value) for stage, value in given.items()}
        return {s: given[s] if n is None else n for s, n in numbers.items()}
    return given


def _refuse_half_characters(answer: Answer) -> None:
    """Refuse text that no file can hold, before the run's own file finds out."""
    texts: list[Any] = list(answer.latency_ms)
    for result in answer.results:
        texts += (result.id, result.doc_id, result.text)
    for call in answer.calls:
        texts += (call.stage, call.model)
    try:
        "".join(filter(None, texts)).encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"{error.object[error.start]!a} is half a character (a lone surrogate)",
            hint="decode the text as UTF-8",
        ) from error


def _problem(
    problem: str, *, line: int, field: str | None = None, hint: str | None = None
) -> InputError:
    """Make the error for an answer, which stands on no line yet."""
    del line
    return InputError(problem, field=field, hint=hint)
