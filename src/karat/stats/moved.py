"""The queries that moved most from one run to another."""

from __future__ import annotations

import polars as pl

from karat.measures.declare import Measure
from karat.measures.table import ScoreTable


def moved(a: ScoreTable, b: ScoreTable, measure: Measure, n: int) -> pl.DataFrame:
    """Return the queries that rose most, then those that fell most, at most n of each.

    Only queries that have a value in both count. Of queries that moved alike, the ids decide.
    """
    before, after = (
        table.frame.select("query_id", pl.col(measure.name).alias(name)).drop_nulls()
        for table, name in ((a, "value_a"), (b, "value_b"))
    )
    both = before.join(after, on="query_id").with_columns(
        difference=pl.col("value_b") - pl.col("value_a")
    )
    rose = both.filter(pl.col("difference") > 0)
    fell = both.filter(pl.col("difference") < 0)
    return pl.concat(
        [
            rose.sort("difference", "query_id", descending=[True, False]).head(n),
            fell.sort("difference", "query_id").head(n),
        ]
    )
