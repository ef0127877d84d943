"""One row a measure."""

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
_INTERVAL = ("low", "high", "method")


def summary(table: ScoreTable, *, intervals: bool = True) -> pl.DataFrame:
    """Return for each measure its value, a 95% interval, and how the queries spread.

    `low`, `high` and `method` are absent if intervals are not wanted. `judged` says how much of
    the top k was judged, `bound_low` and `bound_high` what the value is if no unjudged item is
    relevant, and if all are: another question than where the value lies for other queries.
    """
    samples = [Sample.of(table, measure) for measure in table.measures]
    found = intervals_of(samples) if intervals else [Interval()] * len(samples)
    bounds = [table.bound(measure) for measure in table.measures]
    rows = [
        {
            "measure": measure.name,
            "value": sample.value,
            "low": ends.low,
            "high": ends.high,
            "method": ends.method,
            "sd": sample.spread,
            "median": float(np.median(sample.values)) if sample.n else None,
            "n": sample.n,
            "left_out": table.frame.height - sample.n,
            "judged": table.judged(measure),
            "bound_low": None if most is None else sample.value,
            "bound_high": most,
        }
        for measure, sample, ends, most in zip(table.measures, samples, found, bounds, strict=True)
    ]
    frame = pl.DataFrame(rows, schema=SUMMARY)
    return frame if intervals else frame.drop(_INTERVAL)
