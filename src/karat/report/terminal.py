"""The table in a terminal: measures as rows, runs as columns; plain when piped."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Sequence
from unicodedata import combining, east_asian_width

from karat.errors import printable
from karat.report.sheet import Sheet, methods, remarks
from karat.report.tables import group_fields, group_table, query_table, table_rows

WIDTH = 80
_NAME_WIDTH = 24
_LABEL_WIDTH = 48


def show(sheets: Sequence[Sheet]) -> None:
    """Print the table, then groups and queries where they were asked, then the remarks."""
    heads = ["measure", *(short(sheet.name, _NAME_WIDTH) for sheet in sheets), "n"]
    print_wide(heads, table_rows(sheets), 1, n_last=1)
    for sheet in sheets:
        if (table := group_table(sheet)) is not None:
            fields = group_fields(sheet)
            print(f"\n{short(sheet.name, _LABEL_WIDTH)} by {', '.join(map(printable, fields))}")
            print_wide(*table, len(fields))
    for sheet in sheets:
        if (table := query_table(sheet)) is not None:
            print(f"\n{short(sheet.name, WIDTH)}")
            print_wide(*table, 1)
    _print_remarks(sheets)


def print_wide(heads: list[str], rows: list[list[str]], n_labels: int, *, n_last: int = 0) -> None:
    """Print a table as wide as the terminal is, in several where it does not fit."""
    for number, part in enumerate(_shared_out(heads, rows, n_labels, n_last, _width(), _gap())):
        if number:
            print()
        _print_table(part[0], part[1:], n_labels)


def wide_lines(heads: list[str], rows: list[list[str]], n_labels: int, n_last: int) -> list[str]:
    """Return a table as lines of text, in several where it does not fit 80 columns."""
    lines: list[str] = []
    for part in _shared_out(heads, rows, n_labels, n_last, WIDTH, 2):
        lines += [""] * bool(lines) + plain_lines(part[0], part[1:], n_labels)
    return lines


def _shared_out(
    heads: list[str], rows: list[list[str]], n_labels: int, n_last: int, width: int, gap: int
) -> list[list[list[str]]]:
    """Share the columns of a table out over as many tables as it takes to fit a width.

    The first columns, the labels, and the last ones stand in each of them.
    """
    lines = [[short(cell, _LABEL_WIDTH) for cell in line] for line in [heads, *rows]]
    sizes = [max(map(width_of, column)) + gap for column in zip(*lines, strict=True)]
    end = len(heads) - n_last
    labels, last = list(range(n_labels)), list(range(end, len(heads)))
    room = width + gap - sum(sizes[c] for c in [*labels, *last])
    blocks: list[list[int]] = [[]]
    for at in range(n_labels, end):
        if blocks[-1] and sum(sizes[c] for c in [*blocks[-1], at]) > room:
            blocks.append([])
        blocks[-1].append(at)
    return [[[line[c] for c in [*labels, *block, *last]] for line in lines] for block in blocks]


def _print_table(heads: list[str], rows: list[list[str]], n_labels: int) -> None:
    if _ruled():
        _print_rich(heads, rows, n_labels)
        return
    print("\n".join(plain_lines(heads, rows, n_labels)))


def plain_lines(heads: list[str], rows: list[list[str]], n_labels: int) -> list[str]:
    """Return a table as lines of text: labels to the left, numbers to the right."""
    sizes = [max(width_of(line[at]) for line in [heads, *rows]) for at in range(len(heads))]
    lines = []
    for line in [heads, *rows]:
        cells = []
        for at, (cell, size) in enumerate(zip(line, sizes, strict=True)):
            gap = " " * (size - width_of(cell))
            cells.append(cell + gap if at < n_labels else gap + cell)
        lines.append("  ".join(cells).rstrip())
    return lines


def _print_rich(heads: list[str], rows: list[list[str]], n_labels: int) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    for at, head in enumerate(heads):
        label = at < n_labels
        table.add_column(
            Text(head), justify="left" if label else "right", style="bold" if at == 0 else None
        )
    for row in rows:
        table.add_row(*map(Text, row))
    Console().print(table)


def _print_remarks(sheets: Sequence[Sheet]) -> None:
    for method in methods(sheets):
        print("\n".join(textwrap.wrap(printable(method), WIDTH, subsequent_indent="  ")))
    for remark in remarks(sheets):
        print(printable(remark))
    for line in sheets[0].way():
        print("\n".join(textwrap.wrap(line, WIDTH, subsequent_indent="  ")))


def short(text: str, width: int) -> str:
    """Return a text that fits a width, and can be printed."""
    text = printable(text)
    if width_of(text) <= width:
        return text
    # Names differ at either end, so the middle goes.
    half = width // 2
    head, tail = "", ""
    for character in text:
        if width_of(head + character) > half - 1:
            break
        head += character
    for character in reversed(text):
        if width_of(character + tail) > half:
            break
        tail = character + tail
    return f"{head}…{tail}"


def width_of(text: str) -> int:
    """Return how many columns a text takes: wide characters two, combining ones none."""
    if text.isascii():
        return len(text)
    return sum(
        0 if combining(character) else 1 + (east_asian_width(character) in "WF")
        for character in text
    )


def _ruled() -> bool:
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ


def _gap() -> int:
    """Return how far columns stand apart."""
    return 3 if _ruled() else 2


def _width() -> int:
    columns = shutil.get_terminal_size((WIDTH, 24)).columns if sys.stdout.isatty() else WIDTH
    return columns - 2 * _ruled()  # a ruled table has an edge on either side
