"""The kinds of charts, and how each is made from scores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import polars as pl

from karat.measures import Measure, ScoreTable, parse
from karat.report.charts.chart import PageChart, TitledChart
from karat.report.charts.curves import curves, precision_recall, recall_by_characters
from karat.report.charts.distribution import distribution
from karat.report.charts.dot_plot import values
from karat.report.charts.group_map import groups
from karat.report.charts.history import history_charts
from karat.report.charts.scatter import scatter
from karat.report.charts.speed import cost, latency, latency_histogram, stages
from karat.report.charts.theme import Palette
from karat.report.charts.tradeoff import tradeoffs
from karat.report.page.model import ChartData, Page
from karat.report.sheet import Sheet
from karat.stats.pairs import difference_table, pair

MAX_DISTRIBUTIONS = 6
MAX_PAIRS = 10


@dataclass(frozen=True)
class ChartInput:
    """The data of charts: runs, measures and pairs of runs."""

    sheets: list[Sheet]
    groups: list[Sheet]
    """The sheets with groups."""
    data: ChartData
    pairs: list[tuple[str, str]]
    palette: Palette
    chosen: Measure | None = None
    """The only measure to draw, if one was chosen."""

    @property
    def loads(self) -> dict[str, str | None]:
        """How many queries ran at the same time, by run."""
        return {sheet.name: sheet.scores.load for sheet in self.sheets}

    @property
    def measures(self) -> list[Measure]:
        """The measures to draw, in the requested order."""
        if self.chosen is not None:
            return [self.chosen]
        return [parse(name) for name in self.sheets[0].summary["measure"]]

    @property
    def gold_measures(self) -> list[Measure]:
        """The measures of quality, without latency and cost; a chosen measure is always kept."""
        if self.chosen is not None:
            return self.measures
        return [m for m in self.measures if m.declaration.reads_gold]


def charts(page: Page) -> list[PageChart]:
    """Return all charts of a page for which there is data."""
    chart_input = ChartInput(
        sheets=page.sheets, groups=[], data=page.chart_data, pairs=[], palette=page_palette(page)
    )
    found = [chart for make in PAGE_KINDS for chart in make(chart_input)]
    if page.history is not None:
        found += history_charts(page.history, chart_input.palette)
    return [chart.on_page() for chart in found]


def page_palette(page: Page) -> Palette:
    """Return the colours of the runs of a page."""
    names = [sheet.name for sheet in page.sheets]
    best = [] if page.best is None else [names[page.best]]
    baseline = None if page.comparison is None else page.comparison.comparison.baseline
    highlighted = dict.fromkeys(best if baseline is None else [*best, baseline])
    return Palette(tuple(names), tuple(highlighted), on_page=True)


def _values(chart_input: ChartInput) -> list[TitledChart]:
    names = [measure.name for measure in chart_input.measures]
    return values(
        {
            sheet.name: sheet.summary.filter(pl.col("measure").is_in(names))
            for sheet in chart_input.sheets
        },
        chart_input.palette,
    )


def _distribution(chart_input: ChartInput) -> list[TitledChart]:
    """Draw the chosen measure, or the first few; the mean says all about a binary measure."""
    some = (
        chart_input.measures
        if chart_input.chosen
        else [m for m in chart_input.gold_measures if not m.declaration.binary]
    )
    charts = [
        distribution(
            m.name,
            {sheet.name: sheet.scores.per_query[m.name] for sheet in chart_input.sheets},
            chart_input.palette,
            at,
        )
        for at, m in enumerate(some[:MAX_DISTRIBUTIONS], 1)
    ]
    return [chart for chart in charts if chart is not None]


def _curves(chart_input: ChartInput) -> list[TitledChart]:
    frame = chart_input.data.curves
    if frame is not None and chart_input.chosen is not None:
        name = Measure(chart_input.chosen.declaration, None, chart_input.chosen.params).name
        frame = frame.filter(pl.col("measure") == name)
    main = next(iter(chart_input.gold_measures), None)
    return [] if frame is None else curves(frame, chart_input.palette, main)


def _precision_recall(chart_input: ChartInput) -> list[TitledChart]:
    frame = chart_input.data.precision_recall
    return [] if frame is None else [precision_recall(frame, chart_input.palette)]


def _groups(chart_input: ChartInput) -> list[TitledChart]:
    names = [measure.name for measure in chart_input.measures]
    charts = [
        groups(sheet, names, chart_input.palette, at, named=len(chart_input.sheets) > 1)
        for at, sheet in enumerate(chart_input.groups, 1)
    ]
    return [chart for chart in charts if chart is not None]


def _latency(chart_input: ChartInput) -> list[TitledChart]:
    frame = chart_input.data.latencies
    return [] if frame is None else latency(frame, chart_input.palette, chart_input.loads)


def _latency_histogram(chart_input: ChartInput) -> list[TitledChart]:
    frame = chart_input.data.latencies
    return [] if frame is None else latency_histogram(frame, chart_input.palette, chart_input.loads)


def _stages(chart_input: ChartInput) -> list[TitledChart]:
    frame = chart_input.data.latencies
    chart = None if frame is None else stages(frame, chart_input.palette)
    return [] if chart is None else [chart]


def _cost(chart_input: ChartInput) -> list[TitledChart]:
    frame = chart_input.data.costs
    chart = None if frame is None else cost(frame, chart_input.palette)
    return [] if chart is None else [chart]


def _tradeoff(chart_input: ChartInput) -> list[TitledChart]:
    frame = chart_input.data.tradeoffs
    if frame is None or not chart_input.gold_measures:
        return []
    measure = chart_input.gold_measures[0]
    of_measure = pl.col("measure") == measure.name
    values = {s.name: s.summary.filter(of_measure)["value"].item() for s in chart_input.sheets}
    return tradeoffs(frame, measure, values, chart_input.palette)


def _page_tradeoff(chart_input: ChartInput) -> list[TitledChart]:
    """Draw no context length of spans and evidence texts: there is a chart of recall by it."""
    charts = _tradeoff(chart_input)
    if chart_input.data.contexts is None:
        return charts
    return [chart for chart in charts if chart.id != "tradeoff-context-characters"]


def _recall_by_characters(chart_input: ChartInput) -> list[TitledChart]:
    frame = chart_input.data.contexts
    return [] if frame is None else recall_by_characters(frame, chart_input.palette)


def _scatter(chart_input: ChartInput) -> list[TitledChart]:
    measure = (chart_input.gold_measures or chart_input.measures)[0]
    tables = {
        sheet.name: ScoreTable((measure,), sheet.scores.per_query, {}, sheet.scores.table.weights)
        for sheet in chart_input.sheets
    }
    charts = [
        scatter(
            a,
            b,
            measure,
            difference_table(pair(tables[a], tables[b], measure)),
            chart_input.palette,
            at,
        )
        for at, (a, b) in enumerate(chart_input.pairs[:MAX_PAIRS], 1)
    ]
    return [chart for chart in charts if chart is not None]


ChartMaker = Callable[[ChartInput], list[TitledChart]]

KINDS: dict[str, ChartMaker] = {
    "values": _values,
    "distribution": _distribution,
    "curves": _curves,
    "precision_recall": _precision_recall,
    "groups": _groups,
    "latency": _latency,
    "latency_histogram": _latency_histogram,
    "cost": _cost,
    "tradeoff": _tradeoff,
    "scatter": _scatter,
}
"""The functions that make each kind of chart for notebooks."""

PAGE_KINDS: tuple[ChartMaker, ...] = (
    _recall_by_characters,
    _curves,
    _precision_recall,
    _distribution,
    _stages,
    _cost,
    _latency,
    _page_tradeoff,
    _latency_histogram,
)
"""The functions that make the charts of a page, in its order.

Values, groups and pairs of runs are drawn by the sections that show them as tables, too.
"""
