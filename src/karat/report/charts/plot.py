"""Single charts of scores and comparisons, for notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from itertools import combinations
from typing import TYPE_CHECKING, Any

import polars as pl

from karat import checks
from karat.errors import InputError, warn
from karat.evaluation.history import History
from karat.evaluation.loaded_run import LoadedRun
from karat.measures import Measure, parse
from karat.measures.name_parser import AnyMeasure
from karat.report.charts.chart import concat_charts
from karat.report.charts.history import history_charts
from karat.report.charts.kinds import KINDS, ChartInput
from karat.report.charts.theme import Palette
from karat.report.page.chart_data import costs, curves, latencies, tradeoffs
from karat.report.page.model import ChartData
from karat.report.page.queries.gold_kinds import GOLD_KINDS, first_gold_measure
from karat.report.page.queries.query_sample import QuerySample, lists_exceed_memory
from karat.stats.groups import Field, fields_of

if TYPE_CHECKING:
    from karat.evaluation.scores import Scores
from karat.report.sheet import Sheet

_LATENCY_KINDS = ("latency", "latency_histogram")
_NEEDS_LISTS = ("curves", "precision_recall", *_LATENCY_KINDS, "cost", "tradeoff")
_WITHOUT_MEASURE = ("precision_recall", *_LATENCY_KINDS, "cost")
_TIMINGS = 'requires runs with timings: "latency_ms": {"total": 123.4} in each line of a native run'
_NEEDS = {
    "values": "requires a measure with a value",
    "distribution": "requires a query with a value",
    "curves": "requires one of the measures "
    + ", ".join(name for kind in GOLD_KINDS.values() for name in kind.by_depth),
    "precision_recall": "requires gold with judgments, and a measure of them such as nDCG@10",
    "groups": "pass a field of the queries: by='category'",
    **dict.fromkeys(_LATENCY_KINDS, _TIMINGS),
    "cost": "requires runs with priced model calls",
    "tradeoff": "requires at least two runs that have timings, model calls of the stage "
    "'generation', or item texts",
    "scatter": "requires two runs: karat.compare(gold, {'a': a, 'b': b}).plot('scatter')",
}


def plot(
    scores: Sequence[Scores],
    kind: str,
    *,
    by: Field | Sequence[Field] | None = None,
    measure: AnyMeasure | None = None,
    pairs: Sequence[tuple[str, str]] | None = None,
) -> Any:
    """Return one kind of chart; several charts are stacked vertically."""
    _check(kind, by, measure)
    chosen = None if measure is None else scores[0].table.measure(parse(measure))
    fields = fields_of(by)
    names = [score.name for score in scores]
    intervals = kind in ("values", "groups")
    sheets = [Sheet(score, by=fields, intervals=intervals) for score in scores]
    chart_input = ChartInput(
        sheets=sheets,
        groups=sheets if fields else [],
        data=_load_chart_data(scores, kind, chosen) if kind in _NEEDS_LISTS else ChartData(),
        pairs=list(combinations(names, 2)) if pairs is None else list(pairs),
        palette=Palette(tuple(names)),
        chosen=chosen,
    )
    charts = KINDS[kind](chart_input)
    if not charts:
        raise InputError(f"no data for a chart of kind {kind!r}", field="plot", hint=_NEEDS[kind])
    return concat_charts(charts)


def plot_history(history: History, measure: AnyMeasure | None = None) -> Any:
    """Return the charts of a history; those of several measures are stacked vertically."""
    _require_altair()
    table = history.table
    if measure is not None:
        name = parse(measure).name
        checks.one_of(name, "measure", table["measure"].unique(maintain_order=True))
        table = table.filter(pl.col("measure") == name)
    runs = tuple(table["run"].unique(maintain_order=True))
    return concat_charts(history_charts(replace(history, table=table), Palette(runs)))


def _check(kind: str, by: object, measure: object) -> None:
    checks.one_of(kind, "kind of chart", KINDS)
    if by is not None and kind != "groups":
        raise InputError(
            f"a chart of kind {kind!r} cannot be grouped",
            field="by",
            hint="use plot('groups', by=…)",
        )
    if measure is not None and kind in _WITHOUT_MEASURE:
        raise InputError(
            f"a chart of kind {kind!r} does not use a measure",
            field="measure",
            hint="omit the argument",
        )
    _require_altair()


def _require_altair() -> None:
    if find_spec("altair") is None:
        raise InputError(
            "charts need Altair, which is not installed",
            field="plot",
            hint="pip install 'karat[report]'",
        )


def _load_chart_data(scores: Sequence[Scores], kind: str, chosen: Measure | None) -> ChartData:
    """Return the data of one kind of chart; runs are loaded only if it needs ranked lists."""
    sample = QuerySample.of(scores) if lists_exceed_memory(scores) else None
    loaded = {
        score.name: LoadedRun.of(score, None if sample is None else sample.random_ids(score))
        for score in scores
    }
    runs = {name: run for name, run in loaded.items() if run is not None}
    if not runs:
        raise InputError(
            f"a chart of kind {kind!r} needs the ranked lists, which saved scores do not contain",
            field="plot",
            hint=f"evaluate the run again, then call plot({kind!r})",
        )
    if sample is not None:
        warn(
            f"the chart shows {sample.of_charts}, because the lists of all queries do not fit "
            "into the memory limit; raise it with --memory (memory=)",
            stacklevel=2,
        )
    if kind in _LATENCY_KINDS:
        return ChartData(latencies=latencies(runs))
    if kind == "cost":
        return ChartData(costs=costs(runs))
    if kind == "tradeoff":
        return ChartData(
            tradeoffs=tradeoffs(runs, chosen or first_gold_measure(scores[0].table.measures))
        )
    by_depth, by_recall = curves(runs)
    return ChartData(curves=by_depth, precision_recall=by_recall)
