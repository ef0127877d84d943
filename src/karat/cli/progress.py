"""How far a run has come: a bar in a terminal, a line now and then elsewhere."""

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
    """Shows nothing, and knows how far a run has come: the base of what shows it."""

    def __init__(self) -> None:
        self.total = self.done = self.failed = self.retries = 0
        self._before = 0
        self._began = time.monotonic()
        self._kinds: set[str] = set()

    def begun(self, total: int, done: int, failed: int) -> None:
        """Take how many questions there are, and how many were done before or failed then."""
        self.total, self.done, self.failed, self._before = total, done, failed, done
        self._began = time.monotonic()

    def finished(self, line: JournalLine) -> None:
        """Take a question that was answered, or failed for good."""
        self.done += 1
        if line.error is not None:
            self.failed += 1
            self._tell_of(str(line.query_id), line.error)

    def retried(self, question: Query, error: Failure) -> None:
        """Take an attempt that failed and is made again."""
        self.retries += 1
        self._tell_of(question.query_id, error)

    def _tell_of(self, query: str, error: Failure) -> None:
        """Say what failed, the first time of each kind: a wrong address should show at once."""
        if error.type not in self._kinds:
            self._kinds.add(error.type)
            self.say(": ".join(filter(None, [printable(query), error.type, error.message])))

    def say(self, remark: str) -> None:
        """Show a remark."""

    @property
    def rate(self) -> float:
        """Questions a second, of those that were asked now."""
        passed = time.monotonic() - self._began
        return (self.done - self._before) / passed if passed > 0 else 0.0

    def told(self) -> str:
        """Return in words how far it is."""
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
    """Prints a line every ten seconds, and one at the end."""

    def __init__(self) -> None:
        super().__init__()
        self._printed = time.monotonic()

    def begun(self, total: int, done: int, failed: int) -> None:
        """Say what is there already, if anything is."""
        super().begun(total, done, failed)
        if done:
            print(f"{counted(done, 'query')} of {total:,} answered before", file=sys.stderr)

    def finished(self, line: JournalLine) -> None:
        """Say how far it is, if that has not been said for a while."""
        super().finished(line)
        if self.done == self.total or self._due():
            print(self.told(), file=sys.stderr, flush=True)

    def say(self, remark: str) -> None:
        """Print a remark."""
        print(remark, file=sys.stderr, flush=True)

    def _due(self) -> bool:
        now = time.monotonic()
        if now - self._printed < SECONDS_BETWEEN_LINES:
            return False
        self._printed = now
        return True


class Bar(Quiet):
    """Draws a bar in a terminal."""

    def __init__(self) -> None:
        super().__init__()
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

        self._progress = Progress(
            BarColumn(),
            TaskProgressColumn(),
            TextColumn("{task.description}", markup=False),
            console=Console(stderr=True),
        )
        self._task: Any = None

    def begun(self, total: int, done: int, failed: int) -> None:
        """Begin where the run was left."""
        super().begun(total, done, failed)
        self._task = self._progress.add_task("", total=total, completed=self.done)

    def finished(self, line: JournalLine) -> None:
        """Move the bar."""
        super().finished(line)
        self._show()

    def retried(self, question: Query, error: Failure) -> None:
        """Count the attempt."""
        super().retried(question, error)
        self._show()

    def say(self, remark: str) -> None:
        """Print a remark above the bar."""
        self._progress.console.print(remark, markup=False, highlight=False, soft_wrap=True)

    def _show(self) -> None:
        self._progress.update(self._task, completed=self.done, description=self.told())

    def __enter__(self) -> Quiet:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()


def progress(wanted: bool) -> Quiet:
    """Return what shows the progress here."""
    if not wanted:
        return Quiet()
    return Bar() if sys.stderr.isatty() else Lines()
