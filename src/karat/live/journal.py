"""The file that a run is written to while it goes on, so that nothing of it can be lost.

What holds at every moment, whatever ends the process or the machine:

- The file holds a header, then complete lines, one per query. Only the last line may be
  incomplete: after a power loss, or a kill in the middle of a write that the disk took in parts.
  It is cut off when the run is continued, and its query runs again.
- If another process cuts the file short, a line may be incomplete, with the next line right
  after its first part. It is removed when the run is continued, with a warning,
  and its queries run again.
- The header has a random `run_id`, which each line repeats. A line without it was written by
  another process: the run is not continued until the line is deleted. Files of karat versions
  before `run_id` have none in the header, and their lines are not checked.
- A line is handed to the system in one piece as soon as its query is finished, so that a kill
  takes none of them back. It is on the disk about 100 ms later, so that a power loss takes no more.
- If a line cannot be written whole (the disk is full), it is taken back, and no line follows it.
- A query has one line. A run that is continued runs only the queries that have no answer, and one
  process alone writes a file: the lock is on the file itself, and ends with the process.
- Where lines have to go (failed queries that run again) or the header changes, a new file is
  written next to it, synced and locked, and then renamed. Until then the old one is whole.
- A file in which every query has an answer is finished and never touched, nor is a file that is
  something else, unless `overwrite=True`; nor is one that was put into its place meanwhile.
"""

from __future__ import annotations

import os
import secrets
import threading
import time
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType

import msgspec

from karat.data.formats.json_lines import Header
from karat.data.formats.native import ENDINGS
from karat.data.formats.native_run import Failure
from karat.errors import InputError, KaratWarning, counted, printable
from karat.files import check_writable
from karat.live.locked_file import LockedFile
from karat.live.protocol import Line, encoded
from karat.live.resume import ResumeState, agreed, differences, resume_state

SYNC_SECONDS = 0.1
_SHOWN = 10  # numbers of lines that a message lists


class Journal:
    """The file of a run that is being written; `open` makes one."""

    def __init__(
        self, file: LockedFile, done: dict[str, Failure | None], run_id: str | None
    ) -> None:
        self.done = done
        """How each query ended that was finished before: None where it was answered."""
        self._file = file
        self._run_id = run_id
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
        overwrite: bool = False,
    ) -> Journal:
        """Begin a run in a file, or continue an unfinished one.

        Failed queries are not finished: their lines are removed and they run again. If the
        settings changed, a file without any answer is begun anew, and any other is refused. A
        finished file is refused, unless `overwrite` replaces whatever is there.
        """
        file = LockedFile(_checked(path))
        try:
            found = None
            if not overwrite:
                with file.reading() as lines:
                    found = resume_state(lines, file.path)
            if found is None or (found.is_empty and differences(found.header, header)):
                return cls(file, {}, _begin(file, header))
            _refuse_finished(file, found, header, path)
            return cls(file, _go_on(file, found, header), found.header.run_id)
        except BaseException:
            file.close()
            raise

    def write(self, line: Line) -> None:
        """Write the line of a finished query; it is on the disk soon after."""
        with self._writing:
            if self._failure is not None:
                raise self._failure
            try:
                line.run_id = self._run_id
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
            with self._writing:
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


def _begin(file: LockedFile, header: Header) -> str:
    """Write the header alone, in place of whatever there is; return its new `run_id`."""
    run_id = secrets.token_hex(4)
    line = _encoded(msgspec.structs.replace(header, run_id=run_id))
    if file.size:
        file.rewrite([line])
    else:
        file.append(line)
        file.sync()
        file.sync_folder()
    return run_id


def _go_on(file: LockedFile, found: ResumeState, header: Header) -> dict[str, Failure | None]:
    """Repair a file, remove failed queries, and return what is finished."""
    agreed_header = agreed(found.header, header, file.path)
    file.tidy()
    if found.size < file.size:
        file.cut(found.size)
    if found.needs_end:
        file.append(b"\n")
    for query in found.failed.values():
        del found.done[query]
    dropped = {*found.failed, *found.damaged}
    if dropped or agreed_header != found.header:
        with file.reading() as lines:
            file.rewrite(_without(lines, found.first, dropped, agreed_header))
    if found.damaged:
        numbers = ", ".join(map(str, found.damaged[:_SHOWN]))
        more = ", …" if len(found.damaged) > _SHOWN else ""
        warnings.warn(
            KaratWarning(
                f"{printable(str(file.path))}: removed {counted(len(found.damaged), 'line')} that "
                f"another process has damaged (number {numbers}{more}); the queries without an "
                "answer run again"
            ),
            stacklevel=3,
        )
    return found.done


def _refuse_finished(
    file: LockedFile, found: ResumeState, header: Header, path: str | os.PathLike[str]
) -> None:
    """Refuse to continue a file in which every query of this run has an answer."""
    queries = header.settings.get("queries", {})
    is_same = found.header.settings.get("queries", {}).get("sha256") == queries.get("sha256")
    answered = len(found.done) - len(found.failed)
    if is_same and answered == queries.get("count"):
        age = format_age(time.time() - file.path.stat().st_mtime)
        raise InputError(
            f"this run is complete ({counted(answered, 'query')}, {age} ago)",
            path=path,
            hint="use --overwrite (overwrite=True) to run again",
        )


def _without(
    lines: Iterable[bytes], first: int, dropped: set[int], header: Header
) -> Iterator[bytes]:
    """Yield a new header, and of the lines after the old one those that stay."""
    yield _encoded(header)
    for number, line in enumerate(lines, 1):
        if number > first and number not in dropped:
            yield line


def _encoded(header: Header) -> bytes:
    return msgspec.json.encode(header) + b"\n"


def format_age(seconds: float) -> str:
    """Return a duration in its largest unit.

    >>> format_age(42), format_age(200), format_age(7200), format_age(200_000)
    ('42 s', '3 min', '2 h', '2 days')
    """
    if seconds < 60:
        return f"{max(seconds, 0):.0f} s"
    if seconds < 3600:
        return f"{seconds // 60:.0f} min"
    if seconds < 86400:
        return f"{seconds // 3600:.0f} h"
    return counted(int(seconds // 86400), "day")
