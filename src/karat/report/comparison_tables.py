"""The tables of a comparison as people read them, and the notes on them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from karat.errors import counted
from karat.evaluation.comparison import Moved, count_tests
from karat.format import probability
from karat.report.bars import Drawing, drawn
from karat.report.comparison import ComparisonSheet, Row, mark
from karat.report.sheet import methods
from karat.report.tables import BETTER, WORSE, label, number, signed, table_rows
from karat.report.terminal import WIDTH, short
from karat.stats import corrections
from karat.stats.groups import FEW
from karat.stats.intervals import METHODS
from karat.stats.power import ALPHA, POWER

NAME_WIDTH = 24
_ITEM_WIDTH = 24
_CHANGES_SHOWN = 3
_POWER = f"{POWER:.0%} power, α = {ALPHA}"
TESTS = {
    "randomization": "sign-flip randomization",
    "t": "paired t",
    "wilcoxon": "Wilcoxon signed ranks",
}
HEADS = {"holm": "p Holm", "bh": "p BH", "bonferroni": "p Bonferroni", "tukey": "p Tukey"}

Names = list[tuple[str, str]]
"""Pairs, each as the names of a and b."""


@dataclass(frozen=True)
class Section:
    """A table with its title; labels stand to the left of numbers."""

    title: str
    heads: list[str]
    rows: list[list[str]]
    n_labels: int = 1
    n_last: int = 0
    drawing: Drawing = field(default_factory=dict)
    """How a terminal draws the values."""


def sections(sheet: ComparisonSheet) -> Iterator[Section]:
    """Yield the values of the runs, then what lies between them."""
    heads = ["measure", *(short(run.name, NAME_WIDTH) for run in sheet.runs), "n"]
    yield Section("", heads, table_rows(sheet.runs), n_last=1, drawing=drawn(sheet.runs))
    yield from between(sheet, sheet.names, sheet.measures)


def between(sheet: ComparisonSheet, names: Names, measures: list[str]) -> Iterator[Section]:
    """Yield what lies between the runs of some pairs: pair by pair, or of many by measure."""
    if sheet.many:
        for measure in measures:
            yield _measure(sheet, names, measure)
    else:
        for a, b in names:
            yield _pair(sheet, a, b)
    if sheet.groups is not None:
        for a, b in names:
            yield _groups(sheet, sheet.groups, a, b, measures)
    if sheet.needed is not None:
        yield _needed(sheet, sheet.needed, names, measures)


def _pair(sheet: ComparisonSheet, a: str, b: str) -> Section:
    rows = _of_pair(sheet.pairs, a, b)
    measures = [label(row["measure"], sheet.runs[0]) for row in rows]
    return _compared(sheet, title(a, b), "measure", measures, rows)


def _measure(sheet: ComparisonSheet, names: Names, measure: str) -> Section:
    """Return pairs of a measure below each other: of many, a table each is not read."""
    found = sheet.pairs.filter(pl.col("measure") == measure).to_dicts()
    rows = [row for row in found if (row["a"], row["b"]) in names]
    titles = [title(row["a"], row["b"]) for row in rows]
    return _compared(sheet, label(measure, sheet.runs[0]), "pair", titles, rows)


def _compared(
    sheet: ComparisonSheet, of_what: str, head: str, names: list[str], rows: list[Row]
) -> Section:
    cells = [
        {
            head: name,
            **_tested(sheet, row, sheet.corrects(sheet.pairs)),
            "W/T/L": _outcomes(row),
            "change": _plain(row["relative"], ".1%"),
            "dz": _plain(row["effect"], ".2f"),
            "least": number(row["detectable"], row["measure"]),
        }
        for name, row in zip(names, rows, strict=True)
    ]
    sizes = {row["n"] for row in rows}
    least, most = min(sizes), max(sizes)
    n = counted(most, "query") if least == most else f"{least:,}–{most:,} queries"
    return Section(f"{of_what}, {n}", list(cells[0]), [list(row.values()) for row in cells])


def _groups(
    sheet: ComparisonSheet, groups: pl.DataFrame, a: str, b: str, measures: list[str]
) -> Section:
    fields, found = sheet.group_fields, _of_pair(groups, a, b)
    cells = [
        {
            "measure": label(row["measure"], sheet.runs[0]),
            **{short(field, NAME_WIDTH): _label(row[field]) for field in fields},
            **_tested(sheet, row, sheet.corrects(groups)),
            "W/T/L": _outcomes(row),
            "n": f"{row['n']:,}{'*' * (row['n'] < FEW)}",
        }
        for measure in measures
        for row in found
        if row["measure"] == measure
    ]
    return Section(
        short(f"{title(a, b)} by {', '.join(fields)}", WIDTH),
        list(cells[0]),
        [list(row.values()) for row in cells],
        n_labels=1 + len(fields),
    )


def _label(value: Any) -> str:
    return "–" if value is None else short(str(value), NAME_WIDTH)


def _needed(
    sheet: ComparisonSheet, needed: pl.DataFrame, names: Names, measures: list[str]
) -> Section:
    rows = [["measure", *(title(a, b) for a, b in names)]]
    for measure in measures:
        found = needed.filter(pl.col("measure") == measure).select("a", "b", "queries")
        queries = [n for a, b, n in found.iter_rows() if (a, b) in names]
        numbers = ["–" if n is None else f"{n:,}" for n in queries]
        rows.append([label(measure, sheet.runs[0]), *numbers])
    if sheet.many:
        rows = [list(column) for column in zip(*rows, strict=True)]
        rows[0][0] = "pair"
    heads, *cells = rows
    return Section(
        f"queries needed to show a difference of {sheet.difference:g} ({_POWER})", heads, cells
    )


def title(a: str, b: str) -> str:
    """Name a pair by what is subtracted from what."""
    return f"{short(b, NAME_WIDTH)} − {short(a, NAME_WIDTH)}"


def _tested(sheet: ComparisonSheet, row: Row, corrected: bool) -> dict[str, str]:
    """Return the difference, its interval and how sure it is."""
    measure = row["measure"]
    cells = {
        "difference": f"{mark(row)} {signed(row['difference'], measure)}".lstrip(),
        f"{100 * sheet.comparison.confidence:g}% interval": interval(
            row["low"], row["high"], measure
        ),
        "p": probability(row["p"]),
    }
    if corrected:
        cells[HEADS[sheet.comparison.correction]] = probability(row["p_corrected"])
    return cells


def interval(low: float | None, high: float | None, measure: str) -> str:
    """Show between what a difference lies; an open end is a dash."""
    if low is None and high is None:
        return "–"
    ends = (signed(end, measure).removeprefix("+") for end in (low, high))
    return f"[{', '.join(ends)}]"


def _plain(value: float | None, decimals: str) -> str:
    """Show a number with its sign, 0 without one."""
    if value is None:
        return "–"
    return format(value, f"+{decimals}" if value else decimals)


def _outcomes(row: Row) -> str:
    return f"{row['wins']:,}/{row['ties']:,}/{row['losses']:,}"


def _of_pair(frame: pl.DataFrame, a: str, b: str) -> list[Row]:
    return frame.filter(pl.col("a") == a, pl.col("b") == b).to_dicts()


def legend(sheet: ComparisonSheet) -> list[str]:
    """Say what the marks mean, where there are any."""
    frames = [sheet.pairs, *([] if sheet.groups is None else [sheet.groups])]
    if not any(mark(row) for frame in frames for row in frame.iter_rows(named=True)):
        return []
    p = HEADS[sheet.comparison.correction] if any(map(sheet.corrects, frames)) else "p"
    return [f"{BETTER} better, {WORSE} worse: {p} < {ALPHA}"]


def notes(sheet: ComparisonSheet) -> list[str]:
    """Say what was tested how, and what the columns mean."""
    tested = [
        f"p: {TESTS[sheet.comparison.test]}, two-sided",
        _corrected(sheet, sheet.pairs, "pairs"),
    ]
    said = [
        "; ".join(filter(None, tested)),
        "intervals and p are those of each pair alone; marks and verdict use the corrected p"
        if sheet.corrects(sheet.pairs)
        else "",
        *_methods(sheet),
        "Wilcoxon's test has no interval of the mean: that of the sign-flip test is shown"
        if sheet.comparison.test == "wilcoxon"
        else "",
        "W/T/L: wins, ties and losses of the run named first, by query (better, equal, worse)",
        "dz: the mean difference / its standard deviation over queries",
        f"least: the smallest difference that would have shown ({_POWER})",
    ]
    if sheet.groups is not None:
        if corrected := _corrected(sheet, sheet.groups, "pairs and groups"):
            said.append(f"by group, {corrected}")
        if (sheet.groups["n"] < FEW).any():
            said.append(f"*: fewer than {FEW} queries")
    return list(filter(None, said))


def _corrected(sheet: ComparisonSheet, frame: pl.DataFrame, of_what: str) -> str:
    n, how = count_tests(frame), sheet.comparison.correction
    if n < 2:
        return ""
    if how == "none":
        return f"p not corrected over {n:,} {of_what}"
    by = corrections.TITLES[how]
    return f"{HEADS[how]}: by {by} over {n:,} {of_what}, each measure by itself"


def _methods(sheet: ComparisonSheet) -> Iterator[str]:
    """Say how the intervals of values and of differences came about, once if it is the same."""
    of_values = methods(sheet.runs)
    yield from of_values
    used = sheet.pairs.drop_nulls("method").group_by("method", maintain_order=True)
    of_method = {str(key[0]): part["measure"].unique(maintain_order=True) for key, part in used}
    for method, measures in of_method.items():
        named = f" in {', '.join(map(sheet.label, measures))}" if len(of_method) > 1 else ""
        if of_values != [f"95% intervals: {METHODS[method]}"] or named:
            yield f"intervals of differences{named}: {METHODS[method]}"
    if sheet.groups is not None:
        found = sheet.groups["method"].drop_nulls().unique(maintain_order=True)
        if others := [METHODS[method] for method in found if method not in of_method]:
            yield f"intervals of differences of some groups: {', '.join(others)}"


def change_words(moved: Moved) -> str:
    """Say where the items that made the most of a difference went."""
    found = moved.changes or []
    words = [
        f"{short(change.item, _ITEM_WIDTH)}"
        f"{'' if change.grade is None else f' ({change.grade})'}: "
        f"{_rank(change.rank_a)} → {_rank(change.rank_b)}"
        for change in found[:_CHANGES_SHOWN]
    ]
    more = len(found) - _CHANGES_SHOWN
    return ", ".join(words) + (f" and {more:,} more" if more > 0 else "")


def _rank(rank: int | None) -> str:
    return "–" if rank is None else str(rank)
