"""The plot of the main measure: one dot with its interval per run, the best run on top."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from karat.errors import counted
from karat.report.cells import declaration_of, format_value, interval_text, readable, table_label
from karat.report.page.model import Page
from karat.report.page.sections.text_width import fitted, text_width

MOST_RUNS = 10
_BOLD = 1.08
"""How much wider bold text is."""


@dataclass(frozen=True)
class PlottedValue:
    """The value of a run as it is shown: amounts are scaled, an interval without width is None."""

    value: float | None
    low: float | None
    high: float | None
    text: str
    interval: str
    """Empty if there is no interval."""

    @property
    def full_text(self) -> str:
        """The value and its interval."""
        return f"{self.text} {self.interval}".rstrip()


@dataclass(frozen=True)
class PlotRow:
    """One run: its name, its value, and their places in the picture."""

    name: str
    is_best: bool
    note: str
    note_x: float
    colour: str
    text_y: float
    y: float
    """The height of the dot and its interval."""
    x: float | None
    low: float | None
    high: float | None
    text: str
    interval: str


@dataclass(frozen=True)
class AxisTick:
    """A tick of the axis."""

    x: float
    label: str


@dataclass(frozen=True)
class Plot:
    """A picture of the main measure; all lengths are in its own units."""

    title: str
    description: str
    """The whole content in words."""
    rows: list[PlotRow]
    ticks: list[AxisTick]
    more: str
    """How many runs are not shown; empty if all are."""
    width: float
    height: float
    size: float
    """The font size."""
    top: float
    bottom: float
    """Where the lines of the axis start and end."""
    value_x: float
    """Where the column of values ends; the intervals end at the right edge."""


def estimate(row: dict[str, Any]) -> PlottedValue:
    """Return the value of a row of a summary with its interval."""
    shown_row = readable(row)
    measure, value = row["measure"], shown_row["value"]
    low, high = shown_row.get("low"), shown_row.get("high")
    interval = ""
    if low == high:
        low = high = None
    else:
        interval = interval_text(low, high, measure, sign=False)
    return PlottedValue(value, low, high, format_value(value, measure), interval)


def main_rows(page: Page) -> list[dict[str, Any]]:
    """Return the summary of the main measure, one row per run."""
    at = page.sheets[0].summary["measure"].to_list().index(page.main_measure)
    return [sheet.summary.row(at, named=True) for sheet in page.sheets]


def draw_plot(page: Page, *, width: float, size: float, is_stacked: bool = False) -> Plot:
    """Return the plot; if stacked, the name of a run is above its interval, not beside it."""
    estimates = [estimate(row) for row in main_rows(page)]
    runs = _shown_runs(page)
    texts = [estimates[run] for run in runs]
    ends = [end for one in texts for end in (one.low, one.value, one.high) if end is not None]
    is_share = declaration_of(page.main_measure).bounded
    ticks = [0.0, 0.5, 1.0] if is_share and (len(runs) == 1 or not ends) else axis_ticks(ends)
    columns = _columns(page, texts, ticks, width=width, size=size, is_stacked=is_stacked)
    left, right = columns.left, columns.right
    row_height = (3.1 if is_stacked else 2.1) * size
    top = 2.2 * size

    def place(number: float | None) -> float | None:
        if number is None:
            return None
        share = (number - ticks[0]) / (ticks[-1] - ticks[0])
        return round(left + share * (right - left), 2)

    rows = []
    for number, run in enumerate(runs):
        one, y = estimates[run], top + number * row_height
        name_width = columns.name_width - _note_width(page, run, size)
        name = fitted(page.sheets[run].name, name_width, _BOLD * size)
        is_best = len(runs) > 1 and run == page.best
        rows.append(
            PlotRow(
                name=name,
                is_best=is_best,
                note="baseline" if run == page.baseline else "",
                note_x=round(text_width(name, size * (_BOLD if is_best else 1.0)) + 0.7 * size, 2),
                colour=page.run_colours[run],
                text_y=round(y + (1.1 if is_stacked else 1.4) * size, 2),
                y=round(y + (2.1 if is_stacked else 1.05) * size, 2),
                x=place(one.value),
                low=None if one.interval == "" else place(_or(one.low, one.value)),
                high=None if one.interval == "" else place(_or(one.high, one.value)),
                text=one.text,
                interval=one.interval,
            )
        )
    bottom = top + len(runs) * row_height + 0.3 * size
    hidden = len(page.sheets) - len(runs)
    return Plot(
        title=_title(page, texts),
        description=_description(page, runs, estimates, hidden),
        rows=rows,
        ticks=[AxisTick(place(tick) or left, label) for tick, label in axis_labels(ticks)],
        more=f"and {counted(hidden, 'more run')}" if hidden else "",
        width=width,
        height=round(bottom + (3.2 if hidden else 1.7) * size, 2),
        size=size,
        top=top,
        bottom=round(bottom, 2),
        value_x=round(columns.value_x, 2),
    )


@dataclass(frozen=True)
class _Columns:
    """Where names end, the axis starts and ends, and values end."""

    name_width: float
    left: float
    right: float
    value_x: float


def _columns(
    page: Page,
    texts: Sequence[PlottedValue],
    ticks: Sequence[float],
    *,
    width: float,
    size: float,
    is_stacked: bool,
) -> _Columns:
    interval_width = max(text_width(one.interval, size) for one in texts)
    value_width = max(text_width(one.text, _BOLD * size) for one in texts)
    value_x = width - interval_width - (size if interval_width else 0.0)
    if is_stacked:
        widest_label = max(text_width(label, 0.85 * size) for _, label in axis_labels(ticks))
        left = max(0.6 * size, widest_label / 2)
        return _Columns(value_x - value_width - size, left, width - left, value_x)
    widest = max(
        text_width(page.sheets[run].name, _BOLD * size) + _note_width(page, run, size)
        for run in _shown_runs(page)
    )
    name_width = min(widest, 0.36 * width)
    return _Columns(name_width, name_width + 2 * size, value_x - value_width - 1.6 * size, value_x)


def _note_width(page: Page, run: int, size: float) -> float:
    """Return the width of the word behind the name of the baseline."""
    return size + text_width("baseline", 0.85 * size) if run == page.baseline else 0.0


def _or(number: float | None, other: float | None) -> float | None:
    """Return an end of an interval; an open end is drawn as the value itself."""
    return other if number is None else number


def _shown_runs(page: Page) -> list[int]:
    """Return the best runs, best first; the baseline is always among them."""
    runs = page.ranking[:MOST_RUNS]
    if page.baseline is not None and page.baseline not in runs:
        runs = [*runs[:-1], page.baseline]
    return runs


def axis_ticks(ends: Sequence[float]) -> list[float]:
    """Return three to five round numbers; the first and the last enclose all ends.

    >>> axis_ticks([0.61, 0.79])
    [0.6, 0.65, 0.7, 0.75, 0.8]
    """
    low, high = min(ends, default=0.0), max(ends, default=1.0)
    if low == high:
        low, high = min(low, 0.0), max(high, 0.0) or 1.0
    power = math.floor(math.log10(high - low)) - 1
    while True:
        for factor in (1, 2, 5):
            step = factor * 10.0**power
            first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
            if last - first <= 4:
                # Dividing is exact for 0.3, where multiplying with 0.1 is not.
                return [
                    number * factor / 10.0**-power if power < 0 else number * step
                    for number in range(first, max(last, first + 2) + 1)
                ]
        power += 1


def axis_labels(ticks: Sequence[float]) -> list[tuple[float, str]]:
    """Return the ticks with labels that have as many decimals as the distance of ticks needs."""
    decimals = max(0, -math.floor(math.log10(ticks[1] - ticks[0]) + 1e-9))
    return [(tick, f"{tick:,.{decimals}f}".replace("-", "−")) for tick in ticks]


def _title(page: Page, texts: Sequence[PlottedValue]) -> str:
    label = table_label(page.main_measure, page.sheets[0])
    intervals = " with 95% confidence interval" if any(one.interval for one in texts) else ""
    direction = "" if declaration_of(page.main_measure).higher_is_better else " (lower is better)"
    return f"{label}{direction}{intervals}"


def _description(
    page: Page, runs: Sequence[int], estimates: Sequence[PlottedValue], hidden: int
) -> str:
    parts = []
    for run in runs:
        role = " (baseline)" if run == page.baseline else ""
        parts.append(f"{fitted(page.sheets[run].name, 600, 12)}{role} {estimates[run].full_text}")
    more = f"; and {counted(hidden, 'more run')}" if hidden else ""
    order = ", best first" if len(runs) > 1 else ""
    return f"{_title(page, estimates)}{order}: {'; '.join(parts)}{more}"
