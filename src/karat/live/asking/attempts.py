"""One attempt at one question: asked, timed, read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from time import perf_counter_ns
from typing import Any

import msgspec

from karat.data.native_usage import Call, call_rows, timing_rows
from karat.errors import InputError
from karat.live.exchange import Answer, AttemptError, Question, Retriever, Search, Timed
from karat.live.marks import Recorder, Unattributed


@dataclass(frozen=True)
class Outcome:
    """What an attempt came to: an answer or an error, and what was marked on the way."""

    answer: Answer | None
    error: BaseException | None
    ms: float
    stages: Mapping[str, float] = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)


class Attempt:
    """Asks a retriever once, in the thread or the task that runs it."""

    def __init__(
        self,
        retriever: Retriever,
        question: Question,
        search: Search,
        unattributed: Unattributed,
    ) -> None:
        self._retriever = retriever
        self._question = question
        self._search = search
        self._recorder = Recorder(unattributed)
        self._began = perf_counter_ns()
        self._ended: int | None = None

    @property
    def seconds(self) -> float:
        """How long it is since the retriever was called."""
        return (perf_counter_ns() - self._began) / 1e9

    def run(self) -> Outcome:
        """Ask in this thread; whatever is raised is part of the outcome."""
        self._recorder.enter()
        try:
            self._began = perf_counter_ns()
            try:
                returned = self._retriever.ask(self._question)
            finally:
                self._ended = perf_counter_ns()
            return self._outcome(self._read(returned), None)
        except BaseException as error:
            return self._outcome(None, error)

    async def wait(self) -> Outcome:
        """Ask in this task; whatever is raised is part of the outcome."""
        self._recorder.enter()
        try:
            self._began = perf_counter_ns()
            try:
                returned = await self._retriever.ask(self._question)
            finally:
                self._ended = perf_counter_ns()
            return self._outcome(self._read(returned), None)
        except GeneratorExit:  # nobody waits for an outcome any more
            raise
        except BaseException as error:
            return self._outcome(None, error)

    def timed_out(self, timeout: float) -> Outcome:
        """Return the outcome of an attempt that took too long."""
        error = AttemptError("Timeout", f"no answer within {timeout:g} s")
        return self._outcome(None, error)

    def _outcome(self, answer: Answer | None, error: BaseException | None) -> Outcome:
        ended = self._ended or perf_counter_ns()
        recorder = self._recorder
        recorder.close()
        stages = {name: spent / 1e6 for name, spent in recorder.spent.items()}
        return Outcome(answer, error, (ended - self._began) / 1e6, stages, list(recorder.calls))

    def _read(self, returned: Any) -> Answer:
        if isinstance(returned, Timed):
            self._began, self._ended = returned.began, returned.ended
        try:
            return _usable(self._retriever.read(returned), self._search, self._retriever.takes)
        except InputError as error:
            raise AttemptError("BadAnswer", error.in_one_line, again=False) from error
        except RecursionError as error:
            raise AttemptError(
                "BadAnswer", "the answer is nested too deeply", again=False
            ) from error


def _usable(answer: Answer, search: Search, takes: frozenset[str]) -> Answer:
    """Cut the list as the search asks for, and refuse what no run may hold."""
    results, least = answer.results, search.score_threshold
    if least is not None and "score_threshold" not in takes:
        kept = []
        for at, result in enumerate(results):
            if result.score is None:
                raise InputError(
                    "there is no score, so that no score_threshold can be held against it",
                    field=f"results[{at}]",
                    hint="return scores, or leave score_threshold out",
                )
            if result.score >= least:
                kept.append(result)
        results = kept
    results = results[: search.top_k]
    timing_rows("", dict(answer.latency_ms), 0, _error)
    call_rows("", answer.calls, 0, _error)
    try:
        msgspec.json.encode([results, answer.latency_ms, answer.calls])
    except UnicodeEncodeError as error:
        raise InputError(
            "the answer holds half of a character (a lone surrogate)",
            hint="decode the texts as what they are encoded in",
        ) from error
    return replace(answer, results=results)


def _error(problem: str, *, field: str, hint: str, **_place: Any) -> InputError:
    return InputError(problem, field=field, hint=hint)
