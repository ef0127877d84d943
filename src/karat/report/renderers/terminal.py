"""Documents in a terminal: the answer first and in bold, then tables, then dimmed notes.

In a terminal the output is coloured and as wide as the window. When it is piped it is plain text,
80 columns wide. Rich is imported only for colours: it takes a tenth of the time of a small
evaluation.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from rich.cells import cell_len

from karat.errors import printable
from karat.report.document_model import (
    Cell,
    Column,
    Document,
    FieldList,
    Notes,
    Section,
    Table,
    TextLines,
    Tone,
    Whisker,
)

WIDTH = 80
_GAP = 2
_LONGEST_CELL = 48
_NAME_WIDTHS = (_LONGEST_CELL, 32, 24, 16, 12)
_SHORTEST_FLEXIBLE = 12
_WHISKER_WIDTHS = (20, 16, 12, 8)
_STYLES: dict[Tone, str] = {"neutral": "", "good": "green", "caution": "yellow", "bad": "red"}
_DOT, _WHISKER, _LEFT_END, _RIGHT_END = "●", "─", "├", "┤"

Span = tuple[str, str]
"""A text and its Rich style."""
Line = list[Span]


def show(document: Document, *, wide: bool = False) -> None:
    """Print a document to standard output; `wide` keeps columns that do not fit."""
    width = terminal_width()
    print_lines(document_lines(document, width, wide=wide))


def text(document: Document, *, width: int = WIDTH) -> str:
    """Return a document as plain text."""
    return "\n".join(plain(line) for line in document_lines(document, width))


def print_lines(lines: Iterator[Line]) -> None:
    """Print lines, coloured if standard output is a terminal and NO_COLOR is not set."""
    if not sys.stdout.isatty() or "NO_COLOR" in os.environ:
        for line in lines:
            print(plain(line))
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    for line in lines:
        text = Text.assemble(*line)
        text.rstrip()
        console.print(text, no_wrap=True, crop=False, overflow="ignore")


def print_hint(line: str) -> None:
    """Print a line to standard error, in cyan if it is a terminal and NO_COLOR is not set."""
    if sys.stderr.isatty() and "NO_COLOR" not in os.environ:
        line = f"\033[36m{line}\033[0m"
    print(line, file=sys.stderr)


def plain(line: Line) -> str:
    """Return a line without styles."""
    return "".join(text for text, _ in line).rstrip()


def terminal_width() -> int:
    """Return how many columns there are: those of the terminal, or 80 if output is piped."""
    if sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdigit():
        return max(shutil.get_terminal_size((WIDTH, 24)).columns, 40)
    return WIDTH


def document_lines(document: Document, width: int, *, wide: bool = False) -> Iterator[Line]:
    """Yield the lines of a document."""
    if document.headline is not None:
        style = f"bold {_STYLES[document.headline.tone]}".strip()
        yield from _wrapped(document.headline.text, width, style)
        if document.sections:
            yield []
    for number, section in enumerate(document.sections):
        if number:
            yield []
        yield from _section_lines(section, width, wide)
    if document.notes or document.details:
        yield []
    for sentence in (*document.notes, *document.details):
        yield from _wrapped(sentence, width, "dim", indent=2)


def _section_lines(section: Section, width: int, wide: bool) -> Iterator[Line]:
    if section.heading:
        yield [(shorten(section.heading, width), "bold")]
    for number, block in enumerate(section.blocks):
        if number and not isinstance(block, Notes):
            yield []
        match block:
            case Table():
                yield from table_lines(block, None if wide else width)
                for sentence in block.notes:
                    yield from _wrapped(sentence, width, "dim", indent=2)
            case FieldList():
                yield from _field_lines(block, width)
            case Notes():
                for sentence in block.sentences:
                    yield from _wrapped(sentence, width, "dim", indent=2)
            case TextLines():
                for line in block.lines:
                    yield from _wrapped_line(line, width)


def _wrapped(sentence: str, width: int, style: str, *, indent: int = 0) -> Iterator[Line]:
    """Wrap a sentence at spaces; all lines but the first are indented."""
    line = ""
    for word in _words(printable(sentence), width - indent):
        longer = f"{line} {word}" if line.strip() else line + word
        if line.strip() and cell_len(longer) > width:
            yield [(line, style)]
            longer = " " * indent + word
        line = longer
    yield [(line, style)]


def _words(sentence: str, width: int) -> Iterator[str]:
    """Yield the words of a sentence; a word that is wider than a line is split."""
    for word in sentence.split():
        part = ""
        for character in word:
            if cell_len(part + character) > width:
                yield part
                part = ""
            part += character
        yield part


def _wrapped_line(line: str, width: int) -> Iterator[Line]:
    """Wrap a line if it is too wide; what follows is indented by two more spaces."""
    line = printable(line)
    if cell_len(line) <= width:
        yield [(line, "")]
        return
    margin = " " * (len(line) - len(line.lstrip()))
    for wrapped in _wrapped(line, width - len(margin), "", indent=2):
        yield [(margin, ""), *wrapped]


def _field_lines(fields: FieldList, width: int) -> Iterator[Line]:
    label_width = max(cell_len(label) for label, _ in fields.items) + _GAP
    for label, sentence in fields.items:
        for number, line in enumerate(_wrapped(sentence, max(width - label_width, 20), "")):
            head = "" if number else label
            yield [(head + " " * (label_width - cell_len(head)), "bold"), *line]


def table_lines(table: Table, width: int | None) -> Iterator[Line]:
    """Yield the lines of a table that is at most `width` columns wide.

    Flexible columns are shortened and marks drawn smaller, then columns with a priority are
    dropped. If the rest still does not fit, the table is printed in several blocks, which all
    begin with the labels.
    """
    if table.title:
        yield [(printable(table.title) if width is None else shorten(table.title, width), "bold")]
    columns = list(range(len(table.columns)))
    sizes = _sizes(table, columns, width)
    if table.may_omit_intervals and width is not None and _total(table, columns, sizes) > width:
        rows = [[replace(cell, interval="") for cell in row] for row in table.rows]
        table = replace(table, rows=rows)
    if width is not None:
        droppable = sorted(
            (at for at in columns if table.columns[at].priority),
            key=lambda at: (-table.columns[at].priority, -at),
        )
        while droppable and _total(table, columns, sizes) > width:
            columns.remove(droppable.pop(0))
            sizes = _sizes(table, columns, width)
        sizes = _with_short_names(table, columns, sizes, width)
    for number, block in enumerate(_blocks(table, columns, sizes, width)):
        if number:
            yield []
        yield from _block_lines(table, block, sizes)


class _Sizes(NamedTuple):
    whisker: int
    """The width of dot-and-whisker marks."""
    text: int
    """The largest width of flexible texts."""
    name: int = _LONGEST_CELL
    """The largest width of other texts and of heads."""


def _sizes(table: Table, columns: Sequence[int], width: int | None) -> _Sizes:
    """Return the largest sizes with which the table fits a width."""
    longest = _Sizes(_WHISKER_WIDTHS[0], 10_000)
    if width is None or _total(table, columns, longest) <= width:
        return longest
    flexible = [at for at in columns if table.columns[at].is_flexible]
    for whisker_width in _WHISKER_WIDTHS:
        sizes = _Sizes(whisker_width, _SHORTEST_FLEXIBLE)
        room = width - _total(table, columns, sizes)
        if room < 0:
            continue
        if not flexible:
            return sizes
        text = _SHORTEST_FLEXIBLE + room // len(flexible)
        return _Sizes(whisker_width, text)
    return _Sizes(_WHISKER_WIDTHS[-1], _SHORTEST_FLEXIBLE)


def _with_short_names(table: Table, columns: Sequence[int], sizes: _Sizes, width: int) -> _Sizes:
    """Shorten names until the labels and any one column fit a width."""
    labels = [at for at in columns if at < table.n_labels]
    others = columns[len(labels) :]
    for name in _NAME_WIDTHS:
        sizes = sizes._replace(name=name)
        blocks = [[*labels, at] for at in others] or [labels]
        if all(_total(table, block, sizes) <= width for block in blocks):
            break
    return sizes


def _blocks(
    table: Table, columns: Sequence[int], sizes: _Sizes, width: int | None
) -> list[list[int]]:
    if width is None or _total(table, columns, sizes) <= width:
        return [list(columns)]
    labels = [at for at in columns if at < table.n_labels]
    blocks: list[list[int]] = []
    block: list[int] = []
    for at in columns[len(labels) :]:
        if block and _total(table, [*labels, *block, at], sizes) > width:
            blocks.append([*labels, *block])
            block = []
        block.append(at)
    return [*blocks, [*labels, *block]]


def _block_lines(table: Table, columns: Sequence[int], sizes: _Sizes) -> Iterator[Line]:
    widths = {at: _column_width(table, at, sizes) for at in columns}
    heads = {at: [(_head(table.columns[at], sizes), "bold")] for at in columns}
    yield _joined([_aligned(heads[at], table.columns[at], widths[at]) for at in columns])
    for row in table.rows:
        yield _joined(
            [
                _aligned(
                    _cell_line(row[at], table.columns[at], sizes), table.columns[at], widths[at]
                )
                for at in columns
            ]
        )


def _joined(cells: Sequence[Line]) -> Line:
    line = list(cells[0])
    for cell in cells[1:]:
        line += [(" " * _GAP, ""), *cell]
    return line


def _aligned(cell: Line, column: Column, width: int) -> Line:
    padding = (" " * (width - sum(cell_len(text) for text, _ in cell)), "")
    return [*cell, padding] if column.align == "left" else [padding, *cell]


def _head(column: Column, sizes: _Sizes) -> str:
    return shorten(column.head, sizes.name)


def _cell_line(cell: Cell, column: Column, sizes: _Sizes) -> Line:
    if column.scale is not None:
        return [(whisker(cell.drawing, column.scale, sizes.whisker), "cyan")]
    style = _STYLES[cell.tone]
    if column.is_flexible:
        shown = beginning(cell.text, sizes.text)
    else:
        shown = shorten(cell.text, sizes.name)
    line = [(shown, f"bold {style}".strip() if cell.is_best else style)]
    if cell.mark:
        line.append((f" {printable(cell.mark)}", style))
    if cell.interval:
        line.append((f" {cell.interval}", "dim"))
    return line


def _column_width(table: Table, at: int, sizes: _Sizes) -> int:
    column = table.columns[at]
    cells = [_cell_line(row[at], column, sizes) for row in table.rows]
    return max(
        cell_len(_head(column, sizes)), *(sum(cell_len(t) for t, _ in cell) for cell in cells), 0
    )


def _total(table: Table, columns: Sequence[int], sizes: _Sizes) -> int:
    widths = [_column_width(table, at, sizes) for at in columns]
    return sum(widths) + _GAP * (len(widths) - 1)


def whisker(interval: Whisker | None, scale: tuple[float, float], width: int) -> str:
    """Draw an interval as a line with a dot at the value.

    >>> whisker(Whisker(0.2, 0.5, 0.8), (0.0, 1.0), 11)
    '  ├──●──┤  '
    """
    if interval is None or scale[0] >= scale[1]:
        return " " * width
    low, value, high = (
        _position(end, scale, width) for end in (interval.low, interval.value, interval.high)
    )
    cells = [" "] * width
    for at in range(low, high + 1):
        cells[at] = _WHISKER
    if low < value:
        cells[low] = _LEFT_END
    if value < high:
        cells[high] = _RIGHT_END
    cells[value] = _DOT
    return "".join(cells)


def _position(value: float, scale: tuple[float, float], width: int) -> int:
    share = (value - scale[0]) / (scale[1] - scale[0])
    return round(min(max(share, 0.0), 1.0) * (width - 1))


def beginning(text: str, width: int) -> str:
    """Return a text that fits a width, cut at its end.

    >>> beginning("how do I reset my password", 12)
    'how do I re…'
    """
    text = printable(" ".join(text.split()))
    if cell_len(text) <= width:
        return text
    start = ""
    for character in text:
        if cell_len(start + character) > width - 1:
            break
        start += character
    return f"{start.rstrip()}…"


def shorten(text: str, width: int) -> str:
    """Return a text that fits a width: names differ at either end, so the middle is cut.

    >>> shorten("a-very-long-run-name-2024", 12)
    'a-ver…e-2024'
    """
    text = printable(text)
    if cell_len(text) <= width:
        return text
    head_width = (width - 1) // 2
    tail_width = width - 1 - head_width
    head, tail = "", ""
    for character in text:
        if cell_len(head + character) > head_width:
            break
        head += character
    for character in reversed(text):
        if cell_len(character + tail) > tail_width:
            break
        tail = character + tail
    return f"{head}…{tail}"
