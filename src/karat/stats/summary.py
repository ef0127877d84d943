"""One row a measure."""

from __future__ import annotations

import polars as pl

from karat.measures.table import ScoreTable

SUMMARY = {"measure": pl.String, "value": pl.Float64, "n": pl.Int64, "left_out": pl.Int64}


def summary(table: ScoreTable) -> pl.DataFrame:
    """Return value, number of queries and number left out, for each measure."""
    counted = [table.frame[measure.name].count() for measure in table.measures]
    return pl.DataFrame(
        {
            "measure": [measure.name for measure in table.measures],
            "value": [table.value(measure) for measure in table.measures],
            "n": counted,
            "left_out": [table.frame.height - n for n in counted],
        },
        schema=SUMMARY,
    )
