"""From the outcomes of a question to the line of the run."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from statistics import median

from karat.data.native_run import Failure, Result
from karat.data.native_usage import Call
from karat.errors import InputError, printable
from karat.live.asking.attempts import Outcome
from karat.live.exchange import Answer, AttemptError, Line, Question
from karat.live.marks import TOTAL

REPORTED = "reported"
"""The stage under which a retriever's own total is kept; karat's is taken from outside."""
LONGEST_MESSAGE = 500


def line_of(
    question: Question,
    rounds: Sequence[Outcome],
    attempts: int,
    price: Callable[[Call], Call],
) -> Line:
    """Return the line of a question from how each round of asking it ended.

    The first round decides what was found; later ones, asked for the sake of the time, stand for
    themselves only in the median. One that failed or returned another list shows as `varied`.
    """
    first = rounds[0]
    calls = [price(call) for call in (*first.calls, *(first.answer.calls if first.answer else ()))]
    line = Line(question.query_id, results=[], calls=calls or None, attempts=attempts)
    if first.answer is None:
        assert first.error is not None
        line.latency_ms = _latency(first)
        line.error = failure_of(first.error, attempts)
        return line
    line.results = list(first.answer.results)
    line.latency_ms = _medians([_latency(one) for one in rounds if one.answer is not None])
    found = _found(first.answer)
    line.varied = any(one.answer is None or _found(one.answer) != found for one in rounds[1:])
    return line


def failure_of(error: BaseException, attempts: int) -> Failure:
    """Return an error as a run tells of it: a short name, and a message of one line."""
    if isinstance(error, AttemptError):
        kind = error.kind
    elif isinstance(error, TimeoutError):
        kind = "Timeout"
    elif isinstance(error, ConnectionError):
        kind = "ConnectionError"
    else:
        kind = type(error).__name__
    try:
        text = error.in_one_line if isinstance(error, InputError) else str(error)
        message = printable(" ".join(text.split()))
    except Exception:  # its own way to describe itself is broken
        message = ""
    if len(message) > LONGEST_MESSAGE:
        message = message[: LONGEST_MESSAGE - 1] + "…"
    return Failure(printable(kind), message, attempts)


def _latency(outcome: Outcome) -> dict[str, float]:
    spent = {TOTAL: outcome.ms, **outcome.stages}
    returned: Mapping[str, float] = outcome.answer.latency_ms if outcome.answer else {}
    for stage, ms in returned.items():
        if stage != TOTAL:
            spent[stage] = ms
        elif REPORTED not in returned:
            spent[REPORTED] = ms
    return spent


def _medians(rounds: list[dict[str, float]]) -> dict[str, float]:
    """Return the median of each stage over the rounds that went through it."""
    if len(rounds) == 1:
        return rounds[0]
    stages = dict.fromkeys(stage for spent in rounds for stage in spent)
    return {stage: median(spent[stage] for spent in rounds if stage in spent) for stage in stages}


def _found(answer: Answer) -> list[Hashable]:
    return [_identity(result) for result in answer.results]


def _identity(result: Result) -> Hashable:
    if result.id is not None:
        return result.id
    if result.doc_id is not None:
        return (result.doc_id, result.start, result.end)
    return ("text", result.text)
