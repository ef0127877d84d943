"""The values: up to three runs as columns, more runs as a leaderboard with runs as rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from karat.evaluation.remarks import scoring_notes
from karat.markup import brief
from karat.match.spans import Budget
from karat.report.cells import (
    BETTER,
    WORSE,
    declaration_of,
    format_counts,
    format_value,
    measure_named,
    table_label,
)
from karat.report.comparison import ComparisonSheet, significant_differences
from karat.report.documents.scores import MOST_COLUMNS, unjudged_notes, unjudged_rows
from karat.report.page.model import Page
from karat.report.page.sections.interval_plot import PlottedValue, estimate
from karat.report.sheet import interval_methods, remarks, warnings
from karat.stats.power import ALPHA

SummaryRow = Mapping[str, Any]
_SPARK_WIDTH = 100.0


@dataclass(frozen=True)
class Spark:
    """A dot with its interval, in percent of the width; None where there is nothing to draw."""

    x: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class SignificanceMark:
    """A significant difference: ▲ or ▼, and from which runs."""

    sign: str
    text: str
    is_better: bool
    title: str


@dataclass(frozen=True)
class ValueCell:
    """The value of one run."""

    text: str
    interval: str
    is_best: bool
    mark: SignificanceMark | None
    spark: Spark | None
    value: float | None
    """The value and its interval with all digits."""
    low: float | None
    high: float | None


@dataclass(frozen=True)
class RunHead:
    """The name of a run, with its colour."""

    name: str
    colour: str
    is_baseline: bool


@dataclass(frozen=True)
class MeasureHead:
    """The name of a measure."""

    label: str
    title: str
    is_main: bool
    is_higher_better: bool


@dataclass(frozen=True)
class MeasureRow:
    """A measure with the values of all runs."""

    head: MeasureHead
    cells: list[ValueCell]
    n: str
    left_out: str


@dataclass(frozen=True)
class UnjudgedRow:
    """A share of judged items or an upper bound: texts and exact values, one per run."""

    label: str
    cells: list[tuple[str, float | None]]


@dataclass(frozen=True)
class RunRow:
    """A run of the leaderboard."""

    rank: int | None
    head: RunHead
    rank_range: tuple[int, int] | None
    cells: list[ValueCell]
    unjudged: list[tuple[str, float | None]]
    n: str
    left_out: str


@dataclass(frozen=True)
class ResultsView:
    """What the section shows: a leaderboard, or a table with measures as rows if it is empty."""

    runs: list[RunHead]
    rows: list[MeasureRow]
    unjudged: list[UnjudgedRow]
    leaderboard: list[RunRow]
    has_rank_ranges: bool
    has_signs: bool
    """Whether values of the leaderboard have a place for ▲ and ▼."""
    legend: list[str]
    warnings: list[str]
    notes: list[str]


def results_view(page: Page) -> ResultsView:
    """Return what the section shows."""
    sheets = page.sheets
    is_leaderboard = len(sheets) > MOST_COLUMNS
    by_measure = list(zip(*(sheet.summary.to_dicts() for sheet in sheets), strict=True))
    marks = _Marks(page)
    measures = [_measure_head(page, rows[0]["measure"]) for rows in by_measure]
    rows = [
        MeasureRow(
            head,
            _value_cells(page, same, marks, is_zoomed=is_leaderboard and head.is_main),
            format_counts(row["n"] for row in same),
            _left_out(same),
        )
        for head, same in zip(measures, by_measure, strict=True)
    ]
    bounds = unjudged_rows(sheets)
    unjudged = [
        UnjudgedRow(name, [(format_value(value), value) for value in values])
        for name, values in bounds.items()
    ]
    all_warnings = warnings(sheets)
    notes = [*interval_methods(sheets), *remarks(sheets), *scoring_notes(sheets[0].scores)]
    notes += unjudged_notes(bounds)
    return ResultsView(
        runs=_run_heads(page),
        rows=rows,
        unjudged=unjudged,
        leaderboard=_leaderboard(page, rows, unjudged) if is_leaderboard else [],
        has_rank_ranges=rank_ranges(page) is not None,
        has_signs=marks.baseline is not None,
        legend=_legend(page, marks, is_leaderboard=is_leaderboard),
        warnings=all_warnings,
        notes=[note for note in notes if note not in all_warnings],
    )


def _run_heads(page: Page) -> list[RunHead]:
    return [
        RunHead(sheet.name, colour, at == page.baseline)
        for at, (sheet, colour) in enumerate(zip(page.sheets, page.run_colours, strict=True))
    ]


def _leaderboard(
    page: Page, rows: Sequence[MeasureRow], unjudged: Sequence[UnjudgedRow]
) -> list[RunRow]:
    """Return the runs, the best by the main measure first."""
    heads, ranks, ranges = _run_heads(page), _ranks(page), rank_ranges(page)
    leaderboard = []
    for at in page.ranking:
        summary = page.sheets[at].summary.to_dicts()
        run = RunRow(
            rank=ranks[at],
            head=heads[at],
            rank_range=None if ranges is None else ranges[at],
            cells=[row.cells[at] for row in rows],
            unjudged=[row.cells[at] for row in unjudged],
            n=format_counts(row["n"] for row in summary),
            left_out=_left_out(summary),
        )
        leaderboard.append(run)
    return leaderboard


def rank_ranges(page: Page) -> list[tuple[int, int]] | None:
    """Return the first and the last rank that each run may have by the main measure.

    The first is 1 + the number of runs that are significantly better, the last is the number of
    runs − the number of runs that are significantly worse. None if not every pair was compared.
    """
    if page.comparison is None or page.comparison.comparison.baseline is not None:
        return None
    names = [sheet.name for sheet in page.sheets]
    better, worse = dict.fromkeys(names, 0), dict.fromkeys(names, 0)
    for winner, loser, measure in significant_differences(page.comparison):
        if measure == page.main_measure:
            better[loser] += 1
            worse[winner] += 1
    return [(1 + better[name], len(names) - worse[name]) for name in names]


class _Marks:
    """Which runs are significantly better or worse, as marks next to values.

    A leaderboard without a baseline has rank ranges instead.
    """

    def __init__(self, page: Page) -> None:
        self.names = [sheet.name for sheet in page.sheets]
        comparison: ComparisonSheet | None = page.comparison
        self.baseline = None if comparison is None else comparison.comparison.baseline
        self._beaten: dict[tuple[str, str], list[str]] = {}
        if comparison is not None:
            for winner, loser, measure in significant_differences(comparison):
                self._beaten.setdefault((winner, measure), []).append(loser)
        self.are_any = bool(self._beaten)

    def of(self, run: str, measure: str) -> SignificanceMark | None:
        """Return the mark next to a value of a run."""
        beaten = self._beaten.get((run, measure), [])
        if self.baseline is not None:
            if self.baseline in beaten:
                return SignificanceMark(
                    BETTER, "better", True, "significantly better than the baseline"
                )
            if run in self._beaten.get((self.baseline, measure), []):
                return SignificanceMark(
                    WORSE, "worse", False, "significantly worse than the baseline"
                )
            return None
        if not beaten or len(self.names) > MOST_COLUMNS:
            return None
        names = ", ".join(brief(name, 24) for name in self.names if name in beaten)
        if len(beaten) == 2:
            names = "both others"
        return SignificanceMark(BETTER, names, True, f"significantly better than {names}")


def _value_cells(
    page: Page, rows: Sequence[SummaryRow], marks: _Marks, *, is_zoomed: bool
) -> list[ValueCell]:
    measure = rows[0]["measure"]
    best = measure_named(measure).best([row["value"] for row in rows])
    differ = any(row["value"] != best for row in rows)
    estimates = [estimate(dict(row)) for row in rows]
    first, last = _scale(estimates, measure, is_zoomed=is_zoomed)
    return [
        ValueCell(
            text=one.text,
            interval=one.interval,
            is_best=differ and row["value"] is not None and row["value"] == best,
            mark=marks.of(sheet.name, measure),
            spark=_spark(one, first, last),
            value=row["value"],
            low=row.get("low"),
            high=row.get("high"),
        )
        for sheet, row, one in zip(page.sheets, rows, estimates, strict=True)
    ]


def _scale(
    estimates: Sequence[PlottedValue], measure: str, *, is_zoomed: bool
) -> tuple[float, float]:
    """Return the ends of the axis that the drawings of a measure share.

    A share has the axis from 0 to 1, an amount from 0 to the largest end. If zoomed, the axis
    encloses just the intervals.
    """
    ends = [end for one in estimates for end in (one.low, one.value, one.high) if end is not None]
    if is_zoomed and len(set(ends)) > 1:
        return min(ends), max(ends)
    if declaration_of(measure).bounded:
        return 0.0, 1.0
    return min([0.0, *ends]), max([0.0, *ends]) or 1.0


def _spark(one: PlottedValue, first: float, last: float) -> Spark | None:
    if one.value is None:
        return None

    def place(number: float | None) -> float:
        shown = one.value if number is None else number
        assert shown is not None
        return round(min(max(_SPARK_WIDTH * (shown - first) / (last - first), 0), _SPARK_WIDTH), 2)

    if not one.interval:
        return Spark(place(one.value), None, None)
    return Spark(place(one.value), place(one.low), place(one.high))


def _measure_head(page: Page, measure: str) -> MeasureHead:
    declaration = declaration_of(measure)
    return MeasureHead(
        label=table_label(measure, page.sheets[0]),
        title=_measure_title(measure),
        is_main=measure == page.main_measure,
        is_higher_better=declaration.higher_is_better,
    )


def _measure_title(measure: str) -> str:
    """Return the title of a measure, with its character budget."""
    cutoff = measure_named(measure).cutoff
    title: str = declaration_of(measure).title
    if isinstance(cutoff, Budget):
        title += f", within {cutoff.characters:,} characters"
    return title


def _ranks(page: Page) -> list[int | None]:
    """Return the rank of each run by the main measure; equal values share a rank."""
    at = page.sheets[0].summary["measure"].to_list().index(page.main_measure)
    values = [sheet.summary["value"][at] for sheet in page.sheets]
    is_better = measure_named(page.main_measure).is_better
    return [
        None
        if value is None
        else 1 + sum(other is not None and is_better(other, value) for other in values)
        for value in values
    ]


def _left_out(rows: Sequence[SummaryRow]) -> str:
    """Return how many queries have no value; empty if there are none."""
    left_out = [row["left_out"] for row in rows]
    return f"{format_counts(left_out)} left out" if any(left_out) else ""


def _legend(page: Page, marks: _Marks, *, is_leaderboard: bool) -> list[str]:
    """Return what bold values, marks and rank ranges mean; empty for one run."""
    if len(page.sheets) == 1:
        return []
    sentences = ["Bold: best value of a measure."]
    if page.comparison is None:
        return [*sentences, "Not tested: karat compare shows which differences are significant."]
    if not marks.are_any:
        sentences.append(f"No difference is statistically significant (corrected p < {ALPHA}).")
    elif marks.baseline is not None:
        sentences.append(
            f"{BETTER} {WORSE}: significantly better or worse than the baseline "
            f"(corrected p < {ALPHA})."
        )
    elif not is_leaderboard:
        sentences.append(
            f"{BETTER} name: significantly better than that run (corrected p < {ALPHA})."
        )
    if is_leaderboard and rank_ranges(page) is not None:
        sentences.append(
            "Rank range: the ranks that the significant differences leave possible "
            f"(corrected p < {ALPHA})."
        )
    return sentences
