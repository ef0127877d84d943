"""Verdicts in files; the ending says how they are written."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from karat.data.files import check_writable, writing
from karat.errors import InputError
from karat.report.document import encoded
from karat.report.verdict_junit import junit
from karat.report.verdict_text import markdown
from karat.version import __version__

if TYPE_CHECKING:
    from karat.report.verdict import Entry


def document(entries: Sequence[Entry]) -> dict[str, Any]:
    """Return a report as plain data; `passed` is null where a gate could not be judged."""
    outcomes = [entry.passed for entry in entries]
    unknown = None in outcomes or not outcomes
    return {
        "karat": __version__,
        "passed": False if False in outcomes else None if unknown else True,
        "gates": [entry.as_dict() for entry in entries],
    }


def write(entries: Sequence[Entry], path: str | os.PathLike[str]) -> None:
    """Write the gates of a report."""
    made = _writer(path)(entries)
    with writing(path) as file:
        file.write(made)


def check(path: str | os.PathLike[str]) -> None:
    """Refuse a path that a report cannot be written to, before anything is computed."""
    _writer(path)
    check_writable(path)


def _writer(path: str | os.PathLike[str]) -> Callable[[Sequence[Entry]], bytes]:
    ending = Path(path).suffix.lower()
    if ending not in WRITERS:
        raise InputError(
            f"a verdict cannot be written as {ending!r}",
            path=path,
            hint=f"use one of {', '.join(WRITERS)}; .xml is JUnit",
        )
    return WRITERS[ending]


WRITERS: dict[str, Callable[[Sequence[Entry]], bytes]] = {
    ".xml": junit,
    ".md": lambda entries: markdown(entries).encode(),
    ".json": lambda entries: encoded(document(entries)) + b"\n",
}
