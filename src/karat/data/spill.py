"""Tables that are divided into parts: in memory, or in temporary folders if they do not fit.

Each folder contains a lock file, which the operating system unlocks when the process ends. A folder
is removed when it is closed. Folders of killed processes are removed when a process creates the
next folder or prepares gold.
"""

from __future__ import annotations

import os
import pickle
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from karat.errors import InputError
from karat.files import system_reason

_LOCK = "lock"
_N_ATTEMPTS = 100


def _parent() -> Path:
    """Return the folder that contains all spill folders of this user."""
    user = os.getuid() if hasattr(os, "getuid") else "user"
    return Path(tempfile.gettempdir()) / f"karat-spill-{user}"


class PartsInMemory:
    """Parts of tables, in memory."""

    def __init__(self) -> None:
        self._tables: dict[int, list[pl.DataFrame]] = {}
        self._objects: dict[int, list[Any]] = {}

    def add(self, table: pl.DataFrame, part: pl.Series, n_parts: int) -> None:
        """Add the rows of a table to their parts. `part` holds the part number of each row."""
        for number, rows in divided(table, part, n_parts):
            self._tables.setdefault(number, []).append(rows)

    def part(self, number: int) -> pl.DataFrame | None:
        """Return the rows of a part, in the order in which they were added, or None."""
        tables = self._tables.get(number)
        return None if tables is None else pl.concat(tables, how="diagonal")

    def add_object(self, value: Any, number: int) -> None:
        """Add an object to a part."""
        self._objects.setdefault(number, []).append(value)

    def objects(self, number: int) -> Iterator[Any]:
        """Yield the objects of a part, in the order in which they were added."""
        yield from self._objects.get(number, ())

    def close(self) -> None:
        """Free the memory."""
        self._tables.clear()
        self._objects.clear()


class SpillFolder:
    """A temporary folder for tables that are divided into parts, whole tables, and objects.

    Each part has one file per kind of content, to which tables or objects are appended. Each whole
    table is a Parquet file of its own.
    """

    def __init__(self) -> None:
        remove_leftovers()
        self._lock: int | None
        self.path, self._lock = _new_folder()
        self._starts: dict[Path, list[int]] = {}
        """For each file of divided tables, the byte offsets at which its tables start."""
        self._n_whole = 0

    def add(self, table: pl.DataFrame, part: pl.Series, n_parts: int, name: str = "rows") -> None:
        """Append each row of a table to the file of its part. `part` holds the part numbers.

        Tables with different names are in different files.
        """
        with self._writing():
            for number, rows in divided(table, part, n_parts):
                path = self._path(number, name)
                with path.open("ab") as file:
                    self._starts.setdefault(path, []).append(file.tell())
                    # Many small Arrow streams are read much faster than small Arrow files.
                    rows.write_ipc_stream(file)

    def part(self, number: int, name: str = "rows") -> pl.DataFrame | None:
        """Return the rows of a part, in the order in which they were added, or None."""
        path = self._path(number, name)
        starts = self._starts.get(path)
        if starts is None:
            return None
        content = path.read_bytes()
        streams = (content[start:stop] for start, stop in pairwise([*starts, len(content)]))
        return pl.concat(map(pl.read_ipc_stream, streams), how="diagonal")

    def add_object(self, value: Any, number: int) -> None:
        """Append an object to the file of a part."""
        with self._writing(), self._path(number, "objects").open("ab") as file:
            pickle.dump(value, file)

    def objects(self, number: int) -> Iterator[Any]:
        """Yield the objects of a part, in the order in which they were added."""
        path = self._path(number, "objects")
        if not path.exists():
            return
        size = path.stat().st_size
        with path.open("rb") as file:
            while file.tell() < size:
                yield pickle.load(file)  # noqa: S301 - written by this process

    def write_whole(self, table: pl.DataFrame) -> None:
        """Write a table as a whole."""
        with self._writing():
            table.write_parquet(self.path / f"{self._n_whole:09}.parquet")
        self._n_whole += 1

    def scan_whole(self) -> pl.LazyFrame:
        """Return the rows of all tables that `write_whole` wrote, in that order."""
        return pl.scan_parquet(sorted(self.path.glob("*.parquet")))

    def _path(self, number: int, name: str) -> Path:
        return self.path / f"{number}-{name}"

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """State the folder and a remedy in errors of the operating system."""
        try:
            yield
        except Exception as error:
            if system_reason(error) is None:
                raise
            raise _spill_error(error, self.path.parent) from error

    def close(self) -> None:
        """Remove the folder.

        Later calls do nothing, because the system may have reused the descriptor of the lock.
        """
        if self._lock is None:
            return
        shutil.rmtree(self.path, ignore_errors=True)  # if interrupted, `close` can be called again
        lock, self._lock = self._lock, None
        _remove(self.path, lock)
        with suppress(OSError):
            self.path.parent.rmdir()


def divided(
    table: pl.DataFrame, part: pl.Series, n_parts: int
) -> Iterator[tuple[int, pl.DataFrame]]:
    """Yield the number and the rows of each part that has rows.

    `part` holds the part number of each row.
    """
    # NumPy uses radix sort for 16-bit integers, several times as fast as sorting larger ones.
    numbers = part.cast(pl.UInt16 if n_parts <= 1 << 16 else pl.UInt32).to_numpy()
    table = table[np.argsort(numbers, kind="stable")]
    ends = np.cumsum(np.bincount(numbers, minlength=n_parts)).tolist()
    for number, (start, stop) in enumerate(pairwise([0, *ends])):
        if start < stop:
            yield number, table[start:stop]


def part_numbers(query_ids: pl.Series, n_parts: int) -> pl.Series:
    """Return the part of each query.

    Part i of n consists of the parts i, i + n, i + 2n, … of any multiple of n.
    """
    return query_ids.hash() % n_parts


def remove_leftovers() -> None:
    """Remove the spill folders of processes that were killed."""
    parent = _parent()
    with suppress(OSError):
        _check_owner(parent)
        for folder in parent.iterdir():
            with suppress(OSError):
                _remove(folder, _locked(folder / _LOCK))
        parent.rmdir()  # fails while other processes have folders in it


def _new_folder() -> tuple[Path, int]:
    """Create a folder and return its path and the descriptor of its lock."""
    parent = _parent()
    error: OSError
    for _ in range(_N_ATTEMPTS):
        try:
            parent.mkdir(mode=0o700, exist_ok=True)
            _check_owner(parent)
            path = Path(tempfile.mkdtemp(dir=parent))
            return path, _locked(path / _LOCK)
        except (FileExistsError, FileNotFoundError, BlockingIOError) as removed:
            error = removed  # another process removed one of the folders at the same time
        except OSError as other:
            error = other
            break
    raise _spill_error(error, parent) from error


def _check_owner(parent: Path) -> None:
    """Raise an OSError unless this user owns the folder; its owner could replace the files."""
    if not hasattr(os, "getuid"):
        return
    status = parent.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
        raise PermissionError("it belongs to another user, or is not a folder")


def _remove(folder: Path, lock: int) -> None:
    """Remove a folder whose lock this process holds."""
    shutil.rmtree(folder, ignore_errors=True)
    with suppress(OSError):
        os.close(lock)
    if sys.platform == "win32":  # a file can be removed only after it was closed
        shutil.rmtree(folder, ignore_errors=True)


def _locked(path: Path) -> int:
    """Open and lock a file; raise an OSError if it is already locked, or was removed."""
    if sys.platform == "win32":
        with suppress(FileNotFoundError):
            path.unlink()  # fails while another process has the file open
        return os.open(path, os.O_RDWR | os.O_CREAT)
    import fcntl

    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not os.path.samestat(os.fstat(descriptor), path.stat()):
            raise FileNotFoundError(path)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _spill_error(error: Exception, folder: Path) -> InputError:
    remedy = "a folder with enough space, or raise --memory (memory=)"
    if isinstance(error, PermissionError):
        remedy = "a folder that you may write to"
    return InputError(
        f"writing temporary files failed: {system_reason(error)}",
        path=folder,
        hint=f"set the environment variable TMPDIR to {remedy}",
    )
