"""One row a measure."""

from __future__ import annotations

import polars as pl

from karat.measures.combine import median
from karat.measures.table import ScoreTable
from karat.stats.intervals import Interval, intervals
from karat.stats.samples import Sample, deviation

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
}
_INTERVAL = ("low", "high", "method")


def summary(table: ScoreTable, *, intervals: bool = True) -> pl.DataFrame:
    """Return for each measure its value, a 95% interval, and how the queries spread.

    `low`, `high` and `method` are absent if intervals are not wanted.
    """
    samples = [Sample.of(table, measure) for measure in table.measures]
    found = _intervals(samples) if intervals else [Interval()] * len(samples)
    rows = [
        {
            "measure": measure.name,
            "value": sample.value,
            "low": ends.low,
            "high": ends.high,
            "method": ends.method,
            "sd": deviation(sample.values) if sample.n > 1 else None,
            "median": median(sample.values.tolist()) if sample.n else None,
            "n": sample.n,
            "left_out": table.frame.height - sample.n,
        }
        for measure, sample, ends in zip(table.measures, samples, found, strict=True)
    ]
    frame = pl.DataFrame(rows, schema=SUMMARY)
    return frame if intervals else frame.drop(_INTERVAL)


_intervals = intervals
