"""A file of lines that one process holds: each line is there whole, or not at all."""

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

FLAGS = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)


def opened(path: Path) -> int:
    """Open a file for appending, made if it is not there, and hold it alone."""
    while True:
        descriptor = os.open(path, FLAGS, 0o666)
        try:
            hold(descriptor, path)
            # Whoever held it before may have put another file into its place, or taken it away.
            if leads_to(path, descriptor):
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def leads_to(path: Path, descriptor: int) -> bool:
    """Tell whether a path still leads to the file that is open."""
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def hold(descriptor: int, path: Path) -> None:
    """Hold an open file alone until it is closed, or refuse if somebody else does."""
    try:
        _lock(descriptor)
    except BlockingIOError as error:
        raise InputError(
            "another process is writing this run",
            path=path,
            hint="let it finish, or end it and whatever it has started; or write to another -o",
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

    _FAR = 1 << 40  # a locked byte cannot be read by others, so it lies beyond every line

    def _lock(descriptor: int) -> None:
        os.lseek(descriptor, _FAR, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError as error:
            if error.errno in (errno.EACCES, errno.EDEADLK):
                raise BlockingIOError from error
            raise

else:
    import fcntl

    def _lock(descriptor: int) -> None:
        # flock and not lockf: that one ends as soon as anybody in this process reads the file.
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


class LockedFile:
    """A file that is open for appending and locked, and up to where it holds whole lines."""

    def __init__(self, path: Path) -> None:
        self.path = path
        # Who holds the file may also use this name, and nobody else; so a rewrite that was
        # killed leaves one file at most, which the next process takes away.
        self._beside = path.with_name(f".{path.name}.karat-part")
        try:
            self._descriptor = opened(path)
        except OSError as error:
            raise self._failed(error) from error
        self.size = os.fstat(self._descriptor).st_size
        self._is_torn = False
        _HELD.add(self)

    def reading(self) -> BinaryIO:
        """Open the file for reading from its beginning; closing that leaves it held."""
        file = open(self._descriptor, "rb", closefd=False)  # noqa: SIM115
        file.seek(0)
        return file

    def append(self, lines: bytes) -> None:
        """Write whole lines at the end in one go; if that fails, none of it stays there."""
        try:
            if self._is_torn:
                self.cut(self.size)
            self._is_torn = True
            rest = memoryview(lines)
            while rest:  # a disk that is nearly full takes a part
                rest = rest[os.write(self._descriptor, rest) :]
            self.size += len(lines)
            self._is_torn = False
        except BaseException as error:
            # An interrupt may stand between writing and counting: what was not counted goes.
            with suppress(InputError):
                self.cut(self.size)
            if isinstance(error, OSError):
                raise self._failed(error) from error
            raise

    def cut(self, size: int) -> None:
        """Cut off what stands beyond some whole lines."""
        try:
            os.ftruncate(self._descriptor, size)
        except OSError as error:
            raise self._failed(error) from error
        self.size = size
        self._is_torn = False

    def rewrite(self, lines: Iterable[bytes]) -> None:
        """Put other lines into the place of all; until they are safe, the old ones stay.

        The new file is held before it takes the place, so that at no moment nobody holds it.
        """
        try:
            self.tidy()
            descriptor = os.open(self._beside, FLAGS | os.O_EXCL, 0o666)
            try:
                hold(descriptor, self.path)
                self._beside.chmod(stat.S_IMODE(os.fstat(self._descriptor).st_mode))
                with open(descriptor, "wb", closefd=False) as file:
                    file.writelines(lines)
                os.fsync(descriptor)
                descriptor = self._put_in_place(descriptor)
            except BaseException:
                with suppress(OSError):
                    os.close(descriptor)
                self.tidy()
                raise
        except OSError as error:
            raise self._failed(error) from error
        self._descriptor = descriptor
        self.size = os.fstat(descriptor).st_size
        self.sync_folder()

    def tidy(self) -> None:
        """Take away what a rewrite left beside when it was killed."""
        with suppress(OSError):
            self._beside.unlink(missing_ok=True)

    def _put_in_place(self, descriptor: int) -> int:
        if sys.platform == "win32":  # which renames no open file, so the lock is let go for it
            os.close(descriptor)
            os.close(self._descriptor)
            self._beside.replace(self.path)
            return opened(self.path)
        self._beside.replace(self.path)
        os.close(self._descriptor)
        return descriptor

    def sync(self) -> None:
        """Have the disk hold all that was written."""
        try:
            os.fsync(self._descriptor)
        except OSError as error:
            raise self._failed(error) from error

    def sync_folder(self) -> None:
        """Have the disk hold the file's name too."""
        # Some systems and some network disks cannot open or sync a folder, and need not.
        with suppress(OSError):
            folder = os.open(self.path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)

    def check_in_place(self) -> None:
        """Refuse to continue if another process removed, replaced or changed the file.

        No line may be written meanwhile.
        """
        try:
            is_there = leads_to(self.path, self._descriptor)
        except OSError as error:
            raise self._failed(error) from error
        if not is_there:
            raise InputError(
                "another process moved, removed or replaced the file while the run was being "
                "written",
                path=self.path,
                hint="put it back, and give the same command again to finish the run",
            )
        size = os.fstat(self._descriptor).st_size
        if size > self.size and not self._is_torn:
            raise InputError(
                "another process appended to the file while the run was being written",
                path=self.path,
                hint="give the same command again: it shows the line to delete, and then "
                "continues the run",
            )
        if size < self.size:
            raise InputError(
                "another process cut the file short while the run was being written",
                path=self.path,
                hint="give the same command again: it repairs the file and runs the queries that "
                "are missing",
            )

    def close(self) -> None:
        """Close the file, which lets it go; in a process that was forked, the other holds it on."""
        _HELD.discard(self)
        # Its number may soon be that of another file, to which nothing of this may be written.
        descriptor, self._descriptor = self._descriptor, -1
        with suppress(OSError):  # an interrupt may have come while it was replaced
            os.close(descriptor)

    def _failed(self, error: OSError) -> InputError:
        return InputError(
            f"it cannot be written ({error.strerror})",
            path=self.path,
            hint="make room or check the permissions; the same command then finishes the run, "
            "and nothing that stands there is asked again",
        )


# A process that a retriever forks shares the lock, and would hold it on when karat is killed.
_HELD: weakref.WeakSet[LockedFile] = weakref.WeakSet()


def _close_all() -> None:
    for file in list(_HELD):
        file.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_all)
