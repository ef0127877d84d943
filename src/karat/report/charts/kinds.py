"""Which charts there are, and what each needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

import polars as pl

from karat.measures import Measure, ScoreTable, parse
from karat.report.charts.chart import PageChart, TitledChart
from karat.report.charts.curves import curves, precision_recall
from karat.report.charts.distribution import distribution
from karat.report.charts.dot_plot import values
from karat.report.charts.group_map import groups
from karat.report.charts.scatter import scatter
from karat.report.charts.speed import cost, latency, latency_histogram
from karat.report.charts.tradeoff import tradeoffs
from karat.report.page.model import ChartData, Page
from karat.report.sheet import Sheet
from karat.stats.pairs import differing, pair

MAX_DISTRIBUTIONS = 6
MAX_PAIRS = 10
MAX_GROUPINGS = 6


@dataclass(frozen=True)
class ChartInput:
    """What charts are drawn of: runs, which of their measures, and which pairs of them."""

    sheets: list[Sheet]
    groups: list[Sheet]
    """Those that are drawn by groups."""
    picture: ChartData
    pairs: list[tuple[str, str]]
    chosen: Measure | None = None
    """The only measure to draw, where one was chosen."""

    @property
    def runs(self) -> list[str]:
        """The names of the runs; their places decide how they look."""
        return [sheet.name for sheet in self.sheets]

    @property
    def loads(self) -> dict[str, str | None]:
        """How many questions shared the retriever, run by run."""
        return {sheet.name: sheet.scores.load for sheet in self.sheets}

    @property
    def measures(self) -> list[Measure]:
        """What is drawn, in the order asked."""
        if self.chosen is not None:
            return [self.chosen]
        return [parse(name) for name in self.sheets[0].summary["measure"]]

    @property
    def of_gold(self) -> list[Measure]:
        """Those that say how good a run is, not what it took."""
        known = [m for m in self.measures if m.declaration.reads_gold]
        return known if self.chosen is None else self.measures


def charts(page: Page) -> list[PageChart]:
    """Return the charts of a page, each only where the data has it."""
    runs = [sheet.name for sheet in page.sheets]
    pairs = list(combinations(runs, 2)) if page.comparison is None else page.comparison.names
    subject = ChartInput(page.sheets, page.groups[:MAX_GROUPINGS], page.picture, pairs)
    return [drawing.on_page() for draw in KINDS.values() for drawing in draw(subject)]


def _values(of: ChartInput) -> list[TitledChart]:
    names = [measure.name for measure in of.measures]
    return values(
        {sheet.name: sheet.summary.filter(pl.col("measure").is_in(names)) for sheet in of.sheets}
    )


def _distribution(of: ChartInput) -> list[TitledChart]:
    """Draw the chosen measure, or the first few; whether 0 or 1 is more often, its value says."""
    some = of.measures if of.chosen else [m for m in of.of_gold if not m.declaration.binary]
    drawn = [
        distribution(
            m.name, {sheet.name: sheet.scores.per_query[m.name] for sheet in of.sheets}, at
        )
        for at, m in enumerate(some[:MAX_DISTRIBUTIONS], 1)
    ]
    return [drawing for drawing in drawn if drawing is not None]


def _curves(of: ChartInput) -> list[TitledChart]:
    frame = of.picture.curves
    if frame is not None and of.chosen is not None:
        name = Measure(of.chosen.declaration, None, of.chosen.params).name
        frame = frame.filter(pl.col("measure") == name)
    return [] if frame is None else curves(frame, of.runs)


def _precision_recall(of: ChartInput) -> list[TitledChart]:
    frame = of.picture.precision_recall
    return [] if frame is None else [precision_recall(frame, of.runs)]


def _groups(of: ChartInput) -> list[TitledChart]:
    names = [measure.name for measure in of.measures]
    drawn = [
        groups(sheet, names, at, named=len(of.sheets) > 1) for at, sheet in enumerate(of.groups, 1)
    ]
    return [drawing for drawing in drawn if drawing is not None]


def _latency(of: ChartInput) -> list[TitledChart]:
    frame = of.picture.latencies
    return [] if frame is None else latency(frame, of.runs, of.loads)


def _latency_histogram(of: ChartInput) -> list[TitledChart]:
    frame = of.picture.latencies
    return [] if frame is None else latency_histogram(frame, of.runs, of.loads)


def _cost(of: ChartInput) -> list[TitledChart]:
    drawing = None if of.picture.costs is None else cost(of.picture.costs, of.runs)
    return [] if drawing is None else [drawing]


def _tradeoff(of: ChartInput) -> list[TitledChart]:
    frame = of.picture.tradeoffs
    if frame is None or not of.of_gold:
        return []
    measure = of.of_gold[0]
    named = pl.col("measure") == measure.name
    found = {s.name: s.summary.filter(named)["value"].item() for s in of.sheets}
    return tradeoffs(frame, measure, found, of.runs)


def _scatter(of: ChartInput) -> list[TitledChart]:
    measure = (of.of_gold or of.measures)[0]
    tables = {
        sheet.name: ScoreTable((measure,), sheet.scores.per_query, {}, sheet.scores.table.weights)
        for sheet in of.sheets
    }
    drawn = [
        scatter(a, b, measure, differing(pair(tables[a], tables[b], measure)), of.runs, at)
        for at, (a, b) in enumerate(of.pairs[:MAX_PAIRS], 1)
    ]
    return [drawing for drawing in drawn if drawing is not None]


KINDS: dict[str, Callable[[ChartInput], list[TitledChart]]] = {
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
"""How each kind of chart is drawn, in the order of a page."""
