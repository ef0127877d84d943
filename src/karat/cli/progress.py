"""The progress of `karat run`: a bar in a terminal, otherwise a line every ten seconds."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

from karat.errors import counted, printable

if TYPE_CHECKING:
    from karat.data.formats.native_run import Failure
    from karat.live.protocol import JournalLine, Query

SECONDS_BETWEEN_LINES = 10.0


class Quiet:
    """Counts the progress of a run without showing it; base class of the other two."""

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


class Bar(Quiet):
    """Draws a bar in a terminal."""

    def __init__(self, *, is_kept: bool = True) -> None:
        super().__init__()
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

        self._progress = Progress(
            BarColumn(),
            TaskProgressColumn(),
            TextColumn("{task.description}", markup=False),
            console=Console(stderr=True),
            transient=not is_kept,
        )
        self._task: Any = None

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

    def show(self, message: str) -> None:
        """Print a message above the bar."""
        self._progress.console.print(message, markup=False, highlight=False, soft_wrap=True)

    def _update(self) -> None:
        self._progress.update(self._task, completed=self.done, description=self.summary())

    def __enter__(self) -> Quiet:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()


def progress(is_shown: bool, *, is_kept: bool = True) -> Quiet:
    """Return a progress display for standard error; `is_kept` leaves the last state there."""
    if not is_shown:
        return Quiet()
    if sys.stderr.isatty():
        return Bar(is_kept=is_kept)
    return Lines() if is_kept else Quiet()
