"""Input files of gold, runs, corpora and chunks: path, format, name and column mapping."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from karat.data.columns import Columns
from karat.files import Source, without_compression
from karat.steps import tracked

Piece = TypeVar("Piece")

ENDINGS = (
    ".jsonl",
    ".ndjson",
    ".json",
    ".csv",
    ".tsv",
    ".parquet",
    ".arrow",
    ".feather",
    ".ipc",
    ".txt",
    ".run",
    ".trec",
    ".qrels",
)


@dataclass(frozen=True)
class PathSource:
    """A path or a glob pattern with its options, to be opened later."""

    path: str | os.PathLike[str]
    format: str | None = None
    columns: Columns = field(default_factory=Columns)
    """The explicit mapping of columns and keys, if any."""
    queries: str | os.PathLike[str] | None = None
    """A file with the texts of the queries, for gold without texts."""


def path_of(source: Any) -> str | None:
    """Return the path of a source, or None if it is not a path."""
    path = source.path if isinstance(source, PathSource) else source
    return os.fspath(path) if isinstance(path, (str, os.PathLike)) else None


class DataFile(Source):
    """A file of gold, a run, a corpus or chunks, with its mapping of columns and keys."""

    def __init__(self, path: str | os.PathLike[str], columns: Columns | None = None) -> None:
        super().__init__(path)
        self.columns = Columns() if columns is None else columns

    def tracked(self, pieces: Iterable[Piece], activity: str) -> Iterator[Piece]:
        """Yield the pieces of the file and report how much of it has been read."""
        last = 0

        def new_bytes(_: Piece) -> int:
            nonlocal last
            before, last = last, self.n_read
            return last - before

        size = self.path.stat().st_size
        yield from tracked(pieces, f"{activity} {self.path.name}", size, new_bytes)

    @property
    def name(self) -> str:
        """The file name without folder and extensions, which is the default name of a run."""
        return plain_name(self.path)


def plain_name(path: str | os.PathLike[str]) -> str:
    """Return a file name without its folder and without extensions of formats and compression."""
    bare = without_compression(Path(path))
    return bare.stem if bare.suffix.lower() in ENDINGS else bare.name
