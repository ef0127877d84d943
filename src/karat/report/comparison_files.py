"""Comparisons in files; the ending says how they are written."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from karat.data.files import check_writable, writing
from karat.errors import InputError
from karat.report.comparison import ComparisonSheet, comparison_document
from karat.report.comparison_text import markdown
from karat.report.document import encoded
from karat.report.latex import latex


def write(sheet: ComparisonSheet, path: str | os.PathLike[str]) -> None:
    """Write a comparison."""
    made = _writer(path)(sheet)
    with writing(path) as file:
        file.write(made)


def check(path: str | os.PathLike[str]) -> None:
    """Refuse a path that a comparison cannot be written to, before anything is computed."""
    _writer(path)
    check_writable(path)


def _writer(path: str | os.PathLike[str]) -> Callable[[ComparisonSheet], bytes]:
    ending = Path(path).suffix.lower()
    if ending not in WRITERS:
        raise InputError(
            f"a comparison cannot be written as {ending!r}",
            path=path,
            hint=f"use one of {', '.join(WRITERS)}",
        )
    return WRITERS[ending]


def _csv(sheet: ComparisonSheet) -> bytes:
    """Return a row a pair and measure, or a row for each group of these where groups are asked."""
    return (sheet.pairs if sheet.groups is None else sheet.groups).write_csv().encode()


WRITERS: dict[str, Callable[[ComparisonSheet], bytes]] = {
    ".json": lambda sheet: encoded(comparison_document(sheet)) + b"\n",
    ".csv": _csv,
    ".md": lambda sheet: markdown(sheet).encode(),
    ".tex": lambda sheet: latex(sheet).encode(),
}
