"""Files of gold, runs, corpora and chunks: their format, their name and the names of columns."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from karat.data.columns import Columns
from karat.files import Source, without_compression

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
    """A path or a glob, and its format if that was said: for an engine to open."""

    path: str | os.PathLike[str]
    format: str | None = None
    columns: Columns = field(default_factory=Columns)
    """What the file calls karat's columns and keys, where that was said."""
    queries: str | os.PathLike[str] | None = None
    """A file with the texts of the queries, for gold that has none."""


def path_of(source: Any) -> str | None:
    """Return the path that a source was given by, if it was."""
    path = source.path if isinstance(source, PathSource) else source
    return os.fspath(path) if isinstance(path, (str, os.PathLike)) else None


class DataFile(Source):
    """A file of gold, a run, a corpus or chunks, and what it calls karat's columns and keys."""

    def __init__(self, path: str | os.PathLike[str], columns: Columns | None = None) -> None:
        super().__init__(path)
        self.columns = Columns() if columns is None else columns

    @property
    def name(self) -> str:
        """The file's name without folder and endings: what a run is called if nobody says."""
        return plain_name(self.path)


def plain_name(path: str | os.PathLike[str]) -> str:
    """Return a file's name without its folder and the endings that say how it is written."""
    bare = without_compression(Path(path))
    return bare.stem if bare.suffix.lower() in ENDINGS else bare.name
