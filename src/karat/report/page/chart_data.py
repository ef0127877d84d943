"""The data of the charts: values by depth, latency, cost, and the length of the lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from karat.arrays import Floats
from karat.data.chunks import Chunks
from karat.data.run import Run
from karat.errors import InputError
from karat.evaluation.loaded_run import LoadedRun
from karat.evaluation.scores import Scores
from karat.evaluation.usage import TOTAL, by_stage, by_stage_and_model
from karat.match.align import (
    answered_queries,
    collapse_to_documents,
    query_and_rank,
    with_chunk_columns,
)
from karat.match.usage_table import UsageTable
from karat.measures import Measure, parse
from karat.measures.aggregate import combine, mean
from karat.measures.kernels.interpolated import ELEVEN_POINTS
from karat.report.page.model import ChartData
from karat.report.page.queries.gold_kinds import GOLD_KINDS, first_gold_measure


def load_chart_data(scores: Sequence[Scores], opened: Sequence[LoadedRun | None]) -> ChartData:
    """Return the data of all charts; runs without ranked lists (None) are left out."""
    runs = {score.name: run for score, run in zip(scores, opened, strict=True) if run is not None}
    by_depth, by_recall = curves(runs)
    return ChartData(
        curves=by_depth,
        precision_recall=by_recall,
        latencies=latencies(runs),
        costs=costs(runs),
        tradeoffs=tradeoffs(runs, first_gold_measure(scores[0].table.measures)),
        contexts=None if by_depth is None else contexts(runs, by_depth),
    )


MIN_DEPTH, MAX_DEPTH = 10, 1000
_DEPTHS = (1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000)

_CURVES = {"run": pl.String, "measure": pl.String, "k": pl.Int64, "value": pl.Float64}
_POINTS = {"run": pl.String, "recall": pl.Float64, "precision": pl.Float64}


def curves(runs: Mapping[str, LoadedRun]) -> tuple[pl.DataFrame | None, pl.DataFrame | None]:
    """Return values by k (run, measure, k, value) and precision by recall, each None if empty.

    All measures that a run was not scored with are computed at once.
    """
    longest = max((_longest_list(opened) for opened in runs.values()), default=0)
    by_depth, by_recall = [], []
    for name, opened in runs.items():
        at_depths, at_recalls = _depth_measures(opened, longest), _recall_measures(opened)
        if not at_depths:
            continue
        values = opened.values([*at_depths, *at_recalls])
        by_depth += [(name, without_cutoff(m).name, m.cutoff, values[m]) for m in at_depths]
        by_recall += [(name, m.cutoff, values[m]) for m in at_recalls]
    curve = pl.DataFrame(by_depth, _CURVES, orient="row").drop_nulls()
    points = pl.DataFrame(by_recall, _POINTS, orient="row").drop_nulls()
    return (curve if curve.height else None), (points if points.height else None)


def without_cutoff(measure: Measure) -> Measure:
    """Return a measure without its cutoff."""
    return Measure(measure.declaration, None, measure.params)


def depths(longest: int, requested: Sequence[int] = ()) -> list[int]:
    """Return the cutoffs of a curve, with about equal distances on a log scale.

    The requested cutoffs are added. The last cutoff is at most `longest`, the length of the
    longest list; a `longest` below 10 counts as 10, and one above 1000 as 1000.

    >>> depths(25), depths(4, [7])
    ([1, 2, 3, 5, 10, 20], [1, 2, 3, 5, 7, 10])
    """
    deepest = min(max(longest, MIN_DEPTH), MAX_DEPTH)
    return sorted(k for k in {*_DEPTHS, *requested} if k <= deepest)


def _longest_list(opened: LoadedRun) -> int:
    lengths = opened.run.segments.lengths
    return int(lengths.max()) if len(lengths) else 0


def _depth_measures(opened: LoadedRun, longest: int) -> list[Measure]:
    """Return the measures at all depths, with the parameters of the requested measures, if any."""
    measures = []
    for family, kind in GOLD_KINDS.items():
        if family not in opened.families:
            continue
        for name in kind.by_depth:
            requested = [m for m in opened.plan.measures if m.declaration.name == name]
            ranks = depths(longest, [m.cutoff for m in requested if isinstance(m.cutoff, int)])
            variants = dict.fromkeys(without_cutoff(m) for m in requested or [parse(name)])
            measures += [Measure(m.declaration, k, m.params) for m in variants for k in ranks]
    return measures


def _recall_measures(opened: LoadedRun) -> list[Measure]:
    measures = []
    for family, kind in GOLD_KINDS.items():
        if kind.by_recall is None or family not in opened.families:
            continue
        default = parse(kind.by_recall)
        requested = [m for m in opened.plan.measures if m.declaration == default.declaration]
        first = (requested or [default])[0]
        measures += [Measure(first.declaration, point, first.params) for point in ELEVEN_POINTS]
    return measures


GENERATION = "generation"
_LATENCIES = {"run": pl.String, "stage": pl.String, "ms": pl.Float64}
_COSTS = {
    "run": pl.String,
    "stage": pl.String,
    "model": pl.String,
    "calls": pl.Int64,
    "prompt_tokens": pl.Int64,
    "completion_tokens": pl.Int64,
    "usd": pl.Float64,
    "queries": pl.Int64,
}
_CONTEXTS = {"run": pl.String, "k": pl.Int64, "characters": pl.Float64}
_TRADEOFFS = {
    "run": pl.String,
    "latency_ms": pl.Float64,
    "context_tokens": pl.Float64,
    "context_characters": pl.Float64,
}


def latencies(runs: Mapping[str, LoadedRun]) -> pl.DataFrame | None:
    """Return the latency of each query in each stage, as in latency measures, without failures.

    The total comes first, then the stages in the order in which queries went through them.
    """
    parts = [
        pl.DataFrame({"run": name, "stage": stage, "ms": ms}, schema=_LATENCIES)
        for name, opened in runs.items()
        for stage, ms in _ms_by_stage(opened).items()
    ]
    return pl.concat(parts) if parts else None


def costs(runs: Mapping[str, LoadedRun]) -> pl.DataFrame | None:
    """Return one row per stage and model; calls without a price have a row of their own."""
    rows = [
        (
            name,
            *(getattr(part, column) for column in list(_COSTS)[1:-1]),
            int(np.count_nonzero(calls.present)),
        )
        for name, opened in runs.items()
        if (calls := _usage(opened, opened.run.calls)) is not None
        for part in by_stage_and_model(calls)
    ]
    return pl.DataFrame(rows, _COSTS, orient="row") if rows else None


def tradeoffs(runs: Mapping[str, LoadedRun], measure: Measure | None) -> pl.DataFrame | None:
    """Return the latency and the context length of each run.

    Latency is the median of `total`, or of the only stage. Tokens are the reported prompt tokens
    of the stage `generation`, as a mean over queries. Characters are those of the items up to the
    cutoff of the measure. Nothing is estimated: a number that was not reported is null.
    """
    rows = [
        (
            name,
            _median_latency(opened),
            _context_tokens(opened),
            _context_characters(opened, measure),
        )
        for name, opened in runs.items()
    ]
    frame = pl.DataFrame(rows, _TRADEOFFS, orient="row")
    has_data = frame.select(pl.any_horizontal(pl.all().exclude("run").is_not_null()).any()).item()
    return frame if has_data else None


def _usage(opened: LoadedRun, table: pl.DataFrame | None) -> UsageTable | None:
    return None if table is None else UsageTable.of(opened.query_ids, opened.run, table)


def _ms_by_stage(opened: LoadedRun) -> dict[str, Floats]:
    timings = _usage(opened, opened.run.timings)
    if timings is None:
        return {}
    # The mean position of a stage among the stages of a query; the order of queries has no effect.
    position = (
        timings.table.select("stage", position=pl.Series(timings.rows.rank))
        .group_by("stage")
        .mean()
    )
    positions = dict(position.iter_rows())
    times = by_stage(timings)
    order = sorted(times, key=lambda stage: (stage != TOTAL, positions[stage], stage))
    return {stage: times[stage] for stage in order}


def _median_latency(opened: LoadedRun) -> float | None:
    stages = _ms_by_stage(opened)
    times = stages.get(TOTAL) if len(stages) > 1 else next(iter(stages.values()), None)
    return None if times is None else combine("p50", times.tolist())


def _context_tokens(opened: LoadedRun) -> float | None:
    calls = _usage(opened, opened.run.calls)
    if calls is None:
        return None
    generation = calls.where(stage=GENERATION)
    totals = generation.total(generation.floats("prompt_tokens"))[generation.rows.count > 0]
    tokens = totals[~np.isnan(totals)].tolist()
    return mean(tokens) if tokens else None


def contexts(runs: Mapping[str, LoadedRun], by_depth: pl.DataFrame) -> pl.DataFrame | None:
    """Return recall of spans and evidence texts with the characters delivered; None if empty."""
    recall = by_depth.filter(pl.col("measure").str.contains(r"^(span|evidence)\.recall"))
    rows = [
        (name, k, characters)
        for name, opened in runs.items()
        for k in recall.filter(pl.col("run") == name)["k"].unique().sort()
        if (characters := _characters(opened, k)) is not None
    ]
    frame = recall.join(
        pl.DataFrame(rows, _CONTEXTS, orient="row"), on=["run", "k"], maintain_order="left"
    )
    return frame if frame.height else None


def _context_characters(opened: LoadedRun, measure: Measure | None) -> float | None:
    if measure is None or not isinstance(measure.cutoff, int | None):
        return None
    return _characters(opened, measure.cutoff)


def _characters(opened: LoadedRun, k: int | None) -> float | None:
    """Return the mean length of the top k, over the queries in the run."""
    run = collapse_to_documents(opened.run) if opened.plan.level == "doc" else opened.run
    query_ids = opened.query_ids
    n_queries = int(np.count_nonzero(answered_queries(query_ids, run)[0]))
    lengths = _lengths(run, opened.plan.chunks)
    if lengths is None or not n_queries:
        return None
    number, rank = query_and_rank(query_ids, run)
    is_counted = number >= 0
    if k is not None:
        is_counted &= rank <= k
    counted = lengths.filter(is_counted)
    return None if counted.null_count() else int(counted.sum()) / n_queries


def _lengths(run: Run, chunks: Chunks | None) -> pl.Series | None:
    """Return the number of characters of each result, if the run or the chunk table has it."""
    results = run.results
    if "text" not in results.columns and "start" not in results.columns:
        try:
            results = with_chunk_columns(run, chunks, "text", "start", "end")
        except InputError:  # the chunk table may lack columns that no measure needs
            return None
    lengths = []
    if "text" in results.columns:
        lengths.append(pl.col("text").str.len_chars().cast(pl.Int64))
    if "start" in results.columns:
        lengths.append(pl.col("end") - pl.col("start"))
    return results.select(pl.coalesce(lengths)).to_series() if lengths else None
