"""What runs took: time, money, and how much a reader of their lists is given."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl

from karat.arrays import Floats
from karat.data.chunks import Chunks
from karat.data.run import Run
from karat.errors import InputError
from karat.evaluation.opened import Opened
from karat.evaluation.spending import TOTAL, by_stage, by_stage_and_model
from karat.match.described import described
from karat.match.level import documents
from karat.match.numbers import asked, listed
from karat.match.usage import Usage
from karat.measures import Measure
from karat.measures.combine import combine, mean

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


def latencies(runs: Mapping[str, Opened]) -> pl.DataFrame | None:
    """Return what each query took in each stage, as latency measures see it: total first."""
    parts = [
        pl.DataFrame({"run": name, "stage": stage, "ms": ms}, schema=_LATENCIES)
        for name, opened in runs.items()
        for stage, ms in _stages(opened).items()
    ]
    return pl.concat(parts) if parts else None


def costs(runs: Mapping[str, Opened]) -> pl.DataFrame | None:
    """Return a row for each stage and model; calls without a price stand in a row of their own."""
    rows = [
        (name, *(getattr(part, column) for column in list(_COSTS)[1:]))
        for name, opened in runs.items()
        if (calls := _usage(opened, opened.run.calls)) is not None
        for part in by_stage_and_model(calls)
    ]
    return pl.DataFrame(rows, _COSTS, orient="row") if rows else None


def tradeoffs(runs: Mapping[str, Opened], measure: Measure | None) -> pl.DataFrame | None:
    """Return what each run took for its quality: time, and the length of what it delivered.

    Latency is the median of `total`, or of the only stage. Tokens are those that were counted:
    of the prompts of the stage `generation`, as a mean over queries. Characters are those of the
    items that the measure looks at. None is guessed from another.
    """
    rows = [
        (name, _median(opened), _context_tokens(opened), _context_characters(opened, measure))
        for name, opened in runs.items()
    ]
    frame = pl.DataFrame(rows, _TRADEOFFS, orient="row")
    known = frame.select(pl.any_horizontal(pl.all().exclude("run").is_not_null()).any()).item()
    return frame if known else None


def _usage(opened: Opened, table: pl.DataFrame | None) -> Usage | None:
    known = opened.session.prepared.query_ids
    return None if table is None else Usage.of(known, opened.run, table)


def _stages(opened: Opened) -> dict[str, Floats]:
    timings = _usage(opened, opened.run.timings)
    return {} if timings is None else by_stage(timings)


def _median(opened: Opened) -> float | None:
    stages = _stages(opened)
    chosen = stages.get(TOTAL) if len(stages) > 1 else next(iter(stages.values()), None)
    return None if chosen is None else combine("p50", chosen.tolist())


def _context_tokens(opened: Opened) -> float | None:
    calls = _usage(opened, opened.run.calls)
    if calls is None:
        return None
    made = calls.where(stage=GENERATION)
    counted = made.total(made.floats("prompt_tokens"))[made.places.count > 0]
    known = counted[~np.isnan(counted)].tolist()
    return mean(known) if known else None


def _context_characters(opened: Opened, measure: Measure | None) -> float | None:
    """Return the mean length of the top k of the queries that the run was asked."""
    if measure is None or not isinstance(measure.cutoff, int | None):
        return None
    run = documents(opened.run) if opened.plan.level == "doc" else opened.run
    known = opened.session.prepared.query_ids
    n_asked = int(np.count_nonzero(asked(known, run)[0]))
    lengths = _lengths(run, opened.plan.chunks)
    if lengths is None or not n_asked:
        return None
    number, rank = listed(known, run)
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
            results = described(run, chunks, "text", "start", "end")
        except InputError:  # the table may lack what no measure asked of it
            return None
    ways = []
    if "text" in results.columns:
        ways.append(pl.col("text").str.len_chars().cast(pl.Int64))
    if "start" in results.columns:
        ways.append(pl.col("end") - pl.col("start"))
    return results.select(pl.coalesce(ways)).to_series() if ways else None
