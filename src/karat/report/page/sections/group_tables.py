"""Values by group of queries: per grouping and measure one table with a dot plot in each row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from karat.errors import counted
from karat.report.cells import (
    DASH,
    declaration_of,
    format_counts,
    format_interval,
    format_value,
    measure_named,
    readable,
    table_label,
)
from karat.report.charts.kinds import page_palette
from karat.report.charts.theme import Palette
from karat.report.page.model import Page
from karat.report.sheet import Sheet

ValueRow = dict[str, Any]
"""The value of one run in one measure, over a group of queries."""

WIDTH = 180
"""The width of a dot plot; it is the same everywhere, so that rows can be compared."""
_MARGIN = 7
_MAX_COLUMNS = 3
"""With more runs, a table shows the best run and the range instead of every value."""
_MANY_ROWS = 15
"""Longer tables scroll."""


@dataclass(frozen=True)
class RunLabel:
    """The name of a run and its colour."""

    name: str
    colour: str


@dataclass(frozen=True)
class Dot:
    """The value of a run in a dot plot, in pixels."""

    run: str
    colour: str
    x: float
    y: float
    low: float | None
    high: float | None
    text: str
    exact: float


@dataclass(frozen=True)
class GroupValue:
    """The value of a run as text, and with all digits."""

    run: RunLabel
    text: str
    interval: str
    row: ValueRow | None
    is_best: bool


@dataclass(frozen=True)
class GroupRow:
    """A group of queries, or all queries."""

    label: str
    n: str
    is_few: bool
    is_all: bool
    dots: list[Dot]
    cells: list[GroupValue]
    """One per run if there are at most three, otherwise the best run."""
    spread: str
    """The lowest and the highest value, if not every value is shown."""
    reversal: str
    """How the winner differs from that of all queries; empty if it does not."""


@dataclass(frozen=True)
class GroupTable:
    """One measure by group."""

    measure: str
    label: str
    direction: str
    caption: str
    ticks: tuple[str, str]
    height: int
    rows: list[GroupRow]

    @property
    def is_long(self) -> bool:
        """Whether the table scrolls."""
        return len(self.rows) > _MANY_ROWS


@dataclass(frozen=True)
class Grouping:
    """The tables of one grouping, one per measure."""

    title: str
    tables: list[GroupTable]


@dataclass(frozen=True)
class GroupsView:
    """The section of groups."""

    groupings: list[Grouping]
    runs: list[RunLabel]
    """The runs with a colour."""
    has_other_runs: bool
    has_columns: bool
    """Whether every run has a column; otherwise, only the best value and the range are shown."""
    has_few: bool
    width: int = WIDTH


def groups_view(page: Page) -> GroupsView | None:
    """Return the groups of a page, or None if there are none."""
    by_fields: dict[tuple[Any, ...], list[Sheet]] = {}
    for sheet in page.groups:
        if sheet.groups is not None:
            by_fields.setdefault(sheet.by, []).append(sheet)
    if not by_fields:
        return None
    palette = page_palette(page)
    groupings = [_grouping(sheets, page.main_measure, palette) for sheets in by_fields.values()]
    rows = [row for grouping in groupings for table in grouping.tables for row in table.rows]
    return GroupsView(
        groupings=groupings,
        runs=[RunLabel(run, palette.run_colour(run)) for run in palette.named],
        has_other_runs=len(palette.named) < len(palette.runs),
        has_columns=len(palette.runs) <= _MAX_COLUMNS,
        has_few=any(row.is_few for row in rows),
    )


def _grouping(sheets: Sequence[Sheet], main: str, palette: Palette) -> Grouping:
    measures = sorted(sheets[0].summary["measure"], key=lambda measure: measure != main)
    title = f"By {', '.join(sheets[0].group_fields)}"
    return Grouping(title, [_table(sheets, measure, palette) for measure in measures])


def _table(sheets: Sequence[Sheet], measure: str, palette: Palette) -> GroupTable:
    overall = _values_of(sheets, measure)
    groups = _values_by_group(sheets, measure)
    axis = _axis(
        measure, [row for values in (overall, *groups.values()) for row in values.values()]
    )
    plot = _Plot(palette, list(overall), axis, measure)
    winner = _winner(overall, measure)
    rows = [_row("all queries", overall, plot, None, is_all=True)]
    rows += [_row(_label(key), values, plot, winner) for key, values in groups.items()]
    label = table_label(measure, sheets[0])
    reversed_in = sum(bool(row.reversal) for row in rows)
    return GroupTable(
        measure=measure,
        label=label,
        direction="" if declaration_of(measure).higher_is_better else "lower is better",
        caption=_caption(winner, reversed_in, len(groups)),
        ticks=(_tick(axis[0], measure), _tick(axis[1], measure)),
        height=plot.height,
        rows=rows,
    )


def _caption(winner: str | None, reversed_in: int, n: int) -> str:
    groups = counted(n, "group")
    if winner is None:
        return f"values in {groups}."
    if not reversed_in:
        return f"{winner} is best overall and in {'each' if n > 1 else 'the'} group."
    return f"{winner} is best overall; a different run is best in {reversed_in} of {groups} (⇄)."


def _values_of(sheets: Sequence[Sheet], measure: str) -> dict[str, ValueRow]:
    rows = {}
    for sheet in sheets:
        for row in sheet.summary.iter_rows(named=True):
            if row["measure"] == measure:
                rows[sheet.name] = row
    return rows


def _values_by_group(
    sheets: Sequence[Sheet], measure: str
) -> dict[tuple[Any, ...], dict[str, ValueRow]]:
    groups: dict[tuple[Any, ...], dict[str, ValueRow]] = {}
    for sheet in sheets:
        for key, part in sheet.group_parts:
            for row in part.iter_rows(named=True):
                if row["measure"] == measure:
                    groups.setdefault(key, {})[sheet.name] = row
    return groups


def _label(key: Iterable[Any]) -> str:
    return " · ".join(DASH if value is None else str(value) for value in key)


def _winner(values: Mapping[str, ValueRow], measure: str) -> str | None:
    """Return the run with the best value; None if it is not the only one, or the only run."""
    best = _best(values, measure)
    return best[0] if len(best) == 1 and len(values) > 1 else None


def _best(values: Mapping[str, ValueRow], measure: str) -> list[str]:
    numbers = {run: row["value"] for run, row in values.items() if row["value"] is not None}
    if not numbers:
        return []
    higher = declaration_of(measure).higher_is_better
    top = max(numbers.values()) if higher else min(numbers.values())
    return [run for run, value in numbers.items() if value == top]


def _row(
    label: str,
    values: Mapping[str, ValueRow],
    plot: _Plot,
    winner: str | None,
    *,
    is_all: bool = False,
) -> GroupRow:
    best = _best(values, plot.measure)
    runs = list(plot.runs) if len(plot.palette.runs) <= _MAX_COLUMNS else best[:1]
    return GroupRow(
        label=label,
        n=format_counts(row["n"] for row in values.values()),
        is_few=any(row.get("small", False) for row in values.values()),
        is_all=is_all,
        dots=plot.dots(values),
        cells=[_cell(run, values.get(run), plot, is_best=best == [run]) for run in runs],
        spread=_spread(values, plot.measure),
        reversal=_reversal(best, winner, len(values)),
    )


def _cell(run: str, row: ValueRow | None, plot: _Plot, *, is_best: bool) -> GroupValue:
    shown = {} if row is None else readable(row)
    return GroupValue(
        run=RunLabel(run, plot.palette.run_colour(run)),
        text=format_value(shown.get("value"), plot.measure),
        interval="" if row is None else format_interval(shown).removesuffix(DASH),
        row=row,
        is_best=is_best and len(plot.runs) > 1,
    )


def _spread(values: Mapping[str, ValueRow], measure: str) -> str:
    numbers = [readable(row)["value"] for row in values.values() if row["value"] is not None]
    if not numbers:
        return DASH
    return f"{format_value(min(numbers), measure)} – {format_value(max(numbers), measure)}"


def _reversal(best: Sequence[str], winner: str | None, n_runs: int) -> str:
    if winner is None or not best or winner in best:
        return ""
    return "reverses the overall order" if n_runs == 2 else "a different run is best here"


def _axis(measure: str, rows: Sequence[ValueRow]) -> tuple[float, float]:
    """Return the ends of the axis: 0 and 1, or 0 and the highest value or interval."""
    if declaration_of(measure).bounded:
        return 0.0, 1.0
    ends = [row.get(name) for row in rows for name in ("value", "low", "high")]
    known = [end for end in ends if end is not None]
    low, high = min(known, default=0.0), max(known, default=0.0)
    return min(low, 0.0), high if high > min(low, 0.0) else 1.0


def _tick(value: float, measure: str) -> str:
    if declaration_of(measure).bounded or not value:
        return f"{value:.0f}"
    return measure_named(measure).format(readable({"measure": measure, "value": value})["value"])


@dataclass(frozen=True)
class _Plot:
    """The layout of a dot plot: each coloured run has a line, the grey ones share the last."""

    palette: Palette
    runs: list[str]
    axis: tuple[float, float]
    measure: str

    @property
    def lines(self) -> list[str]:
        return [run for run in self.runs if run in self.palette.named]

    @property
    def step(self) -> int:
        return 8 if len(self.lines) <= _MAX_COLUMNS else 6

    @property
    def height(self) -> int:
        has_grey = len(self.lines) < len(self.runs)
        return self.step * (len(self.lines) + has_grey) + 8

    def dots(self, values: Mapping[str, ValueRow]) -> list[Dot]:
        """Return the dots of a group, grey ones first and without intervals."""
        lines = self.lines
        dots = []
        for run in sorted(values, key=lambda run: run in lines):
            row = values[run]
            if row["value"] is None:
                continue
            line = lines.index(run) if run in lines else len(lines)
            low, high = (row.get(end) if run in lines else None for end in ("low", "high"))
            shown = readable(row)
            interval = format_interval(shown).removesuffix(DASH)
            dots.append(
                Dot(
                    run=run,
                    colour=self.palette.run_colour(run),
                    x=self.position(row["value"]),
                    y=4 + self.step * (line + 0.5),
                    low=None if low is None else self.position(low),
                    high=None if high is None else self.position(high),
                    text=f"{run}: {format_value(shown['value'], self.measure)} {interval}".strip(),
                    exact=row["value"],
                )
            )
        return dots

    def position(self, value: float) -> float:
        """Return the horizontal position of a value."""
        low, high = self.axis
        share = min(max((value - low) / (high - low), 0.0), 1.0)
        return round(_MARGIN + share * (WIDTH - 2 * _MARGIN), 2)
