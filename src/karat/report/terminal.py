"""The table in a terminal: measures as rows, runs as columns; plain when piped."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence

from karat.report.sheet import Sheet, remarks
from karat.report.tables import group_fields, group_table, query_table, table_rows

WIDTH = 80
_NAME_WIDTH = 24
_LABEL_WIDTH = 48


def show(sheets: Sequence[Sheet]) -> None:
    """Print the table, then groups and queries where they were asked, then the remarks."""
    rows = table_rows(sheets)
    for at, columns in enumerate(_blocks([s.name for s in sheets], rows)):
        if at:
            print()
        heads = ["measure", *(_short(sheets[c].name, _NAME_WIDTH) for c in columns), "n"]
        picked = [[row[0], *(row[c + 1] for c in columns), row[-1]] for row in rows]
        _print_table(heads, picked)
    for sheet in sheets:
        if (table := group_table(sheet)) is not None:
            fields = group_fields(sheet)
            _print_wide(*table, len(fields), f"{sheet.name} by {', '.join(fields)}")
    for sheet in sheets:
        if (table := query_table(sheet)) is not None:
            _print_wide(*table, 1, sheet.name)
    _print_remarks(sheets)


def _blocks(names: list[str], rows: list[list[str]]) -> list[list[int]]:
    """Share the runs out over as many tables as it takes to fit the width."""
    fixed = max(len("measure"), *(len(_short(row[0], _LABEL_WIDTH)) for row in rows)) + 2
    fixed += max(1, *(len(row[-1]) for row in rows)) + 2
    room = _width() - fixed
    blocks: list[list[int]] = [[]]
    used = 0
    for at, name in enumerate(names):
        need = max(min(len(name), _NAME_WIDTH), *(len(row[at + 1]) for row in rows)) + 2
        if blocks[-1] and used + need > room:
            blocks.append([])
            used = 0
        blocks[-1].append(at)
        used += need
    return blocks


def _print_wide(heads: list[str], rows: list[list[str]], n_labels: int, title: str) -> None:
    """Print a table whose columns are shared out over several where they do not fit."""
    sizes = [
        min(_LABEL_WIDTH, max(len(head), *(len(row[at]) for row in rows)))
        for at, head in enumerate(heads)
    ]
    labels = list(range(n_labels))
    room = _width() - sum(sizes[at] + 2 for at in labels)
    blocks: list[list[int]] = [[]]
    for at in range(n_labels, len(heads)):
        if blocks[-1] and sum(sizes[c] + 2 for c in [*blocks[-1], at]) > room:
            blocks.append([])
        blocks[-1].append(at)
    print(f"\n{title}")
    for block in blocks:
        picked = [*labels, *block]
        _print_table(
            [heads[c] for c in picked], [[row[c] for c in picked] for row in rows], n_labels
        )


def _print_table(heads: list[str], rows: list[list[str]], n_labels: int = 1) -> None:
    heads = [_short(head, _LABEL_WIDTH) for head in heads]
    rows = [[_short(cell, _LABEL_WIDTH) for cell in row] for row in rows]
    if sys.stdout.isatty() and "NO_COLOR" not in os.environ:
        _print_rich(heads, rows, n_labels)
        return
    sizes = [max(len(line[at]) for line in [heads, *rows]) for at in range(len(heads))]
    for line in [heads, *rows]:
        cells = [
            cell.ljust(size) if at < n_labels else cell.rjust(size)
            for at, (cell, size) in enumerate(zip(line, sizes, strict=True))
        ]
        print("  ".join(cells).rstrip())


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
    for remark in remarks(sheets):
        print(remark)
    departures = sheets[0].conventions.departures()
    if departures:
        print("conventions: " + ", ".join(f"{k}={v}" for k, v in departures.items()))
    if sheets[0].level != "item":
        print(f"level: {sheets[0].level}")


def _short(text: str, width: int) -> str:
    text = "".join(character if character.isprintable() else "�" for character in text)
    if len(text) <= width:
        return text
    # Names differ at either end, so the middle goes.
    half = width // 2
    return f"{text[: half - 1]}…{text[-half:]}"


def _width() -> int:
    return shutil.get_terminal_size((WIDTH, 24)).columns if sys.stdout.isatty() else WIDTH
