"""HTML reports of several gates: a list of the gates, and next to it one page per gate."""

from __future__ import annotations

import os
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path

from karat.errors import counted
from karat.evaluation.verdict import GateEntry
from karat.files import writing
from karat.report.options import ReportOptions
from karat.report.page import build, html


def page_of(entry: GateEntry) -> bytes:
    """Return the page of one gate, or a page with the error that prevented a verdict."""
    file = BytesIO()
    if entry.verdict is None:
        html.write_failure(entry.title, entry.error or "", file)
    else:
        html.write(build.verdict_page(entry.verdict, ReportOptions(title=entry.title)), file)
    return file.getvalue()


def write(entries: Sequence[GateEntry], path: str | os.PathLike[str]) -> None:
    """Write the page of a single gate, or a list of several with their pages: FILE-1.html etc."""
    target = Path(path)
    pages = [entry.page or page_of(entry) for entry in entries]
    if len(entries) == 1:
        _write(pages[0], target)
        return
    names = [f"{target.stem}-{number}{target.suffix}" for number in range(1, len(pages) + 1)]
    for name, page in zip(names, pages, strict=True):
        _write(page, target.with_name(name))
    file = BytesIO()
    html.write_gates(_title(entries), list(zip(names, entries, strict=True)), file)
    _write(file.getvalue(), target)


def _title(entries: Sequence[GateEntry]) -> str:
    outcomes = [entry.passed for entry in entries]
    failed, undecided = outcomes.count(False), outcomes.count(None)
    parts = [f"{counted(failed, 'gate')} failed"] if failed else []
    parts += [f"{counted(undecided, 'gate')} could not be decided"] if undecided else []
    return f"{', '.join(parts)} of {len(entries):,}" if parts else _all_passed(len(entries))


def _all_passed(number: int) -> str:
    return f"{counted(number, 'gate')} passed" if number else "No gate was asserted"


def _write(page: bytes, path: Path) -> None:
    with writing(path) as file:
        file.write(page)
