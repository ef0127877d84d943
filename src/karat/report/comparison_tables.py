"""The tables of a comparison as text, and the notes below them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from karat.errors import counted
from karat.evaluation.comparison import Moved, count_tests
from karat.format import probability
from karat.report.bars import ValueBars, value_bars
from karat.report.comparison import ComparisonSheet, PairRow, significance_mark
from karat.report.sheet import interval_methods
from karat.report.tables import (
    BETTER,
    WORSE,
    format_difference,
    format_value,
    measure_label,
    table_rows,
)
from karat.report.terminal import WIDTH, shorten
from karat.stats import corrections
from karat.stats.groups import FEW
from karat.stats.intervals import METHODS
from karat.stats.power import ALPHA, POWER

NAME_WIDTH = 24
_ITEM_WIDTH = 24
_CHANGES_SHOWN = 3
_POWER = f"{POWER:.0%} power, α = {ALPHA}"
TEST_TITLES = {
    "randomization": "sign-flip randomization",
    "t": "paired t",
    "wilcoxon": "Wilcoxon signed-rank",
}
P_HEADS = {"holm": "p Holm", "bh": "p BH", "bonferroni": "p Bonferroni", "tukey": "p Tukey"}

RunPairs = list[tuple[str, str]]
"""Pairs of runs, each as the names of a and b."""


@dataclass(frozen=True)
class TableSection:
    """A table with its title; the first `n_labels` columns are labels."""

    title: str
    heads: list[str]
    rows: list[list[str]]
    n_labels: int = 1
    n_last: int = 0
    bars: ValueBars = field(default_factory=dict)
    """The bars that a terminal shows next to the values."""


def sections(sheet: ComparisonSheet) -> Iterator[TableSection]:
    """Yield the table of values, then the tables of differences."""
    heads = ["measure", *(shorten(run.name, NAME_WIDTH) for run in sheet.runs), "n"]
    yield TableSection("", heads, table_rows(sheet.runs), n_last=1, bars=value_bars(sheet.runs))
    yield from difference_sections(sheet, sheet.names, sheet.measures)


def difference_sections(
    sheet: ComparisonSheet, names: RunPairs, measures: list[str]
) -> Iterator[TableSection]:
    """Yield the differences of some pairs: one table per pair, or per measure for many pairs."""
    if sheet.many:
        for measure in measures:
            yield _measure_section(sheet, names, measure)
    else:
        for a, b in names:
            yield _pair_section(sheet, a, b)
    if sheet.groups is not None:
        for a, b in names:
            yield _group_section(sheet, sheet.groups, a, b, measures)
    if sheet.needed is not None:
        yield _needed_section(sheet, sheet.needed, names, measures)


def _pair_section(sheet: ComparisonSheet, a: str, b: str) -> TableSection:
    rows = _pair_rows(sheet.pairs, a, b)
    measures = [measure_label(row["measure"], sheet.runs[0]) for row in rows]
    return _comparison_section(sheet, pair_title(a, b), "measure", measures, rows)


def _measure_section(sheet: ComparisonSheet, names: RunPairs, measure: str) -> TableSection:
    """Return one table with all pairs: nobody reads many tables of one pair each."""
    all_rows = sheet.pairs.filter(pl.col("measure") == measure).to_dicts()
    rows = [row for row in all_rows if (row["a"], row["b"]) in names]
    titles = [pair_title(row["a"], row["b"]) for row in rows]
    return _comparison_section(sheet, measure_label(measure, sheet.runs[0]), "pair", titles, rows)


def _comparison_section(
    sheet: ComparisonSheet, subject: str, head: str, names: list[str], rows: list[PairRow]
) -> TableSection:
    cells = [
        {
            head: name,
            **_test_cells(sheet, row, sheet.corrects(sheet.pairs)),
            "W/T/L": _win_tie_loss(row),
            "change": _format_signed(row["relative"], ".1%"),
            "dz": _format_signed(row["effect"], ".2f"),
            "MDE": format_value(row["detectable"], row["measure"]),
        }
        for name, row in zip(names, rows, strict=True)
    ]
    sizes = {row["n"] for row in rows}
    least, most = min(sizes), max(sizes)
    n = counted(most, "query") if least == most else f"{least:,}–{most:,} queries"
    return TableSection(f"{subject}, {n}", list(cells[0]), [list(row.values()) for row in cells])


def _group_section(
    sheet: ComparisonSheet, groups: pl.DataFrame, a: str, b: str, measures: list[str]
) -> TableSection:
    fields, rows = sheet.group_fields, _pair_rows(groups, a, b)
    cells = [
        {
            "measure": measure_label(row["measure"], sheet.runs[0]),
            **{shorten(field, NAME_WIDTH): _group_label(row[field]) for field in fields},
            **_test_cells(sheet, row, sheet.corrects(groups)),
            "W/T/L": _win_tie_loss(row),
            "n": f"{row['n']:,}*" if row["n"] < FEW else f"{row['n']:,}",
        }
        for measure in measures
        for row in rows
        if row["measure"] == measure
    ]
    return TableSection(
        shorten(f"{pair_title(a, b)} by {', '.join(fields)}", WIDTH),
        list(cells[0]),
        [list(row.values()) for row in cells],
        n_labels=1 + len(fields),
    )


def _group_label(value: Any) -> str:
    return "–" if value is None else shorten(str(value), NAME_WIDTH)


def _needed_section(
    sheet: ComparisonSheet, needed: pl.DataFrame, names: RunPairs, measures: list[str]
) -> TableSection:
    rows = [["measure", *(pair_title(a, b) for a, b in names)]]
    for measure in measures:
        rows_of_measure = needed.filter(pl.col("measure") == measure).select("a", "b", "queries")
        queries = [n for a, b, n in rows_of_measure.iter_rows() if (a, b) in names]
        numbers = ["–" if n is None else f"{n:,}" for n in queries]
        rows.append([measure_label(measure, sheet.runs[0]), *numbers])
    if sheet.many:
        rows = [list(column) for column in zip(*rows, strict=True)]
        rows[0][0] = "pair"
    heads, *cells = rows
    return TableSection(
        f"queries needed to detect a difference of {sheet.difference:g} ({_POWER})", heads, cells
    )


def pair_title(a: str, b: str) -> str:
    """Return the title of a pair: b − a."""
    return f"{shorten(b, NAME_WIDTH)} − {shorten(a, NAME_WIDTH)}"


def _test_cells(sheet: ComparisonSheet, row: PairRow, corrected: bool) -> dict[str, str]:
    """Return the cells of a difference: its value, interval and p-values."""
    measure = row["measure"]
    difference = format_difference(row["difference"], measure)
    cells = {
        "difference": f"{significance_mark(row)} {difference}".lstrip(),
        f"{100 * sheet.comparison.confidence:g}% interval": format_difference_interval(
            row["low"], row["high"], measure
        ),
        "p": probability(row["p"]),
    }
    if corrected:
        cells[P_HEADS[sheet.comparison.correction]] = probability(row["p_corrected"])
    return cells


def format_difference_interval(low: float | None, high: float | None, measure: str) -> str:
    """Return the interval of a difference; an open end is a dash."""
    if low is None and high is None:
        return "–"
    ends = (format_difference(end, measure).removeprefix("+") for end in (low, high))
    return f"[{', '.join(ends)}]"


def _format_signed(value: float | None, decimals: str) -> str:
    """Return a number with its sign; 0 has none."""
    if value is None:
        return "–"
    return format(value, f"+{decimals}" if value else decimals)


def _win_tie_loss(row: PairRow) -> str:
    return f"{row['wins']:,}/{row['ties']:,}/{row['losses']:,}"


def _pair_rows(frame: pl.DataFrame, a: str, b: str) -> list[PairRow]:
    return frame.filter(pl.col("a") == a, pl.col("b") == b).to_dicts()


def mark_legend(sheet: ComparisonSheet) -> list[str]:
    """Return the legend of the marks of significance, if there are any."""
    frames = [sheet.pairs, *([] if sheet.groups is None else [sheet.groups])]
    if not any(significance_mark(row) for frame in frames for row in frame.iter_rows(named=True)):
        return []
    p = P_HEADS[sheet.comparison.correction] if any(map(sheet.corrects, frames)) else "p"
    return [f"{BETTER} better, {WORSE} worse: {p} < {ALPHA}"]


def notes(sheet: ComparisonSheet) -> list[str]:
    """Return notes about the tests, and about the meaning of the columns."""
    tested = f"p: {TEST_TITLES[sheet.comparison.test]} test, two-sided"
    if correction := _correction_note(sheet, sheet.pairs, "pairs"):
        tested += f"; {correction}"
    sentences = [tested]
    if sheet.corrects(sheet.pairs):
        sentences.append(
            "intervals and p are not corrected; marks and conclusion use the corrected p"
        )
    sentences += _interval_notes(sheet)
    if sheet.comparison.test == "wilcoxon":
        sentences.append(
            "Wilcoxon's test gives no interval of the mean; the interval is from the sign-flip test"
        )
    sentences += [
        "W/T/L: wins, ties and losses of the first-named run, by query",
        "dz: mean difference / its standard deviation over queries (Cohen's dz)",
        f"MDE: minimum detectable effect ({_POWER})",
    ]
    if sheet.groups is not None:
        if correction := _correction_note(sheet, sheet.groups, "pairs and groups"):
            sentences.append(f"by group, {correction}")
        if (sheet.groups["n"] < FEW).any():
            sentences.append(f"*: fewer than {FEW} queries")
    return sentences


def _correction_note(sheet: ComparisonSheet, frame: pl.DataFrame, tested: str) -> str:
    n, correction = count_tests(frame), sheet.comparison.correction
    if n < 2:
        return ""
    if correction == "none":
        return f"p not corrected over {n:,} {tested}"
    title = corrections.TITLES[correction]
    return (
        f"{P_HEADS[correction]}: {title} correction over {n:,} {tested}, separately for each "
        "measure"
    )


def _interval_notes(sheet: ComparisonSheet) -> Iterator[str]:
    """Yield how the intervals of values and of differences were computed, without repetition."""
    of_values = interval_methods(sheet.runs)
    yield from of_values
    used = sheet.pairs.drop_nulls("method").group_by("method", maintain_order=True)
    of_method = {str(key[0]): part["measure"].unique(maintain_order=True) for key, part in used}
    for method, measures in of_method.items():
        scope = f" in {', '.join(map(sheet.label, measures))}" if len(of_method) > 1 else ""
        if of_values != [f"95% intervals: {METHODS[method]}"] or scope:
            yield f"intervals of differences{scope}: {METHODS[method]}"
    if sheet.groups is not None:
        group_methods = sheet.groups["method"].drop_nulls().unique(maintain_order=True)
        if others := [METHODS[method] for method in group_methods if method not in of_method]:
            yield f"intervals of differences of some groups: {', '.join(others)}"


def format_changes(moved: Moved) -> str:
    """Return the old and new ranks of the items that contributed most to a difference."""
    changes = moved.changes or []
    parts = []
    for change in changes[:_CHANGES_SHOWN]:
        grade = "" if change.grade is None else f" ({change.grade})"
        ranks = f"{_format_rank(change.rank_a)} → {_format_rank(change.rank_b)}"
        parts.append(f"{shorten(change.item, _ITEM_WIDTH)}{grade}: {ranks}")
    more = len(changes) - _CHANGES_SHOWN
    return ", ".join(parts) + (f" and {more:,} more" if more > 0 else "")


def _format_rank(rank: int | None) -> str:
    return "–" if rank is None else str(rank)
