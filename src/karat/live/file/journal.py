"""The file that a run is written to while it goes on, so that nothing of it can be lost.

What holds at every moment, whatever ends the process or the machine:

- The file holds a header, then whole lines, one a query. Only the last line may be torn: by a
  power loss, or a kill in the middle of a write that the disk took in parts. It is cut off when
  the run is gone on with, and its query asked again.
- A line is handed to the system in one piece as soon as its query is finished, so that a kill
  takes none of them back. It is on the disk about 100 ms later, so that a power loss takes no more.
- If a line cannot be written whole (the disk is full), it is taken back, and no line follows it.
- A query has one line. Who goes on with a run asks only for what has none, and one process alone
  writes a file: the lock lies on the file itself, and ends with the process.
- Where lines have to go (failed ones that are asked again) or the header changes, a new file is
  written beside, synced and locked, and then renamed. Until then the old one is whole.
- A file that is something else is never touched, unless somebody says `resume=False`; nor is one
  that was put into our place meanwhile, nor does a run go on into a file that nobody can find.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType

import msgspec

from karat.data.files import check_writable
from karat.data.native import ENDINGS
from karat.data.native_lines import Header
from karat.data.native_run import Failure
from karat.errors import InputError
from karat.live.exchange import Line, encoded
from karat.live.file.agreement import agreed
from karat.live.file.held import HeldFile
from karat.live.file.standing import Standing, standing

SYNC_SECONDS = 0.1


class Journal:
    """The file of a run that is being written; `open` makes one."""

    def __init__(self, file: HeldFile, done: dict[str, Failure | None]) -> None:
        self.done = done
        """How each query ended that was finished before: None where it was answered."""
        self._file = file
        self._writing = threading.Lock()
        self._is_dirty = True
        self._failure: InputError | None = None
        self._closing = threading.Event()
        self._syncing = threading.Thread(target=self._sync_often, name="karat-sync", daemon=True)
        self._syncing.start()

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        header: Header,
        *,
        resume: bool = True,
        retry_errors: bool = False,
    ) -> Journal:
        """Begin a run in a file, or go on with the one that stands there.

        With `resume=False` whatever stands there goes. With `retry_errors` the queries that
        failed are not finished, and their lines go.
        """
        file = HeldFile(_checked(path))
        try:
            found = None
            if resume:
                with file.reading() as lines:
                    found = standing(lines, file.path)
            if found is None:
                _begin(file, header)
                return cls(file, {})
            return cls(file, _go_on(file, found, header, retry_errors=retry_errors))
        except BaseException:
            file.close()
            raise

    def write(self, line: Line) -> None:
        """Write the line of a finished query; it is on the disk soon after."""
        with self._writing:
            if self._failure is not None:
                raise self._failure
            try:
                self._file.append(encoded(line))
            except InputError as error:
                self._failure = error
                raise
            self._is_dirty = True

    def close(self) -> None:
        """Have the disk hold all, let the file go, and say what failed if anything did."""
        if self._closing.is_set():
            return
        self._closing.set()
        try:
            self._syncing.join()
            self._is_dirty = True  # an interrupt may have come before a line could say so
            self._sync()
        finally:
            self._file.close()
        if self._failure is not None:
            raise self._failure

    def _sync_often(self) -> None:
        while not self._closing.wait(SYNC_SECONDS) and self._failure is None:
            self._sync()

    def _sync(self) -> None:
        # Once the system failed to sync, a second try may succeed and mean nothing.
        if self._failure is not None:
            return
        try:
            if self._is_dirty:
                self._is_dirty = False
                self._file.sync()
            self._file.check_in_place()
        except InputError as error:
            self._failure = error

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self.close()
        except InputError:
            if error is None:  # else that one came first, and often is the same
                raise


def _checked(path: str | os.PathLike[str]) -> Path:
    """Refuse a place where no run can be written line by line."""
    given = Path(path)
    if given.suffix.lower() not in ENDINGS:
        raise InputError(
            f"the ending {given.suffix!r} is not that of a run which is written line by line",
            path=path,
            hint="karat run writes .jsonl; karat convert makes other formats",
        )
    check_writable(given)
    target = given.resolve()
    if target.exists() and not target.is_file():
        raise InputError("this is no plain file", path=path, hint="name a file, such as run.jsonl")
    return target


def _begin(file: HeldFile, header: Header) -> None:
    """Write the header alone, in place of whatever there is."""
    if file.size:
        file.rewrite([_encoded(header)])
        return
    file.append(_encoded(header))
    file.sync()
    file.sync_folder()


def _go_on(
    file: HeldFile, found: Standing, header: Header, *, retry_errors: bool
) -> dict[str, Failure | None]:
    """Mend the end of a file, take out what is asked again, and return what is finished."""
    told = agreed(found.header, header, file.path)
    file.tidy()
    if found.size < file.size:
        file.cut(found.size)
    if found.needs_end:
        file.append(b"\n")
    again = found.failed if retry_errors else {}
    for query in again.values():
        del found.done[query]
    # Settings that nothing is asked with any more were not used.
    count = header.settings.get("queries", {}).get("count")
    if len(found.done) == count:
        told = found.header
    if again or told != found.header:
        with file.reading() as lines:
            file.rewrite(_without(lines, found.first, again, told))
    return found.done


def _without(
    lines: Iterable[bytes], first: int, dropped: dict[int, str], header: Header
) -> Iterator[bytes]:
    """Yield a new header, and of the lines after the old one those that stay."""
    yield _encoded(header)
    for number, line in enumerate(lines, 1):
        if number > first and number not in dropped:
            yield line


def _encoded(header: Header) -> bytes:
    return msgspec.json.encode(header) + b"\n"
