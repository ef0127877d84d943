"""Files that are written in the format that their extension names."""

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
"""What comes before the extension of the second file, which holds the queries."""

REPORT_HINT = "; a report is .html, in Python `.report(path)`"
"""What a hint says of pages: they show far more than a sheet and are written apart."""


@dataclass(frozen=True)
class Writers(Generic[Content]):
    """What is written, and the function that writes it for each ending."""

    what: str
    writers: Mapping[str, Writer[Content]]
    queries: Mapping[str, Writer[Content]] = field(default_factory=dict)
    """For endings whose files hold one table alone: what writes the queries beside it."""
    hint: str = ""

    def write(self, content: Content, path: str | os.PathLike[str]) -> list[Path]:
        """Write a file, and the one that belongs to it, whole or not at all; return their paths."""
        writers = self._writers(path)
        with ExitStack() as stack:
            # All are written before the first takes its place.
            files = [stack.enter_context(writing(each)) for each in writers]
            for write_to, file in zip(writers.values(), files, strict=True):
                write_to(content, file)
        return list(writers)

    def check(self, paths: Iterable[str | os.PathLike[str]]) -> None:
        """Refuse paths that cannot be written to, before anything is computed."""
        written: set[Path] = set()
        for path in paths:
            for each in self._writers(path):
                check_writable(each)
                if each.absolute() in written:
                    raise duplicate_path_error(each)
                written.add(each.absolute())

    def _writers(self, path: str | os.PathLike[str]) -> dict[Path, Writer[Content]]:
        """Return what writes the file, and the one that belongs to it."""
        given = Path(path)
        ending = given.suffix.lower()
        if ending not in self.writers:
            raise InputError(
                f"{self.what} cannot be written as {ending!r}",
                path=path,
                hint=f"use one of {', '.join(self.writers)}{self.hint}",
            )
        writers = {given: self.writers[ending]}
        if ending in self.queries:
            writers[given.with_suffix(QUERIES_SUFFIX + given.suffix)] = self.queries[ending]
        return writers


def duplicate_path_error(path: Path) -> InputError:
    """Make the error for a file that is asked for twice."""
    return InputError("this file would be written twice", path=path, hint="name another file")
