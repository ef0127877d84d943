"""Files whose ending says how they are written."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Generic, TypeVar

from karat.data.files import check_writable, writing
from karat.errors import InputError

Content = TypeVar("Content")
Writer = Callable[[Content, IO[bytes]], object]


@dataclass(frozen=True)
class Endings(Generic[Content]):
    """What is written, and the function that writes it for each ending."""

    what: str
    writers: Mapping[str, Writer[Content]]
    hint: str = ""

    def write(self, content: Content, path: str | os.PathLike[str]) -> None:
        """Write a file whole, or not at all."""
        write_to = self._writer(path)
        with writing(path) as file:
            write_to(content, file)

    def check(self, path: str | os.PathLike[str]) -> None:
        """Refuse a path that cannot be written to, before anything is computed."""
        self._writer(path)
        check_writable(path)

    def _writer(self, path: str | os.PathLike[str]) -> Writer[Content]:
        ending = Path(path).suffix.lower()
        if ending not in self.writers:
            raise InputError(
                f"{self.what} cannot be written as {ending!r}",
                path=path,
                hint=f"use one of {', '.join(self.writers)}{self.hint}",
            )
        return self.writers[ending]
