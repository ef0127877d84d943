"""The cache of karat: search indexes that were built once, and scripts of the HTML report.

Each index is a folder with a manifest, which lists the size and the SHA-256 of every file. A folder
is written under another name and renamed at the end, so that it is complete or does not exist.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from karat.errors import warn
from karat.files import BLOCK_BYTES, system_reason

INDEXES = "indexes"
"""The folder of the indexes inside the cache."""
_MANIFEST = "manifest.json"
_Index = TypeVar("_Index")


@dataclass(frozen=True)
class CacheEntry:
    """One file or index in the cache."""

    path: Path
    bytes: int
    about: str = ""
    """What an index was built from."""

    @property
    def name(self) -> str:
        """The name of the file or folder."""
        return self.path.name

    def as_dict(self) -> dict[str, Any]:
        """Return the entry, for JSON."""
        return {"name": self.name, "about": self.about or None, "bytes": self.bytes}


class _StoredFile(msgspec.Struct):
    """The size and the checksum of a file of an index."""

    bytes: int
    sha256: str


class _Manifest(msgspec.Struct):
    """The content of a manifest."""

    about: str
    settings: dict[str, Any]
    files: dict[str, _StoredFile]


@dataclass(frozen=True)
class IndexKey:
    """What an index depends on: its kind, and the settings that determine its content."""

    kind: str
    about: str
    """The corpus and the number of items, for people."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Everything that influences the content, including the hash of the items."""

    @property
    def name(self) -> str:
        """The name of the folder: the kind, and a hash of the settings."""
        digest = hashlib.sha256(msgspec.json.encode(self.settings, order="sorted")).hexdigest()
        return f"{self.kind}-{digest[:24]}"


def cache_folder() -> Path | None:
    """Return the cache folder of karat, or None if the user has no home folder."""
    chosen = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    try:
        return (Path(chosen) if chosen else Path.home() / ".cache") / "karat"
    except RuntimeError:  # no home
        return None


def cached_entries() -> list[CacheEntry]:
    """Return everything in the cache, sorted by name."""
    folder = cache_folder()
    if folder is None or not folder.is_dir():
        return []
    paths = [path for path in folder.iterdir() if path.name != INDEXES]
    if (folder / INDEXES).is_dir():
        paths += (folder / INDEXES).iterdir()
    return [CacheEntry(path, _size(path), _about(path)) for path in sorted(paths)]


def clear_cache() -> list[CacheEntry]:
    """Remove everything from the cache, and return what was removed."""
    removed = []
    for entry in cached_entries():
        if entry.path.is_dir() and not entry.path.is_symlink():
            shutil.rmtree(entry.path, ignore_errors=True)
        else:
            with suppress(OSError):
                entry.path.unlink()
        if not os.path.lexists(entry.path):
            removed.append(entry)
    return removed


def load_or_build(
    key: IndexKey,
    *,
    build: Callable[[], _Index],
    save: Callable[[_Index, Path], None],
    load: Callable[[Path], _Index],
    is_current: Callable[[_Index], bool] = lambda _: True,
    use_cache: bool = True,
) -> _Index:
    """Return an index from the cache; if it is missing, damaged or outdated, build and store it.

    If `build` raises an error, nothing is stored. An index that cannot be stored is still returned.
    """
    cache = cache_folder() if use_cache else None
    if cache is None:
        return build()
    folder = cache / INDEXES / key.name
    replaces = folder.exists()
    if replaces:
        problem = _damage(folder)
        if problem is None:
            index = load(folder)
            if is_current(index):
                return index
            problem = "the embedder returns other vectors than before"
        warn(f"the index {folder} is built again: {problem}", stacklevel=2)
    index = build()
    try:
        _store(index, save, key, folder, replaces=replaces)
    except OSError as error:
        warn(
            f"the index was not stored in {folder.parent}: {system_reason(error)}; the next "
            "run builds it again",
            stacklevel=2,
        )
    return index


def _store(
    index: _Index,
    save: Callable[[_Index, Path], None],
    key: IndexKey,
    folder: Path,
    *,
    replaces: bool,
) -> None:
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = folder.with_name(f".{secrets.token_hex(6)}-{folder.name}")
    try:
        temporary.mkdir()
        save(index, temporary)
        files = {
            path.name: _StoredFile(path.stat().st_size, _checksum(path))
            for path in sorted(temporary.iterdir())
        }
        manifest = _Manifest(key.about, dict(key.settings), files)
        (temporary / _MANIFEST).write_bytes(msgspec.json.encode(manifest))
        if replaces:
            shutil.rmtree(folder, ignore_errors=True)
        try:
            temporary.replace(folder)
        except OSError:
            if not folder.is_dir():  # otherwise another process has just stored the same index
                raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _damage(folder: Path) -> str | None:
    """Return what is wrong with a stored index, or None."""
    try:
        manifest = msgspec.json.decode((folder / _MANIFEST).read_bytes(), type=_Manifest)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return f"{_MANIFEST} is missing or damaged"
    for name, stored in manifest.files.items():
        path = folder / name
        try:
            is_intact = path.stat().st_size == stored.bytes and _checksum(path) == stored.sha256
        except OSError:
            is_intact = False
        if not is_intact:
            return f"{name} is missing or damaged"
    return None


def _checksum(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(BLOCK_BYTES):
            digest.update(block)
    return digest.hexdigest()


def _size(path: Path) -> int:
    if path.is_dir() and not path.is_symlink():
        return sum(_size(child) for child in path.iterdir())
    return path.lstat().st_size


def _about(path: Path) -> str:
    with suppress(OSError, msgspec.DecodeError, UnicodeDecodeError):
        return msgspec.json.decode((path / _MANIFEST).read_bytes(), type=_Manifest).about
    return ""
