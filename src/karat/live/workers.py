"""Workers, each of which runs one attempt at a time, and the attempts they run.

What is in this file:

- `Worker`, with `TaskWorker` for async retrievers and `ThreadWorker` for all others. Both can
  abandon an attempt that does not end, and then run the next one.
- `Attempt` calls the retriever once for one query, measures the time and checks the answer.
- `AttemptResult` is the outcome: an answer or an error, with stages and model calls.
"""

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

from karat.data.formats.native_run import Call, ResultRow, call_rows, timing_rows
from karat.errors import InputError
from karat.live.instrumentation import Recorder, Unattributed
from karat.live.protocol import Answer, AttemptError, Query, Retriever, Search, TimedResponse

CANCEL_TIMEOUT = 1.0
"""Seconds that a cancelled task may take to end."""


class Worker(ABC):
    """Runs one attempt at a time."""

    abandoned = 0
    """Number of attempts that kept running after they were abandoned."""

    @abstractmethod
    def start(self, attempt: Attempt) -> asyncio.Future[AttemptResult]:
        """Start an attempt."""

    @abstractmethod
    async def abandon(self) -> None:
        """Stop waiting for the current attempt, and be ready for the next one."""

    @abstractmethod
    async def close(self) -> None:
        """End the current attempt, as far as possible."""


class TaskWorker(Worker):
    """Runs each attempt in a task of the event loop, and thereby in its own context."""

    def __init__(self) -> None:
        self._task: asyncio.Task[AttemptResult] | None = None

    def start(self, attempt: Attempt) -> asyncio.Future[AttemptResult]:
        """Start an attempt."""
        self._task = asyncio.create_task(attempt.run_async())
        return self._task

    async def abandon(self) -> None:
        """Cancel the attempt; if it ignores that, leave it running."""
        assert self._task is not None
        self._task.cancel()
        await asyncio.wait({self._task}, timeout=CANCEL_TIMEOUT)
        self.abandoned += not self._task.done()

    async def close(self) -> None:
        """Cancel the current attempt."""
        if self._task is not None and not self._task.done():
            await self.abandon()


class ThreadWorker(Worker):
    """Runs attempts in a thread, which is replaced if an attempt does not return.

    These are daemon threads, not those of an executor: Python waits for the threads of an executor
    when it exits, even if the retriever hangs.
    """

    def __init__(self) -> None:
        self._thread: _WorkerThread | None = None

    def start(self, attempt: Attempt) -> asyncio.Future[AttemptResult]:
        """Start an attempt."""
        if self._thread is None:
            self._thread = _WorkerThread()
            self._thread.start()
        future: asyncio.Future[AttemptResult] = asyncio.get_running_loop().create_future()
        self._thread.inbox.put((attempt, future))
        return future

    async def abandon(self) -> None:
        """Leave the thread running; the next attempt gets a new one."""
        await self.close()
        self.abandoned += 1

    async def close(self) -> None:
        """Let the thread end as soon as it is idle."""
        if self._thread is not None:
            self._thread.inbox.put(None)
            self._thread = None


class _WorkerThread(threading.Thread):
    def __init__(self) -> None:
        super().__init__(name="karat-worker", daemon=True)
        self.inbox: SimpleQueue[tuple[Attempt, asyncio.Future[AttemptResult]] | None] = (
            SimpleQueue()
        )
        self._context = copy_context()

    def run(self) -> None:
        while (job := self.inbox.get()) is not None:
            attempt, future = job
            result = self._context.copy().run(attempt.run)
            try:
                future.get_loop().call_soon_threadsafe(future.set_result, result)
            except RuntimeError:  # the event loop is already closed
                return


@dataclass(frozen=True)
class AttemptResult:
    """The outcome of an attempt: an answer or an error, with stages and model calls."""

    answer: Answer | None
    error: BaseException | None
    ms: float
    stages: Mapping[str, float] = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)


class Attempt:
    """One call of a retriever for one query, in the thread or the task of a worker."""

    def __init__(
        self,
        retriever: Retriever,
        query: Query,
        search: Search,
        unattributed: Unattributed,
    ) -> None:
        self._retriever = retriever
        self._query = query
        self._search = search
        self._recorder = Recorder(unattributed)
        self._start_ns = perf_counter_ns()
        self._end_ns: int | None = None

    @property
    def seconds(self) -> float:
        """Seconds since the retriever was called."""
        return (perf_counter_ns() - self._start_ns) / 1e9

    def run(self) -> AttemptResult:
        """Call the retriever in this thread; any exception becomes part of the result."""
        self._recorder.enter()
        try:
            self._start_ns = perf_counter_ns()
            try:
                response = self._retriever.retrieve(self._query)
            finally:
                self._end_ns = perf_counter_ns()
            return self._result(self._parse(response), None)
        except BaseException as error:
            return self._result(None, error)

    async def run_async(self) -> AttemptResult:
        """Call the retriever in this task; any exception becomes part of the result."""
        self._recorder.enter()
        try:
            self._start_ns = perf_counter_ns()
            try:
                response = await self._retriever.retrieve(self._query)
            finally:
                self._end_ns = perf_counter_ns()
            return self._result(self._parse(response), None)
        except GeneratorExit:  # the task was destroyed, so nobody waits for a result
            raise
        except BaseException as error:
            return self._result(None, error)

    def timed_out(self, timeout: float) -> AttemptResult:
        """Return the result of an attempt that took too long."""
        error = AttemptError("Timeout", f"no answer within {timeout:g} s")
        return self._result(None, error)

    def _result(self, answer: Answer | None, error: BaseException | None) -> AttemptResult:
        end_ns = self._end_ns or perf_counter_ns()
        recorder = self._recorder
        recorder.close()
        stages = {name: ns / 1e6 for name, ns in recorder.spent.items()}
        return AttemptResult(
            answer, error, (end_ns - self._start_ns) / 1e6, stages, list(recorder.calls)
        )

    def _parse(self, response: Any) -> Answer:
        if isinstance(response, TimedResponse):
            self._start_ns, self._end_ns = response.start_ns, response.end_ns
        try:
            answer = self._retriever.parse(response)
            return _check_answer(answer, self._search, self._retriever.accepts)
        except InputError as error:
            raise AttemptError("BadAnswer", error.in_one_line, retryable=False) from error
        except RecursionError as error:
            raise AttemptError(
                "BadAnswer", "the answer is nested too deeply", retryable=False
            ) from error


def _check_answer(answer: Answer, search: Search, accepts: frozenset[str]) -> Answer:
    """Apply `score_threshold` and `top_k`; raise an error for values that a run cannot store."""
    results, threshold = answer.results, search.score_threshold
    if threshold is not None and "score_threshold" not in accepts:
        results = _above_threshold(results, threshold)
    results = results[: search.top_k]
    timing_rows("", dict(answer.latency_ms), 0, _error_without_line)
    call_rows("", answer.calls, 0, _error_without_line)
    try:
        msgspec.json.encode([results, answer.latency_ms, answer.calls, answer.candidates])
    except UnicodeEncodeError as error:
        raise InputError(
            "the answer contains a lone surrogate (half of a character)",
            hint="decode the texts with the encoding in which they were written",
        ) from error
    return replace(answer, results=results)


def _above_threshold(results: list[ResultRow], threshold: float) -> list[ResultRow]:
    above = []
    for position, result in enumerate(results):
        if result.score is None:
            raise InputError(
                "score_threshold requires a score, but the result has none",
                field=f"results[{position}]",
                hint="return scores, or remove score_threshold",
            )
        if result.score >= threshold:
            above.append(result)
    return above


def _error_without_line(problem: str, *, field: str, hint: str, **_location: Any) -> InputError:
    return InputError(problem, field=field, hint=hint)
