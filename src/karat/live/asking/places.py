"""Where attempts run: each of the `jobs` places holds one at a time, in a task or in a thread."""

from __future__ import annotations

import asyncio
import threading
from abc import ABC, abstractmethod
from contextvars import copy_context
from queue import SimpleQueue

from karat.live.asking.attempts import Attempt, Outcome

ENDING = 1.0
"""Seconds that a task which was cancelled has for ending."""


class Place(ABC):
    """Runs one attempt at a time."""

    given_up = 0
    """How many attempts went on after they were given up."""

    @abstractmethod
    def begin(self, attempt: Attempt) -> asyncio.Future[Outcome]:
        """Begin an attempt."""

    @abstractmethod
    async def give_up(self) -> None:
        """Leave the attempt that is under way, and be ready for another."""

    @abstractmethod
    async def close(self) -> None:
        """End what can be ended."""


class TaskPlace(Place):
    """Runs attempts in the loop, each in a task and thereby a context of its own."""

    def __init__(self) -> None:
        self._task: asyncio.Task[Outcome] | None = None

    def begin(self, attempt: Attempt) -> asyncio.Future[Outcome]:
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


class ThreadPlace(Place):
    """Runs attempts in a thread, which is replaced when an attempt does not come back.

    The threads are daemons of our own: a pool would wait for a hanging retriever when Python ends.
    """

    def __init__(self) -> None:
        self._thread: _Thread | None = None

    def begin(self, attempt: Attempt) -> asyncio.Future[Outcome]:
        """Begin an attempt."""
        if self._thread is None:
            self._thread = _Thread()
            self._thread.start()
        future: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
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
        self.inbox: SimpleQueue[tuple[Attempt, asyncio.Future[Outcome]] | None] = SimpleQueue()
        self._context = copy_context()

    def run(self) -> None:
        while (job := self.inbox.get()) is not None:
            attempt, future = job
            outcome = self._context.copy().run(attempt.run)
            try:
                future.get_loop().call_soon_threadsafe(future.set_result, outcome)
            except RuntimeError:  # the loop has ended without us
                return
