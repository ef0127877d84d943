"""A file of lines that only one process can write: each line is in it completely, or not at all.

What is in this file:

- `LockedFile`, an open and locked file. It appends lines, truncates, replaces all lines, and syncs.
- `open_locked`, `lock_file` and `is_same_file` open and lock a file on all systems.

What is always true:

- The lock is on the file itself and ends with the process. A child that a retriever forks gives up
  its share of the lock, so that it cannot keep the lock when karat is killed.
- A line that could not be written completely is removed, and no line follows it.
- `rewrite` creates a temporary file next to the file, writes, syncs and locks it, and then renames
  it. Until then, the old file is complete.
"""

from __future__ import annotations

import os
import stat
import sys
import weakref
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from karat.errors import InputError

_FLAGS = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)


class LockedFile:
    """A file that is open for appending and locked; `size` is the end of its complete lines."""

    def __init__(self, path: Path) -> None:
        self.path = path
        # Only the process that has the lock uses this name. So a rewrite that was killed leaves at
        # most one file, which the next process removes.
        self._temporary_path = path.with_name(f".{path.name}.karat-part")
        try:
            self._descriptor = open_locked(path)
        except OSError as error:
            raise self._write_error(error) from error
        self.size = os.fstat(self._descriptor).st_size
        self._is_torn = False
        _OPEN_FILES.add(self)

    def open_for_reading(self) -> BinaryIO:
        """Open the file for reading from its start; closing the reader keeps the lock."""
        file = open(self._descriptor, "rb", closefd=False)  # noqa: SIM115
        file.seek(0)
        return file

    def append(self, lines: bytes) -> None:
        """Write complete lines at the end; if that fails, none of them stay in the file."""
        try:
            if self._is_torn:
                self.truncate(self.size)
            self._is_torn = True
            rest = memoryview(lines)
            while rest:  # a disk that is nearly full may write only a part
                rest = rest[os.write(self._descriptor, rest) :]
            self.size += len(lines)
            self._is_torn = False
        except BaseException as error:
            # An interrupt may come between the write and the new size: remove what is not counted.
            with suppress(InputError):
                self.truncate(self.size)
            if isinstance(error, OSError):
                raise self._write_error(error) from error
            raise

    def truncate(self, size: int) -> None:
        """Remove everything after the first `size` bytes, which must be complete lines."""
        try:
            os.ftruncate(self._descriptor, size)
        except OSError as error:
            raise self._write_error(error) from error
        self.size = size
        self._is_torn = False

    def rewrite(self, lines: Iterable[bytes]) -> None:
        """Replace all lines; the old file is kept until the new one is on the disk.

        The new file is locked before it is renamed, so that the file is locked at every moment.
        """
        try:
            self.remove_temporary()
            descriptor = os.open(self._temporary_path, _FLAGS | os.O_EXCL, 0o666)
            try:
                lock_file(descriptor, self.path)
                self._temporary_path.chmod(stat.S_IMODE(os.fstat(self._descriptor).st_mode))
                with open(descriptor, "wb", closefd=False) as file:
                    file.writelines(lines)
                os.fsync(descriptor)
                descriptor = self._replace_with(descriptor)
            except BaseException:
                with suppress(OSError):
                    os.close(descriptor)
                self.remove_temporary()
                raise
        except OSError as error:
            raise self._write_error(error) from error
        self._descriptor = descriptor
        self.size = os.fstat(descriptor).st_size
        self.sync_folder()

    def remove_temporary(self) -> None:
        """Remove the temporary file of a rewrite that was killed."""
        with suppress(OSError):
            self._temporary_path.unlink(missing_ok=True)

    def _replace_with(self, descriptor: int) -> int:
        if sys.platform == "win32":  # cannot rename an open file, so the lock is given up
            os.close(descriptor)
            os.close(self._descriptor)
            self._temporary_path.replace(self.path)
            return open_locked(self.path)
        self._temporary_path.replace(self.path)
        os.close(self._descriptor)
        return descriptor

    def sync(self) -> None:
        """Wait until everything that was written is on the disk."""
        try:
            os.fsync(self._descriptor)
        except OSError as error:
            raise self._write_error(error) from error

    def sync_folder(self) -> None:
        """Wait until the name of the file is on the disk."""
        # Some systems and network disks cannot open or sync a folder, and do not need it.
        with suppress(OSError):
            folder = os.open(self.path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)

    def check_unchanged(self) -> None:
        """Raise an error if another process removed, replaced or changed the file.

        The caller makes sure that no line is written at the same time.
        """
        try:
            is_in_place = is_same_file(self.path, self._descriptor)
        except OSError as error:
            raise self._write_error(error) from error
        if not is_in_place:
            raise InputError(
                "another process moved, removed or replaced the file during the run",
                path=self.path,
                hint="put the file back, and run the same command again to finish the run",
            )
        size = os.fstat(self._descriptor).st_size
        if size > self.size and not self._is_torn:
            raise InputError(
                "another process appended to the file during the run",
                path=self.path,
                hint="run the same command again: it reports the line to delete, and then "
                "continues the run",
            )
        if size < self.size:
            raise InputError(
                "another process truncated the file during the run",
                path=self.path,
                hint="run the same command again: it repairs the file and runs the missing queries",
            )

    def close(self) -> None:
        """Close the file, which releases the lock; after a fork, the parent keeps the lock."""
        _OPEN_FILES.discard(self)
        # The number may be reused for another file, to which nothing may be written from here.
        descriptor, self._descriptor = self._descriptor, -1
        with suppress(OSError):  # an interrupt may have come while the file was replaced
            os.close(descriptor)

    def _write_error(self, error: OSError) -> InputError:
        return InputError(
            f"the file cannot be written ({error.strerror})",
            path=self.path,
            hint="check the free space and the permissions; the same command then runs only the "
            "missing queries",
        )


def open_locked(path: Path) -> int:
    """Open a file for appending and lock it; create it if it does not exist."""
    while True:
        descriptor = os.open(path, _FLAGS, 0o666)
        try:
            lock_file(descriptor, path)
            # The process that had the lock before may have replaced or removed the file.
            if is_same_file(path, descriptor):
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def is_same_file(path: Path, descriptor: int) -> bool:
    """Return whether the file at a path is the open file."""
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def lock_file(descriptor: int, path: Path) -> None:
    """Lock an open file until it is closed; raise an error if another process has the lock."""
    try:
        _lock(descriptor)
    except BlockingIOError as error:
        raise InputError(
            "another process is writing this run",
            path=path,
            hint="wait until it has finished, stop it and all processes that it started, or write "
            "to another file with -o",
        ) from error
    except OSError as error:
        raise InputError(
            f"the file cannot be locked ({error.strerror})",
            path=path,
            hint="write the run to a local disk",
        ) from error


if sys.platform == "win32":
    import errno
    import msvcrt

    _LOCKED_BYTE = 1 << 40  # after all lines, because others cannot read a locked byte

    def _lock(descriptor: int) -> None:
        os.lseek(descriptor, _LOCKED_BYTE, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError as error:
            if error.errno in (errno.EACCES, errno.EDEADLK):
                raise BlockingIOError from error
            raise

else:
    import fcntl

    def _lock(descriptor: int) -> None:
        # Not lockf: its lock ends as soon as this process opens and closes the file for reading.
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


# A process that a retriever forks shares the lock, and would keep it after karat is killed.
_OPEN_FILES: weakref.WeakSet[LockedFile] = weakref.WeakSet()


def _close_all() -> None:
    for file in list(_OPEN_FILES):
        file.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_all)
