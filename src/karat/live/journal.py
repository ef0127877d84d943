"""The journal: the file to which a run is written while it is in progress.

What is always true, whatever ends the process or the machine:

- The file has a header, and then complete lines, one per query. Only the last line may be
  incomplete: after a power failure, or if the process was killed during a partial write. It is
  removed when the run is continued, and its query runs again.
- If another process truncates the file, a line may be incomplete and followed directly by the next
  one. It is removed with a warning when the run is continued, and its queries run again.
- The header has a random `run_id`, which each line repeats. A line without it was written by
  another process: the run cannot be continued until the line is deleted. Files of older versions
  of karat have no `run_id` in the header, and their lines are not checked.
- A line is written in one piece as soon as its query is finished, so a killed process loses no
  finished query. It is on the disk about 100 ms later, so a power failure loses no more than that.
- If a line cannot be written completely (the disk is full), it is removed, and no line follows it.
- A query has one line. If a run is continued, only queries without an answer run.
- Only one process writes a file: the lock is on the file itself, and ends with the process.
- If lines must be removed (failed queries that run again) or the header changes, a new file is
  written next to the old one, synced and locked, and then renamed. Until then, the old one is
  complete.
- These files are never changed, except with `overwrite=True`: a finished run, in which every query
  has an answer; a file that is not a run; and a file that replaced the journal during the run.
"""

from __future__ import annotations

import os
import secrets
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType

import msgspec

from karat.data.formats.json_lines import Header
from karat.data.formats.native import ENDINGS
from karat.data.formats.native_run import Failure
from karat.errors import InputError, counted, printable, warn
from karat.files import check_writable
from karat.live.locked_file import LockedFile
from karat.live.protocol import JournalLine, encode_line
from karat.live.resume import ResumeState, changed_settings, merge_headers, resume_state

SYNC_SECONDS = 0.1
"""Seconds between two syncs."""
_MAX_LISTED = 10  # line numbers that a message lists


class Journal:
    """The file of a run in progress; created by `Journal.open`."""

    def __init__(
        self, file: LockedFile, done: dict[str, Failure | None], run_id: str | None
    ) -> None:
        self.done = done
        """The failure of each query that was finished before; None if it has an answer."""
        self._file = file
        self._run_id = run_id
        self._write_lock = threading.Lock()
        self._is_dirty = True
        self._failure: InputError | None = None
        self._closing = threading.Event()
        self._sync_thread = threading.Thread(
            target=self._sync_repeatedly, name="karat-sync", daemon=True
        )
        self._sync_thread.start()

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        header: Header,
        *,
        overwrite: bool = False,
    ) -> Journal:
        """Start a run in a file, or continue an unfinished one.

        The lines of failed queries are removed, and these queries run again. If the settings
        changed, a file without any answer is started again, and any other file is refused. A
        finished run is refused. `overwrite` replaces the file in any case.
        """
        file = LockedFile(_checked_path(path))
        try:
            state = None
            if not overwrite:
                with file.open_for_reading() as lines:
                    state = resume_state(lines, file.path)
            if state is None or (state.is_empty and changed_settings(state.header, header)):
                return cls(file, {}, _start(file, header))
            _refuse_finished(file, state, header, path)
            return cls(file, _resume(file, state, header), state.header.run_id)
        except BaseException:
            file.close()
            raise

    def write(self, line: JournalLine) -> None:
        """Write the line of a finished query; it is on the disk about `SYNC_SECONDS` later."""
        with self._write_lock:
            if self._failure is not None:
                raise self._failure
            try:
                line.run_id = self._run_id
                self._file.append(encode_line(line))
            except InputError as error:
                self._failure = error
                raise
            self._is_dirty = True

    def close(self) -> None:
        """Sync and close the file; raise the error of a write or sync that failed."""
        if self._closing.is_set():
            return
        self._closing.set()
        try:
            self._sync_thread.join()
            self._is_dirty = True  # an interrupt may have come before `write` set it
            self._sync()
        finally:
            self._file.close()
        if self._failure is not None:
            raise self._failure

    def _sync_repeatedly(self) -> None:
        while not self._closing.wait(SYNC_SECONDS) and self._failure is None:
            self._sync()

    def _sync(self) -> None:
        # After a failed fsync, a second one may succeed although the data is lost.
        if self._failure is not None:
            return
        try:
            if self._is_dirty:
                self._is_dirty = False
                self._file.sync()
            with self._write_lock:
                self._file.check_unchanged()
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
            if error is None:  # otherwise the first error counts, which often is the same
                raise


def _checked_path(path: str | os.PathLike[str]) -> Path:
    """Return the resolved path; raise an error if it cannot be written line by line."""
    unresolved = Path(path)
    if unresolved.suffix.lower() not in ENDINGS:
        raise InputError(
            f"a run must be written to a .jsonl file, got the file extension {unresolved.suffix!r}",
            path=path,
            hint="write the run to a .jsonl file, and convert it with `karat convert`",
        )
    check_writable(unresolved)
    target = unresolved.resolve()
    if target.exists() and not target.is_file():
        raise InputError(
            "the output is not a regular file", path=path, hint="use a file, such as run.jsonl"
        )
    return target


def _start(file: LockedFile, header: Header) -> str:
    """Replace the content of the file with the header; return its new `run_id`."""
    run_id = secrets.token_hex(4)
    line = _encode_header(msgspec.structs.replace(header, run_id=run_id))
    if file.size:
        file.rewrite([line])
    else:
        file.append(line)
        file.sync()
        file.sync_folder()
    return run_id


def _resume(file: LockedFile, state: ResumeState, header: Header) -> dict[str, Failure | None]:
    """Repair the file, remove failed queries, and return the finished ones."""
    merged_header = merge_headers(state.header, header, file.path)
    file.remove_temporary()
    if state.size < file.size:
        file.truncate(state.size)
    if state.lacks_newline:
        file.append(b"\n")
    for query_id in state.failed.values():
        del state.done[query_id]
    removed = {*state.failed, *state.damaged}
    if removed or merged_header != state.header:
        with file.open_for_reading() as lines:
            file.rewrite(_rewritten_lines(lines, state.header_line, removed, merged_header))
    if state.damaged:
        numbers = ", ".join(map(str, state.damaged[:_MAX_LISTED]))
        more = ", …" if len(state.damaged) > _MAX_LISTED else ""
        warn(
            f"{printable(str(file.path))}: removed {counted(len(state.damaged), 'line')} that "
            f"another process had damaged (line {numbers}{more}); the queries without an "
            "answer will be run again",
            stacklevel=3,
        )
    return state.done


def _refuse_finished(
    file: LockedFile, state: ResumeState, header: Header, path: str | os.PathLike[str]
) -> None:
    """Raise an error if every query of this run already has an answer in the file."""
    queries = header.settings.get("queries", {})
    is_same = state.header.settings.get("queries", {}).get("sha256") == queries.get("sha256")
    answered = len(state.done) - len(state.failed)
    if is_same and answered == queries.get("count"):
        age = format_age(time.time() - file.path.stat().st_mtime)
        raise InputError(
            f"this run is complete ({counted(answered, 'query')}, finished {age} ago)",
            path=path,
            hint="use --overwrite (overwrite=True) to run all queries again",
        )


def _rewritten_lines(
    lines: Iterable[bytes], header_line: int, removed: set[int], header: Header
) -> Iterator[bytes]:
    """Yield the new header, and then the lines after the old header that are not removed."""
    yield _encode_header(header)
    for number, line in enumerate(lines, 1):
        if number > header_line and number not in removed:
            yield line


def _encode_header(header: Header) -> bytes:
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
