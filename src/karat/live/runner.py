"""The course of a run within its loop: open, warm up, ask everything, close."""

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
from karat.live.protocol import Answer, AttemptError, Line, Query, Retriever
from karat.live.run_options import RunOptions
from karat.live.workers import Attempt, AttemptResult, TaskWorker, ThreadWorker, Worker

SHORTEST_PAUSE, LONGEST_PAUSE, LONGEST_WAIT = 0.5, 30.0, 60.0
"""Seconds: of the first pause and of any, and what a retriever may ask us to wait."""


class Spacing:
    """Lets attempts begin evenly spaced, at most so many a second, with no burst at the start."""

    def __init__(
        self,
        rate: float | None,
        clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._apart = 1 / rate if rate else 0.0
        self._next = 0.0
        self._clock = clock
        self._sleep = sleep

    async def turn(self) -> None:
        """Wait until the next attempt may begin."""
        if not self._apart:
            return
        now = self._clock()
        begins = max(self._next, now)
        self._next = begins + self._apart
        if begins > now:
            await self._sleep(begins - now)


def pause(failures: int, wait: float | None) -> float:
    """Return how many seconds to wait after so many failures in succession.

    Twice as long after each, and anything from 0 up to that by lot ("full jitter"), so that
    questions that failed together do not come back together. What the retriever asks us to wait
    is respected.
    """
    longest = min(LONGEST_PAUSE, SHORTEST_PAUSE * 2.0 ** min(failures - 1, 10))
    chosen = random.uniform(0, longest)  # noqa: S311 - no secret
    return max(chosen, min(wait or 0.0, LONGEST_WAIT))


REPORTED = "reported"
"""The stage under which a retriever's own total is kept; karat's is taken from outside."""
LONGEST_MESSAGE = 500


def line_of(
    question: Query,
    rounds: Sequence[AttemptResult],
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


def _latency(outcome: AttemptResult) -> dict[str, float]:
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


def _identity(result: ResultRow) -> Hashable:
    if result.id is not None:
        return result.id
    if result.doc_id is not None:
        return (result.doc_id, result.start, result.end)
    return ("text", result.text)


CLOSING = 5.0
"""Seconds that a retriever has for closing."""


class Progress(Protocol):
    """Somebody who looks on, from within the thread that asks."""

    def begun(self, total: int, done: int, failed: int) -> None:
        """See how many questions there are in all, and how many were finished before."""

    def finished(self, line: Line) -> None:
        """See a question finished, after its line was handed over."""

    def retried(self, question: Query, error: Failure) -> None:
        """See an attempt that failed, before the question is asked again."""


class StoppedError(Exception):
    """Carries what would break through the loop if it were raised there."""

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
    """Asks the questions in `jobs` places, each of which takes the next one when it is free."""

    def __init__(
        self,
        retriever: Retriever,
        questions: Sequence[Query],
        options: RunOptions,
        done: Callable[[Line], None],
        price: Callable[[Call], Call],
        watch: Progress | None,
    ) -> None:
        self._retriever = retriever
        self._questions = questions
        self._search = options.search()
        self._options = options
        self._done = done
        self._price = price
        self._watch = watch
        self.unattributed = Unattributed()
        self._closing: Failure | None = None
        self._last_failure: Failure | None = None
        self._failures_in_a_row = 0
        jobs = min(options.jobs, max(len(questions), options.warmup))
        kind = TaskWorker if retriever.is_async else ThreadWorker
        self._places: list[Worker] = [kind() for _ in range(jobs)]

    async def follow(self) -> None:
        """Ask everything; whatever happens, the retriever is closed if opening it was begun."""
        self._spacing = Spacing(self._options.rate, asyncio.get_running_loop().time)
        try:
            await self._retriever.open(len(self._places))
            await self._share(islice(cycle(self._questions), self._options.warmup), self._warm)
            await self._share(self._questions, self._answer)
        finally:
            await asyncio.gather(*(place.close() for place in self._places))
            try:
                async with asyncio.timeout(CLOSING):
                    await self._retriever.close()
            except Exception as error:
                self._closing = failure_of(error, 1)

    def remarks(self) -> Iterator[str]:
        """Yield what a person should know before trusting the figures."""
        if given_up := sum(place.given_up for place in self._places):
            yield (
                f"{counted(given_up, 'attempt')} went on after the timeout, beside the "
                f"{len(self._places)} at a time that are counted: times may be longer for it"
            )
        if late := self.unattributed.late:
            yield (
                f"not added to the run: {counted(late, 'record')} of karat.stage or "
                "karat.record_call, made after the query had finished or timed out"
            )
        if outside := self.unattributed.outside:
            yield (
                f"not added to the run: {counted(outside, 'record')} of karat.stage or "
                "karat.record_call, made in threads that belong to no query; if your retriever "
                "starts these threads, wrap the function with karat.carry: "
                "executor.submit(karat.carry(search), query)"
            )
        if self._closing:
            yield f"closing the retriever failed: {self._closing.type} {self._closing.message}"

    async def _share(
        self, questions: Iterable[Query], ask: Callable[[Worker, Query], Awaitable[None]]
    ) -> None:
        """Let every place take questions until there are no more, or something stops it all."""
        waiting = iter(questions)

        async def work(place: Worker) -> None:
            for question in waiting:
                await ask(place, question)

        workers = [asyncio.create_task(work(place)) for place in self._places]
        try:
            await asyncio.wait(workers, return_when=asyncio.FIRST_EXCEPTION)
        finally:
            unfinished = [worker for worker in workers if not worker.done()]
            for worker in unfinished:
                worker.cancel()
            await asyncio.gather(*unfinished, return_exceptions=True)
        errors = [worker.exception() for worker in workers if worker not in unfinished]
        for error in errors:
            if error is not None:
                raise error

    async def _warm(self, place: Worker, question: Query) -> None:
        await self._attempt(place, question)

    async def _answer(self, place: Worker, question: Query) -> None:
        rounds: list[AttemptResult] = []
        most = 0
        for _ in range(self._options.repeat):
            outcome, attempts = await self._round(place, question)
            rounds.append(outcome)
            most = max(most, attempts)
            if outcome.answer is None:
                break
        line = line_of(question, rounds, most, self._price)
        self._done(line)
        if self._watch:
            self._watch.finished(line)
        self._stop_after_failures(line.error)

    def _stop_after_failures(self, failure: Failure | None) -> None:
        """Stop if this was one failure of the same kind in a row too many.

        The queries count in the order in which they finish, whatever the order they began in.
        """
        last, self._last_failure = self._last_failure, failure
        if failure is None:
            return
        is_same = last is not None and last.type == failure.type
        self._failures_in_a_row = self._failures_in_a_row + 1 if is_same else 1
        if self._failures_in_a_row == self._options.max_failures_in_a_row:
            raise RepeatedFailureError(failure, self._failures_in_a_row)

    async def _round(self, place: Worker, question: Query) -> tuple[AttemptResult, int]:
        """Ask until there is an answer, or enough attempts were made."""
        attempts = 0
        while True:
            outcome = await self._attempt(place, question)
            attempts += 1
            error = outcome.error
            if error is None or attempts > self._options.retries or not _may_help(error):
                return outcome, attempts
            if self._watch:
                self._watch.retried(question, failure_of(error, attempts))
            await asyncio.sleep(pause(attempts, getattr(error, "wait", None)))

    async def _attempt(self, place: Worker, question: Query) -> AttemptResult:
        await self._spacing.turn()
        attempt = Attempt(self._retriever, question, self._search, self.unattributed)
        future, timeout = place.begin(attempt), self._options.timeout
        await asyncio.wait((future,), timeout=timeout)
        # What others did in this loop meanwhile may have kept it from being asked at once.
        if timeout is not None and not future.done() and attempt.seconds < timeout:
            await asyncio.wait((future,), timeout=timeout - attempt.seconds)
        if timeout is not None and not future.done():
            await place.give_up()
            return attempt.timed_out(timeout)
        outcome = future.result()
        if not isinstance(outcome.error, (Exception, asyncio.CancelledError, type(None))):
            outcome.error.add_note(f"{self._retriever.name} ended it")
            raise StoppedError(outcome.error)
        return outcome


def _may_help(error: BaseException) -> bool:
    """Tell whether asking again may help."""
    if isinstance(error, AttemptError):
        return error.again
    return not isinstance(error, InputError)
