"""What the charts of runs are drawn from: values by depth, time, money, length of the lists."""

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
from karat.report.page.gold_kinds import GOLD_KINDS, first_gold_measure
from karat.report.page.model import ChartData


def load_chart_data(scores: Sequence[Scores], opened: Sequence[LoadedRun | None]) -> ChartData:
    """Return what charts show of runs; runs that cannot be opened have nothing to show."""
    runs = {score.name: one for score, one in zip(scores, opened, strict=True) if one is not None}
    by_depth, by_recall = curves(runs)
    return ChartData(
        curves=by_depth,
        precision_recall=by_recall,
        latencies=latencies(runs),
        costs=costs(runs),
        tradeoffs=tradeoffs(runs, first_gold_measure(scores[0].table.measures)),
    )


MIN_DEPTH, MAX_DEPTH = 10, 1000
_DEPTHS = (1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000)

_CURVES = {"run": pl.String, "measure": pl.String, "k": pl.Int64, "value": pl.Float64}
_POINTS = {"run": pl.String, "recall": pl.Float64, "precision": pl.Float64}


def curves(runs: Mapping[str, LoadedRun]) -> tuple[pl.DataFrame | None, pl.DataFrame | None]:
    """Return values by k (run, measure, k, value) and precision by recall; None where none is.

    What a run was not scored by yet is computed for all of these measures at the same time.
    """
    longest = max((_longest_list(opened) for opened in runs.values()), default=0)
    by_depth, by_recall = [], []
    for name, opened in runs.items():
        deep, recalling = _depth_measures(opened, longest), _recall_measures(opened)
        if not deep:
            continue
        values = opened.values([*deep, *recalling])
        by_depth += [(name, without_cutoff(m).name, m.cutoff, values[m]) for m in deep]
        by_recall += [(name, m.cutoff, values[m]) for m in recalling]
    drawn = pl.DataFrame(by_depth, _CURVES, orient="row").drop_nulls()
    points = pl.DataFrame(by_recall, _POINTS, orient="row").drop_nulls()
    return (drawn if drawn.height else None), (points if points.height else None)


def without_cutoff(measure: Measure) -> Measure:
    """Return a measure without its cutoff."""
    return Measure(measure.declaration, None, measure.params)


def depths(longest: int, asked: Sequence[int] = ()) -> list[int]:
    """Return the ranks to measure at: evenly by their logarithm, and those that were asked for.

    >>> depths(25), depths(4, [7])
    ([1, 2, 3, 5, 10, 20], [1, 2, 3, 5, 7, 10])
    """
    most = min(max(longest, MIN_DEPTH), MAX_DEPTH)
    return sorted(k for k in {*_DEPTHS, *asked} if k <= most)


def _longest_list(opened: LoadedRun) -> int:
    lengths = opened.run.segments.lengths
    return int(lengths.max()) if len(lengths) else 0


def _depth_measures(opened: LoadedRun, longest: int) -> list[Measure]:
    """Return what to measure at which depths; parameters are those that were asked for, if any."""
    wanted = []
    for family, kind in GOLD_KINDS.items():
        if family not in opened.families:
            continue
        for name in kind.by_depth:
            asked = [m for m in opened.plan.measures if m.declaration.name == name]
            at = depths(longest, [m.cutoff for m in asked if isinstance(m.cutoff, int)])
            kinds = dict.fromkeys(without_cutoff(m) for m in asked or [parse(name)])
            wanted += [Measure(m.declaration, k, m.params) for m in kinds for k in at]
    return wanted


def _recall_measures(opened: LoadedRun) -> list[Measure]:
    wanted = []
    for family, kind in GOLD_KINDS.items():
        if kind.by_recall is None or family not in opened.families:
            continue
        usual = parse(kind.by_recall)
        asked = [m for m in opened.plan.measures if m.declaration == usual.declaration]
        first = (asked or [usual])[0]
        wanted += [Measure(first.declaration, point, first.params) for point in ELEVEN_POINTS]
    return wanted


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
}
_TRADEOFFS = {
    "run": pl.String,
    "latency_ms": pl.Float64,
    "context_tokens": pl.Float64,
    "context_characters": pl.Float64,
}


def latencies(runs: Mapping[str, LoadedRun]) -> pl.DataFrame | None:
    """Return what each query took in each stage, as latency measures see it: total first."""
    parts = [
        pl.DataFrame({"run": name, "stage": stage, "ms": ms}, schema=_LATENCIES)
        for name, opened in runs.items()
        for stage, ms in _ms_by_stage(opened).items()
    ]
    return pl.concat(parts) if parts else None


def costs(runs: Mapping[str, LoadedRun]) -> pl.DataFrame | None:
    """Return a row for each stage and model; calls without a price have a row of their own."""
    rows = [
        (name, *(getattr(part, column) for column in list(_COSTS)[1:]))
        for name, opened in runs.items()
        if (calls := _usage(opened, opened.run.calls)) is not None
        for part in by_stage_and_model(calls)
    ]
    return pl.DataFrame(rows, _COSTS, orient="row") if rows else None


def tradeoffs(runs: Mapping[str, LoadedRun], measure: Measure | None) -> pl.DataFrame | None:
    """Return what each run took for its quality: time, and the length of what it delivered.

    Latency is the median of `total`, or of the only stage. Tokens are those that were counted:
    of the prompts of the stage `generation`, as a mean over queries. Characters are those of the
    items that the measure looks at. None is guessed from another.
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
    known = frame.select(pl.any_horizontal(pl.all().exclude("run").is_not_null()).any()).item()
    return frame if known else None


def _usage(opened: LoadedRun, table: pl.DataFrame | None) -> UsageTable | None:
    known = opened.query_ids
    return None if table is None else UsageTable.of(known, opened.run, table)


def _ms_by_stage(opened: LoadedRun) -> dict[str, Floats]:
    timings = _usage(opened, opened.run.timings)
    return {} if timings is None else by_stage(timings)


def _median_latency(opened: LoadedRun) -> float | None:
    stages = _ms_by_stage(opened)
    chosen = stages.get(TOTAL) if len(stages) > 1 else next(iter(stages.values()), None)
    return None if chosen is None else combine("p50", chosen.tolist())


def _context_tokens(opened: LoadedRun) -> float | None:
    calls = _usage(opened, opened.run.calls)
    if calls is None:
        return None
    made = calls.where(stage=GENERATION)
    counted = made.total(made.floats("prompt_tokens"))[made.places.count > 0]
    known = counted[~np.isnan(counted)].tolist()
    return mean(known) if known else None


def _context_characters(opened: LoadedRun, measure: Measure | None) -> float | None:
    """Return the mean length of the top k of the queries that the run was asked."""
    if measure is None or not isinstance(measure.cutoff, int | None):
        return None
    run = collapse_to_documents(opened.run) if opened.plan.level == "doc" else opened.run
    known = opened.query_ids
    n_asked = int(np.count_nonzero(answered_queries(known, run)[0]))
    lengths = _lengths(run, opened.plan.chunks)
    if lengths is None or not n_asked:
        return None
    number, rank = query_and_rank(known, run)
    delivered = number >= 0
    if measure.cutoff is not None:
        delivered &= rank <= measure.cutoff
    counted = lengths.filter(delivered)
    return None if counted.null_count() else int(counted.sum()) / n_asked


def _lengths(run: Run, chunks: Chunks | None) -> pl.Series | None:
    """Return how many characters each result has, where the run or the table of chunks says."""
    results = run.results
    if "text" not in results.columns and "start" not in results.columns:
        try:
            results = with_chunk_columns(run, chunks, "text", "start", "end")
        except InputError:  # the table may lack what no measure asked of it
            return None
    ways = []
    if "text" in results.columns:
        ways.append(pl.col("text").str.len_chars().cast(pl.Int64))
    if "start" in results.columns:
        ways.append(pl.col("end") - pl.col("start"))
    return results.select(pl.coalesce(ways)).to_series() if ways else None
