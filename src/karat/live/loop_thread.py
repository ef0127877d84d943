"""Asking a retriever every question, several at a time.

One loop of asyncio in a thread of its own holds everything together. The thread that called only
waits for it, and so can always be interrupted, in a notebook as on the command line, whatever the
retriever hangs in.
"""

from __future__ import annotations

import asyncio
import threading
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from contextvars import copy_context

from karat.data.formats.native_run import Call
from karat.errors import KaratWarning
from karat.live.protocol import Line, Query, Retriever
from karat.live.run_options import RunOptions
from karat.live.runner import Progress, Runner, StoppedError

LOOKING_UP = 0.1
"""Seconds after which the thread that waits looks up; on Windows only then it sees Ctrl-C."""
ENDING = 2.0
"""Seconds that a run which is stopped has for ending, before it is left alone."""


def _as_it_is(call: Call) -> Call:
    return call


def run_all_queries(
    retriever: Retriever,
    questions: Sequence[Query],
    options: RunOptions,
    done: Callable[[Line], None],
    *,
    price: Callable[[Call], Call] = _as_it_is,
    watch: Progress | None = None,
) -> None:
    """Ask every question, and hand over the line of each as soon as it is finished.

    `done`, `price` and `watch` are called in one thread, which is not the one that called. What
    they raise, what opening the retriever raises, and a retriever that ends Python (SystemExit,
    KeyboardInterrupt) stop everything and are raised here. After that, or an interrupt, `done` is
    not called any more. RepeatedFailureError is raised after `options.max_failures_in_a_row`
    failures of the same kind in a row.

    A question that waits to be asked again keeps its place: `options.jobs` bounds all that is under
    way, so a retriever that is overloaded is asked less.
    """
    if not questions:
        return
    asking = _Asking(done)
    course = Runner(retriever, questions, options, asking.hand_over, price, watch)
    with course.unattributed.counting_outside():
        asking.complete(course)
    for remark in course.remarks():
        warnings.warn(KaratWarning(remark), stacklevel=2)


class _Asking:
    """The thread that asks, as seen by the one that waits for it."""

    def __init__(self, done: Callable[[Line], None]) -> None:
        self._done = done
        self._handing_over = threading.Lock()
        self._over = False
        self._stopping = False
        self._finished = threading.Event()
        self._error: BaseException | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None

    def complete(self, course: Runner) -> None:
        """Run the course in a thread, and wait for it."""
        thread = threading.Thread(
            target=copy_context().run, args=(self._run, course), name="karat-run", daemon=True
        )
        try:
            thread.start()
            while not self._finished.wait(LOOKING_UP):
                pass
            thread.join(ENDING)
        except BaseException:
            self._stop()
            self._finished.wait(ENDING)
            raise
        finally:
            with self._handing_over:
                self._over = True
        if isinstance(self._error, StoppedError):
            raise self._error.error
        if self._error is not None:
            raise self._error

    def hand_over(self, line: Line) -> None:
        """Hand over a line, unless nobody takes it any more."""
        with self._handing_over:
            if self._over:
                return
            self._over = True  # should this one fail, none follows
            self._done(line)
            self._over = False

    def _stop(self) -> None:
        self._stopping = True
        if self._loop is not None and self._task is not None:
            with suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(self._task.cancel)

    def _run(self, course: Runner) -> None:
        # What a loop raises while it cleans up after the end concerns nobody any more.
        with suppress(BaseException), asyncio.Runner() as runner:
            try:
                runner.run(self._followed(course))
            except BaseException as error:
                self._error = error
            finally:
                self._finished.set()

    async def _followed(self, course: Runner) -> None:
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        if not self._stopping:  # interrupted before there was a task to cancel
            await course.follow()
