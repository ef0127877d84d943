"""Writing results to files; the extension selects the format."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Generic, TypeVar

from karat.errors import InputError
from karat.files import check_writable, writing

Content = TypeVar("Content")
Writer = Callable[[Content, IO[bytes]], object]
QUERIES_SUFFIX = ".queries"
"""Precedes the extension of the second file, which holds the values per query."""

REPORT_HINT = "; for a report, use .html, .png or .svg or, in Python, `.report(path)`"
"""Part of the hint for an unknown extension: HTML reports have a method of their own."""


@dataclass(frozen=True)
class Writers(Generic[Content]):
    """The functions that write one kind of result, by file extension."""

    what: str
    writers: Mapping[str, Writer[Content]]
    queries: Mapping[str, Writer[Content]] = field(default_factory=dict)
    """For formats that hold only one table: writers of a second file with the queries."""
    hint: str = ""

    def write(self, content: Content, path: str | os.PathLike[str]) -> list[Path]:
        """Write a file and its companion file, if any, atomically; return their paths."""
        writers = self._writers(path)
        with ExitStack() as stack:
            # All files are written before the first one is renamed to its final path.
            files = [stack.enter_context(writing(file_path)) for file_path in writers]
            for write_to, file in zip(writers.values(), files, strict=True):
                write_to(content, file)
        return list(writers)

    def check(self, paths: Iterable[str | os.PathLike[str]]) -> None:
        """Raise InputError for paths that cannot be written, before anything is computed."""
        written: set[Path] = set()
        for path in paths:
            for file_path in self._writers(path):
                check_writable(file_path)
                if file_path.absolute() in written:
                    raise duplicate_path_error(file_path)
                written.add(file_path.absolute())

    def _writers(self, path: str | os.PathLike[str]) -> dict[Path, Writer[Content]]:
        """Return the writers of a file and of its companion file, by path."""
        target = Path(path)
        extension = target.suffix.lower()
        if extension not in self.writers:
            raise InputError(
                f"{self.what} cannot be written as {extension!r}",
                path=path,
                hint=f"use one of {', '.join(self.writers)}{self.hint}",
            )
        writers = {target: self.writers[extension]}
        if extension in self.queries:
            companion = target.with_suffix(QUERIES_SUFFIX + target.suffix)
            writers[companion] = self.queries[extension]
        return writers


def duplicate_path_error(path: Path) -> InputError:
    """Return the error for a path that is requested twice."""
    return InputError("this file would be written twice", path=path, hint="use a different path")
