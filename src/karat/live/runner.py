"""The runner: sends all queries to a retriever and turns the attempts into lines of a run.

What is in this file:

- `Runner` opens the retriever, runs the warmup and then all queries, and closes the retriever. It
  works inside an event loop, which `loop_thread` provides.
- `Progress` is the interface for objects that show the progress of a run.
- `RateLimiter` and `retry_delay` decide when an attempt may start.
- `build_line` and `to_failure` turn the results of attempts into what the run file stores.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import cycle, islice
from statistics import median
from typing import Protocol

from karat.data.formats.native_run import Call, Failure, ResultRow
from karat.errors import InputError, counted, printable
from karat.live.instrumentation import TOTAL, Unattributed
from karat.live.protocol import Answer, AttemptError, JournalLine, Query, Retriever, StopRunError
from karat.live.run_options import RunOptions
from karat.live.workers import Attempt, AttemptResult, TaskWorker, ThreadWorker, Worker

CLOSE_TIMEOUT = 5.0
"""Seconds that a retriever may take to close."""
FIRST_DELAY, MAX_DELAY, MAX_RETRY_AFTER = 0.5, 30.0, 60.0
"""In seconds: the longest delay after the first failure, the longest delay after any failure, and
the longest `retry_after` of a retriever that is respected."""
REPORTED = "reported"
"""The stage of a total that the retriever reports; `total` is the time that karat measures."""
MAX_MESSAGE_LENGTH = 500


class Progress(Protocol):
    """Receives the progress of a run, in the thread of the run's event loop."""

    def begun(self, total: int, done: int, failed: int) -> None:
        """Get the number of queries, and how many were finished and failed before this run."""

    def finished(self, line: JournalLine) -> None:
        """Get the line of a finished query, after it was stored."""

    def retried(self, query: Query, error: Failure) -> None:
        """Get the error of a failed attempt, before the next attempt."""


class StoppedError(Exception):
    """Wraps an exception that would break the event loop if it were raised inside it."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(str(error))
        self.error = error


class RepeatedFailureError(Exception):
    """Stops a run in which many queries in a row failed in the same way."""

    def __init__(self, failure: Failure, count: int) -> None:
        super().__init__(failure.message)
        self.failure = failure
        self.count = count


class Runner:
    """Runs queries with `jobs` workers, each of which takes the next query when it is free."""

    def __init__(
        self,
        retriever: Retriever,
        queries: Sequence[Query],
        options: RunOptions,
        done: Callable[[JournalLine], None],
        price: Callable[[Call], Call],
        watch: Progress | None,
    ) -> None:
        self._retriever = retriever
        self._queries = queries
        self._search = options.search()
        self._options = options
        self._done = done
        self._price = price
        self._watch = watch
        self.unattributed = Unattributed()
        self._close_failure: Failure | None = None
        self._last_failure: Failure | None = None
        self._failures_in_a_row = 0
        jobs = min(options.jobs, max(len(queries), options.warmup))
        worker_class = TaskWorker if retriever.is_async else ThreadWorker
        self._workers: list[Worker] = [worker_class() for _ in range(jobs)]

    async def run(self) -> None:
        """Run all queries. The retriever is closed in any case, even if opening it failed."""
        self._rate_limiter = RateLimiter(self._options.rate, asyncio.get_running_loop().time)
        try:
            await self._retriever.open(len(self._workers))
            warmup = islice(cycle(self._queries), self._options.warmup)
            await self._distribute(warmup, self._run_warmup_query)
            await self._distribute(self._queries, self._run_query)
        finally:
            await asyncio.gather(*(worker.close() for worker in self._workers))
            try:
                async with asyncio.timeout(CLOSE_TIMEOUT):
                    await self._retriever.close()
            except Exception as error:
                self._close_failure = to_failure(error, 1)

    def warnings(self) -> Iterator[str]:
        """Yield warnings about problems that affect the numbers of the run, after it has ended."""
        if abandoned := sum(worker.abandoned for worker in self._workers):
            yield (
                f"{counted(abandoned, 'attempt')} kept running in the background after the "
                "timeout; this can slow down other queries, so latencies may be too high"
            )
        if late := self.unattributed.late:
            yield (
                f"ignored {counted(late, 'entry')} that karat.stage or karat.record_call recorded "
                "after the query had finished or timed out"
            )
        if outside := self.unattributed.outside:
            yield (
                f"ignored {counted(outside, 'entry')} that karat.stage or karat.record_call "
                "recorded in threads that do not belong to a query; if your retriever "
                "starts these threads, wrap the function with karat.carry: "
                "executor.submit(karat.carry(search), query)"
            )
        if self._close_failure:
            kind, message = self._close_failure.type, self._close_failure.message
            yield f"closing the retriever failed: {': '.join(filter(None, [kind, message]))}"

    async def _distribute(
        self, queries: Iterable[Query], run: Callable[[Worker, Query], Awaitable[None]]
    ) -> None:
        """Let all workers take queries until none are left or an exception stops the run."""
        remaining = iter(queries)

        async def work(worker: Worker) -> None:
            for query in remaining:
                await run(worker, query)

        tasks = [asyncio.create_task(work(worker)) for worker in self._workers]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        finally:
            unfinished = [task for task in tasks if not task.done()]
            for task in unfinished:
                task.cancel()
            await asyncio.gather(*unfinished, return_exceptions=True)
        errors = [task.exception() for task in tasks if task not in unfinished]
        for error in errors:
            if error is not None:
                raise error

    async def _run_warmup_query(self, worker: Worker, query: Query) -> None:
        await self._attempt(worker, query)

    async def _run_query(self, worker: Worker, query: Query) -> None:
        repetitions: list[AttemptResult] = []
        max_attempts = 0
        for _ in range(self._options.repeat):
            result, attempts = await self._attempt_with_retries(worker, query)
            repetitions.append(result)
            max_attempts = max(max_attempts, attempts)
            if result.answer is None:
                break
        line = build_line(query, repetitions, max_attempts, self._price)
        self._done(line)
        if self._watch:
            self._watch.finished(line)
        self._stop_after_failures(line.error)

    def _stop_after_failures(self, failure: Failure | None) -> None:
        """Stop the run after too many failures of the same kind in a row.

        Queries count in the order in which they finish, not in the order in which they start.
        """
        last, self._last_failure = self._last_failure, failure
        if failure is None:
            return
        is_same = last is not None and last.type == failure.type
        self._failures_in_a_row = self._failures_in_a_row + 1 if is_same else 1
        if self._failures_in_a_row == self._options.max_failures_in_a_row:
            raise RepeatedFailureError(failure, self._failures_in_a_row)

    async def _attempt_with_retries(
        self, worker: Worker, query: Query
    ) -> tuple[AttemptResult, int]:
        """Return the result of the last attempt, and the number of attempts."""
        attempts = 0
        while True:
            result = await self._attempt(worker, query)
            attempts += 1
            error = result.error
            if error is None or attempts > self._options.retries or not _is_retryable(error):
                return result, attempts
            if self._watch:
                self._watch.retried(query, to_failure(error, attempts))
            await asyncio.sleep(retry_delay(attempts, getattr(error, "retry_after", None)))

    async def _attempt(self, worker: Worker, query: Query) -> AttemptResult:
        await self._rate_limiter.wait()
        attempt = Attempt(self._retriever, query, self._search, self.unattributed)
        future, timeout = worker.start(attempt), self._options.timeout
        await asyncio.wait((future,), timeout=timeout)
        # Other work in the event loop may have delayed the start: wait for the rest of the time.
        if timeout is not None and not future.done() and attempt.seconds < timeout:
            await asyncio.wait((future,), timeout=timeout - attempt.seconds)
        if timeout is not None and not future.done():
            await worker.abandon()
            return attempt.timed_out(timeout)
        result = future.result()
        if isinstance(result.error, StopRunError):
            raise result.error
        if not isinstance(result.error, (Exception, asyncio.CancelledError, type(None))):
            result.error.add_note(f"raised by {self._retriever.name}")
            raise StoppedError(result.error)
        return result


class RateLimiter:
    """Lets at most `rate` attempts start per second, evenly spaced and without a first burst."""

    def __init__(
        self,
        rate: float | None,
        clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._interval = 1 / rate if rate else 0.0
        self._next_start = 0.0
        self._clock = clock
        self._sleep = sleep

    async def wait(self) -> None:
        """Wait until the next attempt may start."""
        if not self._interval:
            return
        now = self._clock()
        start = max(self._next_start, now)
        self._next_start = start + self._interval
        if start > now:
            await self._sleep(start - now)


def retry_delay(failures: int, retry_after: float | None) -> float:
    """Return how many seconds to wait after a number of consecutive failures.

    The upper limit doubles with each failure, and the delay is drawn at random between 0 and that
    limit ("full jitter", Brooker 2015), so that queries that failed together are not retried
    together. If the retriever requires a longer delay (`retry_after`), it is respected.
    """
    longest = min(MAX_DELAY, FIRST_DELAY * 2.0 ** min(failures - 1, 10))
    delay = random.uniform(0, longest)  # noqa: S311 - not used for security
    return max(delay, min(retry_after or 0.0, MAX_RETRY_AFTER))


def build_line(
    query: Query,
    repetitions: Sequence[AttemptResult],
    attempts: int,
    price: Callable[[Call], Call],
) -> JournalLine:
    """Return the line of a query from the results of its repetitions.

    The first repetition provides the results and the model calls. The others only contribute to
    the median latency; if one of them failed or returned another list, the line is `varied`.
    """
    first = repetitions[0]
    calls = [*first.calls, *(first.answer.calls if first.answer else ())]
    line = JournalLine(
        query.query_id, results=[], calls=[price(call) for call in calls] or None, attempts=attempts
    )
    if first.answer is None:
        assert first.error is not None
        line.latency_ms = _latency(first)
        line.error = to_failure(first.error, attempts)
        return line
    line.results = list(first.answer.results)
    if first.answer.candidates is not None:
        line.candidates = list(first.answer.candidates)
    line.latency_ms = _medians([_latency(one) for one in repetitions if one.answer is not None])
    identities = _identities(first.answer)
    line.varied = any(
        one.answer is None or _identities(one.answer) != identities for one in repetitions[1:]
    )
    return line


def to_failure(error: BaseException, attempts: int) -> Failure:
    """Return an error as the run stores it: a short type, and a message of one line."""
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
    except Exception:  # the __str__ of the exception is broken
        message = ""
    if len(message) > MAX_MESSAGE_LENGTH:
        message = message[: MAX_MESSAGE_LENGTH - 1] + "…"
    return Failure(printable(kind), message, attempts)


def _is_retryable(error: BaseException) -> bool:
    if isinstance(error, AttemptError):
        return error.retryable
    return not isinstance(error, InputError)


def _latency(result: AttemptResult) -> dict[str, float]:
    """Return milliseconds by stage; a total that the retriever reports is renamed."""
    latency = {TOTAL: result.ms, **result.stages}
    reported: Mapping[str, float] = result.answer.latency_ms if result.answer else {}
    for stage, ms in reported.items():
        if stage != TOTAL:
            latency[stage] = ms
        elif REPORTED not in reported:
            latency[REPORTED] = ms
    return latency


def _medians(latencies: list[dict[str, float]]) -> dict[str, float]:
    """Return the median of each stage over the repetitions that have the stage."""
    if len(latencies) == 1:
        return latencies[0]
    stages = dict.fromkeys(stage for latency in latencies for stage in latency)
    return {
        stage: median(latency[stage] for latency in latencies if stage in latency)
        for stage in stages
    }


def _identities(answer: Answer) -> list[Hashable]:
    return [_identity(result) for result in answer.results]


def _identity(result: ResultRow) -> Hashable:
    if result.id is not None:
        return result.id
    if result.doc_id is not None:
        return (result.doc_id, result.start, result.end)
    return ("text", result.text)
