"""Run a `Runner` in an event loop in its own thread.

The calling thread only waits, so it can always be interrupted with Ctrl-C, in a notebook (which
has a running event loop already) as well as on the command line, even if the retriever hangs.

`run_all_queries` is the entry point; `_LoopThread` starts, stops and awaits the thread.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from contextvars import copy_context

from karat.data.formats.native_run import Call
from karat.errors import warn
from karat.live.protocol import JournalLine, Query, Retriever
from karat.live.run_options import RunOptions
from karat.live.runner import Progress, Runner, StoppedError

POLL_SECONDS = 0.1
"""How often the waiting thread wakes up; on Windows, Ctrl-C is only handled then."""
STOP_TIMEOUT = 2.0
"""Seconds that a stopped run may take to end before it is abandoned."""


def _unchanged(call: Call) -> Call:
    return call


def run_all_queries(
    retriever: Retriever,
    queries: Sequence[Query],
    options: RunOptions,
    done: Callable[[JournalLine], None],
    *,
    price: Callable[[Call], Call] = _unchanged,
    watch: Progress | None = None,
) -> None:
    """Run all queries, and call `done` with the line of each query as soon as it is finished.

    `done`, `price` and `watch` are called in the thread of the event loop, not in the calling
    thread. These stop the run and are raised here: any exception of `done`, `price`, `watch` or
    `Retriever.open`; StopRunError, SystemExit and KeyboardInterrupt in the retriever; and
    RepeatedFailureError after `options.max_failures_in_a_row` failures of the same kind in a row.
    After that, or after an interrupt, `done` is not called any more.

    A query that waits for its next attempt occupies its worker. So `options.jobs` limits all
    queries in progress, and an overloaded retriever gets fewer requests.
    """
    if not queries:
        return
    thread = _LoopThread(done)
    runner = Runner(retriever, queries, options, thread.deliver, price, watch)
    with runner.unattributed.counting_outside():
        thread.complete(runner)
    for message in runner.warnings():
        warn(message, stacklevel=2)


class _LoopThread:
    """The thread of the event loop, as seen by the thread that waits for it."""

    def __init__(self, done: Callable[[JournalLine], None]) -> None:
        self._done = done
        self._delivery_lock = threading.Lock()
        self._is_over = False
        self._is_stopping = False
        self._finished = threading.Event()
        self._error: BaseException | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None

    def complete(self, runner: Runner) -> None:
        """Run the runner in a thread, and wait until it has finished."""
        thread = threading.Thread(
            target=copy_context().run, args=(self._run, runner), name="karat-run", daemon=True
        )
        try:
            thread.start()
            while not self._finished.wait(POLL_SECONDS):
                pass
            thread.join(STOP_TIMEOUT)
        except BaseException:
            self._stop()
            self._finished.wait(STOP_TIMEOUT)
            raise
        finally:
            with self._delivery_lock:
                self._is_over = True
        if isinstance(self._error, StoppedError):
            raise self._error.error
        if self._error is not None:
            raise self._error

    def deliver(self, line: JournalLine) -> None:
        """Pass a line to `done`, unless the run is over."""
        with self._delivery_lock:
            if self._is_over:
                return
            self._is_over = True  # if `done` raises, no other line may follow
            self._done(line)
            self._is_over = False

    def _stop(self) -> None:
        self._is_stopping = True
        if self._loop is not None and self._task is not None:
            with suppress(RuntimeError):  # the event loop is already closed
                self._loop.call_soon_threadsafe(self._task.cancel)

    def _run(self, runner: Runner) -> None:
        # Exceptions during the cleanup of the event loop are ignored: the run is already over.
        with suppress(BaseException), asyncio.Runner() as loop_runner:
            try:
                loop_runner.run(self._run_in_loop(runner))
            except BaseException as error:
                self._error = error
            finally:
                self._finished.set()

    async def _run_in_loop(self, runner: Runner) -> None:
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        if not self._is_stopping:  # the interrupt may come before there is a task to cancel
            await runner.run()
