"""Summary of a score table: one row per measure."""

from __future__ import annotations

import numpy as np
import polars as pl

from karat.measures.score_table import ScoreTable
from karat.stats.intervals import Interval
from karat.stats.intervals import intervals as intervals_of
from karat.stats.samples import Sample

SUMMARY = {
    "measure": pl.String,
    "value": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "method": pl.String,
    "sd": pl.Float64,
    "median": pl.Float64,
    "n": pl.Int64,
    "left_out": pl.Int64,
    "judged": pl.Float64,
    "bound_low": pl.Float64,
    "bound_high": pl.Float64,
}
_INTERVAL_COLUMNS = ("low", "high", "method")


def summary(table: ScoreTable, *, intervals: bool = True) -> pl.DataFrame:
    """Return the value, the 95% confidence interval and the spread over queries of each measure.

    Without `intervals`, the columns `low`, `high` and `method` are missing. `judged` is the share
    of the top k that is judged. `bound_low` and `bound_high` are the value if no unjudged item is
    relevant and if all are; unlike the interval, they concern the same queries.
    """
    samples = [Sample.of(table, measure) for measure in table.measures]
    ends = intervals_of(samples) if intervals else [Interval()] * len(samples)
    bounds = [table.bound(measure) for measure in table.measures]
    rows = [
        {
            "measure": measure.name,
            "value": sample.value,
            "low": interval.low,
            "high": interval.high,
            "method": interval.method,
            "sd": sample.spread,
            "median": float(np.median(sample.values)) if sample.n else None,
            "n": sample.n,
            "left_out": table.frame.height - sample.n,
            "judged": table.judged(measure),
            "bound_low": None if bound is None else sample.value,
            "bound_high": bound,
        }
        for measure, sample, interval, bound in zip(
            table.measures, samples, ends, bounds, strict=True
        )
    ]
    frame = pl.DataFrame(rows, schema=SUMMARY)
    return frame if intervals else frame.drop(_INTERVAL_COLUMNS)
