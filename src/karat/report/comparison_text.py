"""Comparisons as plain text, in a terminal, as Markdown, and in files."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import IO

import polars as pl

from karat.errors import printable
from karat.evaluation.comparison import Moved
from karat.evaluation.remarks import scoring_notes
from karat.format import to_json
from karat.report.bars import LEGEND
from karat.report.comparison import ComparisonSheet
from karat.report.comparison_tables import (
    difference_sections,
    format_changes,
    mark_legend,
    notes,
    pair_title,
    sections,
)
from karat.report.conclusion import comparison_conclusion, pairs_of_best
from karat.report.latex import comparison_latex
from karat.report.markdown import bullet_list, details_block, escape, pipe_table, value_table
from karat.report.sheet import remarks
from karat.report.tables import format_difference, format_value
from karat.report.terminal import WIDTH, cell_width, print_table, shorten, table_lines
from karat.report.writers import REPORT_HINT, Writers

_ID_WIDTH = 24
_MIN_TEXT = 12  # shorter beginnings of a query text are not worth showing


def text(sheet: ComparisonSheet) -> str:
    """Return a comparison as plain text of 80 columns."""
    lines: list[str] = []
    for section in sections(sheet):
        if lines:
            lines.append("")
        if section.title:
            lines.append(section.title)
        lines += table_lines(section.heads, section.rows, section.n_labels, section.n_last)
    return "\n".join([*lines, *_notes_below(sheet)])


def show(sheet: ComparisonSheet) -> None:
    """Print a comparison; in a terminal, tables are ruled and use its full width."""
    has_bars = False
    for number, section in enumerate(sections(sheet)):
        if number:
            print()
        if section.title:
            print(section.title)
        has_bars |= print_table(
            section.heads,
            section.rows,
            section.n_labels,
            n_last=section.n_last,
            bars=section.bars,
        )
    print("\n".join(_notes_below(sheet, [LEGEND] if has_bars else [])))


def _notes_below(sheet: ComparisonSheet, bar_legend: Sequence[str] = ()) -> Iterator[str]:
    """Yield the lines below the tables: changed queries, notes, remarks, conclusion."""
    for a, b in sheet.names:
        moved_queries = [moved for moved in sheet.moved if (moved.a, moved.b) == (a, b)]
        if moved_queries:
            yield ""
            measure = sheet.label(moved_queries[0].measure)
            yield from _wrap(f"{pair_title(a, b)}: queries with the largest change in {measure}")
            for moved in moved_queries:
                yield from _moved_lines(moved)
    yield ""
    for note in [*bar_legend, *mark_legend(sheet), *notes(sheet), *_remarks(sheet)]:
        yield from _wrap(printable(note))
    yield ""
    yield from _wrap(printable(comparison_conclusion(sheet)))


def _remarks(sheet: ComparisonSheet) -> list[str]:
    """Return the remarks on the comparison, on each run, and on the scoring."""
    return [*sheet.remarks(), *remarks(sheet.runs), *scoring_notes(sheet.runs[0].scores)]


def _moved_lines(moved: Moved) -> Iterator[str]:
    measure = moved.measure
    values = f"{format_value(moved.value_a, measure)} → {format_value(moved.value_b, measure)}"
    difference = format_difference(moved.difference, measure)
    line = f"  {difference}  {values}  {shorten(moved.query_id, _ID_WIDTH)}"
    room = WIDTH - cell_width(line) - 2
    if moved.text and room >= _MIN_TEXT:
        line += f"  {_beginning(moved.text, room)}"
    yield line
    # No line break around an arrow.
    changes = format_changes(moved).replace(" → ", "\N{NO-BREAK SPACE}→\N{NO-BREAK SPACE}")
    for wrapped in _wrap(changes, "    ", "    "):
        yield wrapped.replace("\N{NO-BREAK SPACE}", " ")


def _wrap(words: str, indent: str = "", further: str = "  ") -> list[str]:
    """Wrap a text; textwrap does not know that wide characters take two columns."""
    room = min(WIDTH, max(WIDTH // 2, WIDTH - (cell_width(words) - len(words))))
    return textwrap.wrap(
        words, room, initial_indent=indent, subsequent_indent=further, break_on_hyphens=False
    )


def _beginning(words: str, room: int) -> str:
    """Return the beginning of a query text: unlike names, queries differ at their start."""
    words = printable(" ".join(words.split()))
    if cell_width(words) <= room:
        return words
    beginning = ""
    for character in words:
        if cell_width(beginning + character) > room - 1:
            break
        beginning += character
    return f"{beginning.rstrip()}…"


def markdown(sheet: ComparisonSheet) -> str:
    """Return a comparison as Markdown, for pull requests; the conclusion comes first.

    If there are many pairs, only those with the best run are shown, by the first measure.
    """
    names, measures = sheet.names, sheet.measures
    if sheet.many:
        names, measures = pairs_of_best(sheet), measures[:1]
    parts = [f"**{escape(comparison_conclusion(sheet))}**\n", value_table(sheet.runs)]
    for section in difference_sections(sheet, names, measures):
        table = pipe_table(section.heads, section.rows, section.n_labels)
        parts.append(f"**{escape(section.title)}**\n\n{table}")
    if sheet.moved:
        heads = ["pair", "query", "text", "changed ranks", sheet.label(sheet.moved[0].measure)]
        rows = [_moved_cells(moved) for moved in sheet.moved]
        parts.append(f"**queries with the largest change**\n\n{pipe_table(heads, rows, 4)}")
    notes_below = mark_legend(sheet)
    if n_hidden := len(sheet.names) - len(names):
        notes_below.append(f"{n_hidden:,} other pairs are not shown; .json and .csv contain them")
    notes_below += _remarks(sheet)
    if notes_below:
        parts.append(bullet_list(notes_below))
    parts.append(details_block("columns and methods", notes(sheet)))
    return "\n".join(parts)


def _moved_cells(moved: Moved) -> list[str]:
    return [
        pair_title(moved.a, moved.b),
        moved.query_id,
        moved.text or "",
        format_changes(moved),
        format_difference(moved.difference, moved.measure),
    ]


_B_SUFFIX = "\0b"  # no measure name ends like this


def _write_csv(sheet: ComparisonSheet, file: IO[bytes]) -> None:
    """Write one row per pair and measure, or per group of these if there are groups."""
    frame = sheet.pairs if sheet.groups is None else sheet.groups
    labels = {name: sheet.label(name) for name in sheet.measures}
    frame.with_columns(pl.col("measure").replace(labels)).write_csv(file)


def _write_queries(sheet: ComparisonSheet, file: IO[bytes]) -> None:
    """Write one row per pair, measure and query; only one pair is in memory at a time."""
    values = {run.name: run.scores.per_query for run in sheet.runs}
    for at, (a, b) in enumerate(sheet.names):
        both = values[a].join(values[b], on="query_id", how="full", coalesce=True, suffix=_B_SUFFIX)
        both = both.sort("query_id")
        for n, measure in enumerate(sheet.measures):
            value_a, value_b = pl.col(measure), pl.col(measure + _B_SUFFIX)
            rows = both.select(
                pl.lit(a).alias("a"),
                pl.lit(b).alias("b"),
                pl.lit(sheet.label(measure)).alias("measure"),
                "query_id",
                value_a.alias("value_a"),
                value_b.alias("value_b"),
                (value_b - value_a).alias("difference"),
            )
            rows.write_csv(file, include_header=at == n == 0)


_WRITERS: Writers[ComparisonSheet] = Writers(
    "a comparison",
    {
        ".json": lambda sheet, file: file.write(f"{to_json(sheet.as_dict())}\n".encode()),
        ".csv": _write_csv,
        ".md": lambda sheet, file: file.write(markdown(sheet).encode()),
        ".tex": lambda sheet, file: file.write(comparison_latex(sheet).encode()),
    },
    queries={".csv": _write_queries},
    hint=REPORT_HINT,
)
write, check = _WRITERS.write, _WRITERS.check
