"""One attempt at one question: asked, timed, read."""

from __future__ import annotations

import asyncio
import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from queue import SimpleQueue
from time import perf_counter_ns
from typing import Any

import msgspec

from karat.data.formats.native_run import Call, call_rows, timing_rows
from karat.errors import InputError
from karat.live.instrumentation import Recorder, Unattributed
from karat.live.protocol import Answer, AttemptError, Query, Retriever, Search, Timed


@dataclass(frozen=True)
class AttemptResult:
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
        question: Query,
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

    def run(self) -> AttemptResult:
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

    async def wait(self) -> AttemptResult:
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

    def timed_out(self, timeout: float) -> AttemptResult:
        """Return the outcome of an attempt that took too long."""
        error = AttemptError("Timeout", f"no answer within {timeout:g} s")
        return self._outcome(None, error)

    def _outcome(self, answer: Answer | None, error: BaseException | None) -> AttemptResult:
        ended = self._ended or perf_counter_ns()
        recorder = self._recorder
        recorder.close()
        stages = {name: spent / 1e6 for name, spent in recorder.spent.items()}
        return AttemptResult(
            answer, error, (ended - self._began) / 1e6, stages, list(recorder.calls)
        )

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


ENDING = 1.0
"""Seconds that a task which was cancelled has for ending."""


class Worker(ABC):
    """Runs one attempt at a time."""

    given_up = 0
    """How many attempts went on after they were given up."""

    @abstractmethod
    def begin(self, attempt: Attempt) -> asyncio.Future[AttemptResult]:
        """Begin an attempt."""

    @abstractmethod
    async def give_up(self) -> None:
        """Leave the attempt that is under way, and be ready for another."""

    @abstractmethod
    async def close(self) -> None:
        """End what can be ended."""


class TaskWorker(Worker):
    """Runs attempts in the loop, each in a task and thereby a context of its own."""

    def __init__(self) -> None:
        self._task: asyncio.Task[AttemptResult] | None = None

    def begin(self, attempt: Attempt) -> asyncio.Future[AttemptResult]:
        """Begin an attempt."""
        self._task = asyncio.create_task(attempt.wait())
        return self._task

    async def give_up(self) -> None:
        """Cancel the attempt; one that does not heed that is left alone."""
        assert self._task is not None
        self._task.cancel()
        await asyncio.wait({self._task}, timeout=ENDING)
        self.given_up += not self._task.done()

    async def close(self) -> None:
        """Cancel what is under way."""
        if self._task is not None and not self._task.done():
            await self.give_up()


class ThreadWorker(Worker):
    """Runs attempts in a thread, which is replaced when an attempt does not come back.

    The threads are daemons of our own: a pool would wait for a hanging retriever when Python ends.
    """

    def __init__(self) -> None:
        self._thread: _Thread | None = None

    def begin(self, attempt: Attempt) -> asyncio.Future[AttemptResult]:
        """Begin an attempt."""
        if self._thread is None:
            self._thread = _Thread()
            self._thread.start()
        future: asyncio.Future[AttemptResult] = asyncio.get_running_loop().create_future()
        self._thread.inbox.put((attempt, future))
        return future

    async def give_up(self) -> None:
        """Let the thread end whenever it will; the next attempt gets another."""
        await self.close()
        self.given_up += 1

    async def close(self) -> None:
        """Let the thread end once it is idle."""
        if self._thread is not None:
            self._thread.inbox.put(None)
            self._thread = None


class _Thread(threading.Thread):
    def __init__(self) -> None:
        super().__init__(name="karat-asking", daemon=True)
        self.inbox: SimpleQueue[tuple[Attempt, asyncio.Future[AttemptResult]] | None] = (
            SimpleQueue()
        )
        self._context = copy_context()

    def run(self) -> None:
        while (job := self.inbox.get()) is not None:
            attempt, future = job
            outcome = self._context.copy().run(attempt.run)
            try:
                future.get_loop().call_soon_threadsafe(future.set_result, outcome)
            except RuntimeError:  # the loop has ended without us
                return
