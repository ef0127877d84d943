"""Tables that are divided into parts: in memory, or in temporary folders if they do not fit.

Every folder has a lock that ends with its process. A folder is removed when it is closed, and
folders of processes that were killed are removed when the next folder is created.
"""

from __future__ import annotations

import os
import pickle
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
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
    """Return the folder of all spill folders of this user."""
    user = os.getuid() if hasattr(os, "getuid") else "user"
    return Path(tempfile.gettempdir()) / f"karat-spill-{user}"


class PartsInMemory:
    """Parts of tables, in memory."""

    def __init__(self) -> None:
        self._tables: dict[int, list[pl.DataFrame]] = {}
        self._objects: dict[int, list[Any]] = {}

    def add(self, table: pl.DataFrame, part: pl.Series, n_parts: int) -> None:
        """Add the rows of a table to their parts, numbered from 0."""
        for number, rows in divided(table, part, n_parts):
            self._tables.setdefault(number, []).append(rows)

    def part(self, number: int) -> pl.DataFrame | None:
        """Return the rows of a part, in the order in which they were added."""
        tables = self._tables.get(number)
        return None if tables is None else pl.concat(tables)

    def add_object(self, thing: Any, number: int) -> None:
        """Add an object to a part."""
        self._objects.setdefault(number, []).append(thing)

    def objects(self, number: int) -> Iterator[Any]:
        """Yield the objects of a part, in the order in which they were added."""
        yield from self._objects.get(number, ())

    def close(self) -> None:
        """Free the memory."""
        self._tables.clear()
        self._objects.clear()


class SpillFolder:
    """A temporary folder that holds the parts of tables, each in one file per part and table."""

    def __init__(self) -> None:
        remove_leftovers()
        self._lock: int | None
        self.path, self._lock = _new_folder()
        self._n_tables = 0
        self._paths: dict[tuple[int, str], list[Path]] = {}
        """The files with the tables of each part and name; a list of the folder takes longer."""

    def add(self, table: pl.DataFrame, part: pl.Series, n_parts: int, name: str = "rows") -> None:
        """Write the rows of a table to the files of their parts, numbered from 0.

        Tables with different names are read separately.
        """
        try:
            for number, rows in divided(table, part, n_parts):
                path = self.path / f"{number:06}-{name}-{self._n_tables:06}.arrow"
                rows.write_ipc_stream(path)  # many small streams are read much faster than files
                self._paths.setdefault((number, name), []).append(path)
        except Exception as error:
            raise _spill_error(error, self.path) from error
        self._n_tables += 1

    def part(self, number: int, name: str = "rows") -> pl.DataFrame | None:
        """Return the rows of a part, in the order in which they were added."""
        paths = self._paths.get((number, name))
        if paths is None:
            return None
        return pl.concat([pl.read_ipc_stream(path) for path in paths], how="diagonal")

    def store(self, table: pl.DataFrame) -> None:
        """Write a table that is not divided."""
        try:
            table.write_parquet(self.path / f"{self._n_tables:06}.parquet")
        except Exception as error:
            raise _spill_error(error, self.path) from error
        self._n_tables += 1

    def stored(self) -> pl.LazyFrame:
        """Return the rows of all tables that are not divided, in the order they were stored."""
        return pl.scan_parquet(sorted(self.path.glob("*.parquet")))

    def add_object(self, thing: Any, number: int) -> None:
        """Write an object to the files of a part."""
        path = self.path / f"{number:06}-{self._n_tables:06}.pickle"
        try:
            path.write_bytes(pickle.dumps(thing))
        except OSError as error:
            raise _spill_error(error, self.path) from error
        self._n_tables += 1

    def objects(self, number: int) -> Iterator[Any]:
        """Yield the objects of a part, in the order in which they were added."""
        for path in sorted(self.path.glob(f"{number:06}-*.pickle")):
            yield pickle.loads(path.read_bytes())  # noqa: S301 - written by this process

    def close(self) -> None:
        """Remove the folder. Further calls do nothing: the number of the lock is used again."""
        lock, self._lock = self._lock, None
        if lock is None:
            return
        _remove(self.path, lock)
        with suppress(OSError):
            self.path.parent.rmdir()


def divided(
    table: pl.DataFrame, part: pl.Series, n_parts: int
) -> Iterator[tuple[int, pl.DataFrame]]:
    """Yield the number and the rows of each part that has rows. `part` has that of each row."""
    # NumPy sorts such small integers by radix, which is several times as fast.
    numbers = part.cast(pl.UInt16 if n_parts <= 1 << 16 else pl.UInt32).to_numpy()
    table = table[np.argsort(numbers, kind="stable")]
    ends = np.cumsum(np.bincount(numbers, minlength=n_parts)).tolist()
    for number, (start, stop) in enumerate(pairwise([0, *ends])):
        if start < stop:
            yield number, table[start:stop]


def part_numbers(query_ids: pl.Series, n_parts: int) -> pl.Series:
    """Return the part of each query. With a multiple of `n_parts`, parts are divided further."""
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
    """Raise an OSError if another user may have made the folder, who could change its files."""
    if not hasattr(os, "getuid"):
        return
    status = parent.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
        raise PermissionError(f"{parent} is not a folder of this user")


def _remove(folder: Path, lock: int) -> None:
    """Remove a folder whose lock this process has."""
    shutil.rmtree(folder, ignore_errors=True)
    with suppress(OSError):
        os.close(lock)
    if sys.platform == "win32":  # a file can be removed only after it was closed
        shutil.rmtree(folder, ignore_errors=True)


def _locked(path: Path) -> int:
    """Open and lock a file; raise an OSError if another process has locked or removed it."""
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


def _spill_error(error: Exception, folder: Path) -> Exception:
    reason = system_reason(error)
    if reason is None:
        return error
    return InputError(
        f"writing temporary files failed: {reason}",
        path=folder,
        hint="free some space, set the environment variable TMPDIR to another folder, or raise "
        "--memory (memory=)",
    )
