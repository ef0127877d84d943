"""The queries that moved most from one run to another."""

from __future__ import annotations

import polars as pl

from karat.stats.pairs import Pair


def differing(pair: Pair) -> pl.DataFrame:
    """Return a row a query: query_id, value_a, value_b, and the difference, 0 if it is rounding."""
    return pl.DataFrame(
        {
            "query_id": pair.query_ids,
            "value_a": pair.a.values,
            "value_b": pair.b.values,
            "difference": pair.apart,
        }
    )


def moved(pair: Pair, n: int) -> pl.DataFrame:
    """Return the queries that rose most, then those that fell most, at most n of each.

    Of queries that moved alike, the ids decide.
    """
    both = differing(pair)
    rose = both.filter(pl.col("difference") > 0)
    fell = both.filter(pl.col("difference") < 0)
    return pl.concat(
        [
            rose.sort("difference", "query_id", descending=[True, False]).head(n),
            fell.sort("difference", "query_id").head(n),
        ]
    )
