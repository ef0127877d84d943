"""Files that are written whole or not at all, and checks of paths before anything is computed."""

from __future__ import annotations

import gzip
import os
import re
import secrets
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, cast

from karat.errors import InputError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_SYSTEM_ERROR = re.compile(r"([^:\s][^:]*) \(os error \d+\)")


@contextmanager
def writing(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Write a file beside its place and rename it when it is whole; a failure leaves nothing.

    A link keeps pointing to its file, a file keeps its permissions, and what is not a plain
    file, such as a pipe, is written into directly.
    """
    check_writable(path)
    target = Path(path).resolve()
    plain = path_is(Path.is_file, target) or not path_is(Path.exists, target)
    beside = target.with_name(f".{secrets.token_hex(6)}{target.suffix}") if plain else target
    try:
        with _compressing(beside) as file:
            yield file
        if plain:
            if path_is(Path.exists, target):
                beside.chmod(stat.S_IMODE(target.stat().st_mode))
            beside.replace(target)
    except Exception as error:
        reason = system_reason(error)
        if reason is None:
            raise
        raise InputError(f"it cannot be written ({reason})", path=path) from error
    finally:
        if plain:
            with suppress(OSError):
                beside.unlink()


def system_reason(error: Exception) -> str | None:
    """Return the operating system's reason for a failure, None if the cause is another.

    Polars has it at the end of a text only, whatever the type of its error.

    >>> system_reason(OSError("No space left on device (os error 28)"))
    'No space left on device'
    """
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    found = _SYSTEM_ERROR.search(str(error))
    if found:
        return found[1]
    return str(error) if isinstance(error, OSError) else None


def check_writable(path: str | os.PathLike[str]) -> None:
    """Refuse a path that nothing can be written to, before anything is done for it."""
    if path_is(Path.is_dir, Path(path)):
        raise InputError(
            "this is a directory where a file is meant", path=path, hint="name a file in it"
        )
    check_parent(path)


def check_parent(path: str | os.PathLike[str]) -> None:
    """Refuse a path in a folder that does not exist or may not be written into."""
    parent = Path(path).parent
    if not path_is(Path.is_dir, parent):
        raise InputError(
            "the folder to write into does not exist", path=path, hint=f"create {parent} first"
        )
    if not os.access(parent, os.W_OK):
        raise InputError(
            "the folder may not be written into", path=path, hint="check its permissions"
        )


@contextmanager
def _compressing(path: Path) -> Iterator[IO[bytes]]:
    """Open a file to be written, with the compression that its ending names."""
    with path.open("wb") as raw:
        if path.suffix.lower() == ".gz":
            # No name and no time in the header: same input, same bytes.
            with gzip.GzipFile("", "wb", 6, raw, mtime=0) as file:
                yield cast("IO[bytes]", file)
        elif path.suffix.lower() == ".zst":
            with zstd.ZstdFile(raw, "wb") as file:
                yield cast("IO[bytes]", file)
        else:
            yield cast("IO[bytes]", raw)


def path_is(question: Callable[[Path], bool], path: Path) -> bool:
    """Ask something of a path; a path that the system cannot look up is nothing."""
    try:
        return question(path)
    except (OSError, ValueError):
        return False
