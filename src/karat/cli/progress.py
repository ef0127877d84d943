"""Progress on standard error.

A run shows a bar in a terminal, otherwise a line every ten seconds. Other long steps, such as
matching evidence, show a bar in a terminal only.
"""

from __future__ import annotations

import os
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from threading import Event, RLock, Thread
from typing import TYPE_CHECKING, Any, TextIO

from karat.errors import counted, printable
from karat.steps import watched

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from karat.data.formats.native_run import Failure
    from karat.live.protocol import JournalLine, Query

SECONDS_BETWEEN_LINES = 10.0
SECONDS_BEFORE_BAR = 2.0
"""A step that is shorter shows no bar."""
SECONDS_BETWEEN_CHECKS = 0.25


class Quiet:
    """Counts the progress of a run without showing it; base class of the others."""

    def __init__(self) -> None:
        self.total = self.done = self.failed = self.retries = 0
        self._before = 0
        self._began = time.monotonic()
        self._kinds: set[str] = set()

    def begun(self, total: int, done: int, failed: int) -> None:
        """Start with the number of queries, and how many of them were done or failed before."""
        self.total, self.done, self.failed, self._before = total, done, failed, done
        self._began = time.monotonic()

    def finished(self, line: JournalLine) -> None:
        """Count a query that was answered or failed after all attempts."""
        self.done += 1
        if line.error is not None:
            self.failed += 1
            self._show_first(str(line.query_id), line.error)

    def retried(self, question: Query, error: Failure) -> None:
        """Count an attempt that failed and is repeated."""
        self.retries += 1
        self._show_first(question.query_id, error)

    def _show_first(self, query: str, error: Failure) -> None:
        """Show the first error of each type at once, so that a wrong URL is noticed early."""
        if error.type not in self._kinds:
            self._kinds.add(error.type)
            self.show(": ".join(filter(None, [printable(query), error.type, error.message])))

    def show(self, message: str) -> None:
        """Show a message."""

    def began(self, activity: str) -> None:
        """Show what is done after the last query."""

    @property
    def rate(self) -> float:
        """Queries per second, without those that were done before."""
        seconds = time.monotonic() - self._began
        return (self.done - self._before) / seconds if seconds > 0 else 0.0

    def summary(self) -> str:
        """Return the progress in words."""
        words = [f"{self.done:,} of {counted(self.total, 'query')}", f"{self.rate:,.1f}/s"]
        if self.failed:
            words.append(f"{self.failed:,} failed")
        if self.retries:
            words.append(counted(self.retries, "retry"))
        if self.rate and self.done < self.total:
            from karat.format import duration

            words.append(f"{duration((self.total - self.done) / self.rate)} left")
        return ", ".join(words)

    def __enter__(self) -> Quiet:
        return self

    def __exit__(self, *_: object) -> None:
        pass


class Lines(Quiet):
    """Prints a line every ten seconds and at the end."""

    def __init__(self) -> None:
        super().__init__()
        self._printed = time.monotonic()

    def begun(self, total: int, done: int, failed: int) -> None:
        """Print how many queries were done before, if any."""
        super().begun(total, done, failed)
        if done:
            print(f"{done:,} of {counted(total, 'query')} were answered before", file=sys.stderr)

    def finished(self, line: JournalLine) -> None:
        """Print the progress if the last line is ten seconds old."""
        super().finished(line)
        if self.done == self.total or self._is_due():
            print(self.summary(), file=sys.stderr, flush=True)

    def show(self, message: str) -> None:
        """Print a message."""
        print(message, file=sys.stderr, flush=True)

    def _is_due(self) -> bool:
        now = time.monotonic()
        if now - self._printed < SECONDS_BETWEEN_LINES:
            return False
        self._printed = now
        return True


def _bars(*, is_kept: bool) -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

    return Progress(
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.description}", markup=False),
        console=Console(stderr=True),
        transient=not is_kept,
    )


@dataclass(eq=False)
class _Step:
    label: str
    total: int
    began: float
    done: int = 0
    bars: Progress | None = None
    """The group with the bar of this step, as soon as there is one."""
    task: Any = None

    def show(self) -> None:
        """Draw the bar, or move it."""
        assert self.bars is not None
        is_new = self.task is None
        if is_new:
            self.task = self.bars.add_task("", total=self.total if self.total > 1 else None)
        count = f": {min(self.done, self.total):,} of {self.total:,}" if self.total > 1 else ""
        self.bars.update(
            self.task, completed=self.done, description=f"{self.label}{count}", refresh=is_new
        )


class StepBars:
    """Draws a bar for each step that takes long.

    A thread draws the bars of steps that take long before their first item is done.
    """

    def __init__(self) -> None:
        self._bars: Progress | None = None
        self._shared: Progress | None = None
        self._steps: list[_Step] = []
        self._lock = RLock()

    @contextmanager
    def running(self) -> Iterator[None]:
        """Draw bars within this block."""
        end = Event()

        def draw_regularly() -> None:
            while not end.wait(SECONDS_BETWEEN_CHECKS):
                self._draw_due()

        thread = Thread(target=draw_regularly, daemon=True)
        thread.start()
        try:
            yield
        finally:
            end.set()
            thread.join()
            self._steps.clear()
            self._close()

    @contextmanager
    def shared_with(self, bars: Progress) -> Iterator[None]:
        """Add the bars to a group on the screen; a terminal can show only one group."""
        self._shared = bars
        try:
            yield
        finally:
            with self._lock:
                self._shared = None

    def begun(self, label: str, total: int) -> _Step:
        """Note when a step began."""
        step = _Step(label, total, time.monotonic())
        with self._lock:
            self._steps.append(step)
        return step

    def moved(self, step: _Step, done: int) -> None:
        """Move the bar of a step, or draw it if the step takes long."""
        with self._lock:
            step.done = done
            if step.bars is not None:
                step.show()
            else:
                self._draw_due()

    def ended(self, step: _Step) -> None:
        """Remove the bar."""
        with self._lock:
            if step in self._steps:  # otherwise, an error ended all
                self._steps.remove(step)
            if step.bars is None:
                return
            step.bars.remove_task(step.task)
            if step.bars is self._bars and not step.bars.tasks:
                self._close()

    def _draw_due(self) -> None:
        """Draw the bars of the steps that take long; the outer step comes first."""
        with self._lock:
            for step in self._steps:
                if step.bars is None and time.monotonic() - step.began >= SECONDS_BEFORE_BAR:
                    step.bars = self._shared or self._own_bars()
                    step.show()

    def _close(self) -> None:
        """Remove all bars, also those of steps that an error ended."""
        with self._lock:
            if self._bars is not None:
                self._bars.stop()
                self._bars = None

    def _own_bars(self) -> Progress:
        if self._bars is None:
            self._bars = _bars(is_kept=False)
            self._bars.start()
        return self._bars


_steps = StepBars()


@contextmanager
def step_bars() -> Iterator[None]:
    """Let long steps show bars, if standard error is a terminal that nobody else uses.

    The reader of a pipe, such as a pager, may use the same terminal.
    """
    if not sys.stderr.isatty() or _is_pipe(sys.stdout):
        yield
        return
    with watched(_steps), _steps.running():
        yield


def _is_pipe(stream: TextIO) -> bool:
    try:
        return stat.S_ISFIFO(os.fstat(stream.fileno()).st_mode)
    except (OSError, ValueError):  # closed, or not a file
        return False


class Bar(Quiet):
    """Draws a bar in a terminal."""

    def __init__(self, *, is_kept: bool = True) -> None:
        super().__init__()
        self._progress = _bars(is_kept=is_kept)
        self._contexts = ExitStack()
        self._task: TaskID | None = None

    def begun(self, total: int, done: int, failed: int) -> None:
        """Start the bar with the queries that were done before."""
        super().begun(total, done, failed)
        self._task = self._progress.add_task("", total=total, completed=self.done)

    def finished(self, line: JournalLine) -> None:
        """Move the bar."""
        super().finished(line)
        self._update()

    def retried(self, question: Query, error: Failure) -> None:
        """Count the attempt."""
        super().retried(question, error)
        self._update()

    def began(self, activity: str) -> None:
        """Replace the bar by one without a known end."""
        assert self._task is not None
        self._progress.remove_task(self._task)
        self._task = self._progress.add_task(activity, total=None)
        self._progress.refresh()

    def show(self, message: str) -> None:
        """Print a message above the bar."""
        self._progress.console.print(message, markup=False, highlight=False, soft_wrap=True)

    def _update(self) -> None:
        assert self._task is not None
        self._progress.update(self._task, completed=self.done, description=self.summary())

    def __enter__(self) -> Quiet:
        self._contexts.enter_context(self._progress)
        self._contexts.enter_context(_steps.shared_with(self._progress))
        return self

    def __exit__(self, *_: object) -> None:
        self._contexts.close()


class Hidden(Quiet):
    """Counts the progress of a run; its steps show no bars either."""

    def __init__(self) -> None:
        super().__init__()
        self._contexts = ExitStack()

    def __enter__(self) -> Quiet:
        self._contexts.enter_context(watched(None))
        return self

    def __exit__(self, *_: object) -> None:
        self._contexts.close()


def progress(is_shown: bool, *, is_kept: bool = True) -> Quiet:
    """Return a progress display for standard error; `is_kept` leaves the last state there."""
    if not is_shown:
        return Hidden()
    if sys.stderr.isatty():
        return Bar(is_kept=is_kept)
    return Lines() if is_kept else Quiet()
