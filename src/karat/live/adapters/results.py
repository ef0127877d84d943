"""What a retriever returned, in karat's words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from karat.data.native_lines import converted
from karat.data.native_run import RunLine
from karat.data.native_usage import Call, call_rows, timing_rows
from karat.data.results import (
    ABSENT,
    at_path,
    held_in,
    listed_in,
    number_of,
    refuse_half_characters,
    results_in,
    unplaced,
)
from karat.errors import InputError, printable
from karat.live.adapters.fields import Fields
from karat.live.exchange import Answer, AttemptError


def answer_of(returned: Any, fields: Fields) -> Answer:
    """Read a list of results, or what holds one, whatever library it comes from."""
    try:
        return _answer(returned, fields)
    except InputError as error:
        raise AttemptError("BadAnswer", printable(error.in_one_line), again=False) from error


def _answer(returned: Any, fields: Fields) -> Answer:
    held = held_in(returned)
    _refuse_failure(held)
    listed = listed_in(held, fields.paths)
    results = results_in(listed, fields.paths)
    latency, calls = ({}, []) if listed is held else _beside(held, fields)
    answer = Answer(results, latency, calls)
    refuse_half_characters(_texts(answer))
    return answer


def _beside(held: Any, fields: Fields) -> tuple[dict[str, float], list[Call]]:
    """Read what stands beside the results: how long stages took, and calls of models."""
    latency = _latency(fields.picked(held, "latency_ms"))
    line = _checked({"latency_ms": latency, "calls": fields.picked(held, "calls")})
    timing_rows("", line.latency_ms, 0, unplaced)
    call_rows("", line.calls, 0, unplaced)
    trace = at_path(held, "trace")
    if trace is ABSENT or trace is None:
        return line.latency_ms or {}, line.calls or []
    from karat.live import otel

    traced = otel.usage(trace)  # what was told outright goes before it
    calls = traced.calls if line.calls is None else line.calls
    return traced.latency_ms | (line.latency_ms or {}), calls


def _checked(record: dict[str, Any]) -> RunLine:
    return converted(0, {"query_id": "-", **record}, RunLine, unplaced)


def _refuse_failure(held: Any) -> None:
    failure = held.get("error") if isinstance(held, Mapping) else None
    if failure and number_of(failure) is None:  # a number is the score of an item called so
        kind, message = "Error", failure
        if isinstance(failure, Mapping):
            kind, message = failure.get("type") or kind, failure.get("message") or ""
        raise AttemptError(printable(str(kind)), printable(str(message)))


def _latency(given: Any) -> Any:
    """Return the time of each stage; a number alone is the whole time."""
    if (number := number_of(given)) is not None:
        return {"total": number}
    if isinstance(given, Mapping):
        numbers = {stage: number_of(value) for stage, value in given.items()}
        return {s: given[s] if n is None else n for s, n in numbers.items()}
    return given


def _texts(answer: Answer) -> list[Any]:
    texts: list[Any] = list(answer.latency_ms)
    for result in answer.results:
        texts += (result.id, result.doc_id, result.text)
    for call in answer.calls:
        texts += (call.stage, call.model)
    return texts
