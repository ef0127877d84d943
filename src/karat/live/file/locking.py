"""One process a file: a lock that lies on the file itself and ends with the process."""

from __future__ import annotations

import os
import sys
from pathlib import Path

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
