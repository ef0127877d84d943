"""Scores as tables in a terminal: measures as rows, runs as columns; plain text when piped."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from unicodedata import combining, east_asian_width

from karat.errors import printable
from karat.evaluation.remarks import scoring_notes
from karat.report.bars import CHARACTERS, LEGEND, ValueBar, ValueBars, group_value_bars, value_bars
from karat.report.sheet import Sheet, interval_methods, remarks
from karat.report.tables import (
    BETTER,
    WORSE,
    group_table,
    query_table,
    table_heads,
    table_rows,
)

WIDTH = 80
_NAME_WIDTH = 24
_LABEL_WIDTH = 48
_BAR_WIDTHS = range(8, 3, -1)
_COLOURS = {f"[{CHARACTERS}]+$": "cyan", f"^ *{BETTER}": "green", f"^ *{WORSE}": "red"}
_NO_BARS: ValueBars = {}

TextRows = list[list[str]]


def show(sheets: Sequence[Sheet]) -> None:
    """Print the table of values, then groups and queries if requested, then the remarks."""
    heads = table_heads(sheets, [shorten(sheet.name, _NAME_WIDTH) for sheet in sheets])
    has_bars = print_table(heads, table_rows(sheets), 1, n_last=1, bars=value_bars(sheets))
    for sheet in sheets:
        if (table := group_table(sheet)) is not None:
            fields = sheet.group_fields
            print(f"\n{shorten(sheet.name, _LABEL_WIDTH)} by {', '.join(map(printable, fields))}")
            has_bars |= print_table(*table, len(fields), bars=group_value_bars(sheet))
    for sheet in sheets:
        if (table := query_table(sheet)) is not None:
            print(f"\n{shorten(sheet.name, WIDTH)}")
            print_table(*table, 1)
    if has_bars:
        print(LEGEND)
    _print_remarks(sheets)


def print_table(
    heads: list[str],
    rows: list[list[str]],
    n_labels: int,
    *,
    n_last: int = 0,
    bars: ValueBars = _NO_BARS,
) -> bool:
    """Print a table, split into several if it is wider than the terminal.

    The first `n_labels` and the last `n_last` columns are repeated in each part. In a terminal,
    values are followed by bars if they fit. Returns whether bars were printed.
    """
    lines, has_bars = _shorten_cells(heads, rows), False
    blocks = _split_columns(lines, n_labels, n_last, _table_width(), _gap_width())
    if any(bar.ends for bar in bars.values()) and _supports_bars():
        for width in _BAR_WIDTHS:
            wider = [lines[0], *_with_bars(lines[1:], bars, width)]
            if _fits(wider, blocks, _table_width(), _gap_width()):
                lines, has_bars = wider, True
                break
    for number, block in enumerate(blocks):
        if number:
            print()
        part = [[line[column] for column in block] for line in lines]
        if _is_ruled():
            bold = {(at, c) for at, c in _best_cells(bars) if c in block}
            _print_rich(part, n_labels, {(at, block.index(c)) for at, c in bold})
        else:
            print("\n".join(plain_lines(part[0], part[1:], n_labels)))
    return has_bars


def table_lines(heads: list[str], rows: list[list[str]], n_labels: int, n_last: int) -> list[str]:
    """Return a table as lines of text, split into several if it is wider than 80 columns."""
    all_lines = _shorten_cells(heads, rows)
    lines: list[str] = []
    for block in _split_columns(all_lines, n_labels, n_last, WIDTH, 2):
        part = [[line[column] for column in block] for line in all_lines]
        if lines:
            lines.append("")
        lines += plain_lines(part[0], part[1:], n_labels)
    return lines


def _shorten_cells(heads: list[str], rows: list[list[str]]) -> TextRows:
    return [[shorten(cell, _LABEL_WIDTH) for cell in line] for line in [heads, *rows]]


def _split_columns(
    lines: TextRows, n_labels: int, n_last: int, width: int, gap: int
) -> list[list[int]]:
    """Distribute the columns over as many tables as needed to fit a width.

    The label columns and the last columns are repeated in each table.
    """
    sizes = [size + gap for size in _column_widths(lines)]
    end = len(sizes) - n_last
    labels, last = list(range(n_labels)), list(range(end, len(sizes)))
    room = width + gap - sum(sizes[c] for c in [*labels, *last])
    blocks: list[list[int]] = [[]]
    for at in range(n_labels, end):
        if blocks[-1] and sum(sizes[c] for c in [*blocks[-1], at]) > room:
            blocks.append([])
        blocks[-1].append(at)
    return [[*labels, *block, *last] for block in blocks]


def _fits(lines: TextRows, blocks: list[list[int]], width: int, gap: int) -> bool:
    """Return whether each block of columns fits a width."""
    sizes = _column_widths(lines)
    return all(sum(sizes[c] + gap for c in block) - gap <= width for block in blocks)


def _with_bars(rows: TextRows, bars: ValueBars, width: int) -> TextRows:
    """Return rows with a bar after each value; values without one get spaces to stay aligned."""
    columns = {column for (_, column), bar in bars.items() if bar.ends is not None}
    none = ValueBar(None, best=False)
    return [
        [
            f"{cell} {bars.get((at, column), none).bar(width)}" if column in columns else cell
            for column, cell in enumerate(row)
        ]
        for at, row in enumerate(rows)
    ]


def _best_cells(bars: ValueBars) -> Iterator[tuple[int, int]]:
    return (cell for cell, bar in bars.items() if bar.best)


def _column_widths(lines: TextRows) -> list[int]:
    return [max(map(cell_width, column)) for column in zip(*lines, strict=True)]


def plain_lines(heads: list[str], rows: list[list[str]], n_labels: int) -> list[str]:
    """Return a table as lines of text: labels are left-aligned, numbers right-aligned."""
    return ["  ".join(line).rstrip() for line in _pad_cells([heads, *rows], n_labels)]


def _pad_cells(lines: TextRows, n_labels: int) -> Iterator[list[str]]:
    """Yield lines with each cell padded to the width of its column."""
    sizes = _column_widths(lines)
    for line in lines:
        gaps = [" " * (size - cell_width(cell)) for cell, size in zip(line, sizes, strict=True)]
        yield [
            cell + gap if at < n_labels else gap + cell
            for at, (cell, gap) in enumerate(zip(line, gaps, strict=True))
        ]


def _print_rich(lines: TextRows, n_labels: int, bold: set[tuple[int, int]]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    heads, *rows = _pad_cells(lines, n_labels)
    for at, head in enumerate(heads):
        table.add_column(Text(head), style="bold" if at == 0 else None)
    for at, row in enumerate(rows):
        cells = [Text(cell) for cell in row]
        for column, cell in enumerate(cells[n_labels:], start=n_labels):
            for pattern, style in _COLOURS.items():
                cell.highlight_regex(pattern, style)
            if (at, column) in bold:
                cell.highlight_regex(r"^ *[^ ]+", "bold")
        table.add_row(*cells)
    Console().print(table)


def _print_remarks(sheets: Sequence[Sheet]) -> None:
    for method in interval_methods(sheets):
        print("\n".join(textwrap.wrap(printable(method), WIDTH, subsequent_indent="  ")))
    for remark in remarks(sheets):
        print(printable(remark))
    for line in scoring_notes(sheets[0].scores):
        print("\n".join(textwrap.wrap(line, WIDTH, subsequent_indent="  ")))


def shorten(text: str, width: int) -> str:
    """Return a printable text, shortened in the middle to fit a width."""
    text = printable(text)
    if cell_width(text) <= width:
        return text
    # Names usually differ at their start or end, so the middle is cut out.
    half = width // 2
    head, tail = "", ""
    for character in text:
        if cell_width(head + character) > half - 1:
            break
        head += character
    for character in reversed(text):
        if cell_width(character + tail) > half:
            break
        tail = character + tail
    return f"{head}…{tail}"


def cell_width(text: str) -> int:
    """Return the columns that a text takes: wide characters take two, combining ones none."""
    if text.isascii():
        return len(text)
    return sum(
        0 if combining(character) else 1 + (east_asian_width(character) in "WF")
        for character in text
    )


def _is_ruled() -> bool:
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ


def _supports_bars() -> bool:
    """Return whether output goes to a terminal that can show block characters."""
    try:
        CHARACTERS.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        return False
    return sys.stdout.isatty()


def _gap_width() -> int:
    """Return the number of spaces between columns."""
    return 3 if _is_ruled() else 2


def _table_width() -> int:
    columns = shutil.get_terminal_size((WIDTH, 24)).columns if sys.stdout.isatty() else WIDTH
    return columns - 2 * _is_ruled()  # Rich pads a ruled table on both sides
