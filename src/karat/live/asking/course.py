"""The course of a run within its loop: open, warm up, ask everything, close."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from itertools import cycle, islice
from typing import Protocol

from karat.data.native_run import Failure
from karat.data.native_usage import Call
from karat.errors import InputError, counted
from karat.live.asking.attempts import Attempt, Outcome
from karat.live.asking.lines import failure_of, line_of
from karat.live.asking.pacing import Spacing, pause
from karat.live.asking.places import Place, TaskPlace, ThreadPlace
from karat.live.exchange import AttemptError, Line, Question, Retriever
from karat.live.marks import Unattributed
from karat.live.options import RunOptions

CLOSING = 5.0
"""Seconds that a retriever has for closing."""


class Watch(Protocol):
    """Somebody who looks on, from within the thread that asks."""

    def begun(self, total: int, done: int, failed: int) -> None:
        """See how many questions there are in all, and how many were finished before."""

    def finished(self, line: Line) -> None:
        """See a question finished, after its line was handed over."""

    def retried(self, question: Question, error: Failure) -> None:
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


class Course:
    """Asks the questions in `jobs` places, each of which takes the next one when it is free."""

    def __init__(
        self,
        retriever: Retriever,
        questions: Sequence[Question],
        options: RunOptions,
        done: Callable[[Line], None],
        price: Callable[[Call], Call],
        watch: Watch | None,
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
        kind = TaskPlace if retriever.is_async else ThreadPlace
        self._places: list[Place] = [kind() for _ in range(jobs)]

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
        self, questions: Iterable[Question], ask: Callable[[Place, Question], Awaitable[None]]
    ) -> None:
        """Let every place take questions until there are no more, or something stops it all."""
        waiting = iter(questions)

        async def work(place: Place) -> None:
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

    async def _warm(self, place: Place, question: Question) -> None:
        await self._attempt(place, question)

    async def _answer(self, place: Place, question: Question) -> None:
        rounds: list[Outcome] = []
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

    async def _round(self, place: Place, question: Question) -> tuple[Outcome, int]:
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

    async def _attempt(self, place: Place, question: Question) -> Outcome:
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
