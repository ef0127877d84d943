"""Pair: two runs on the queries that both have a value for, joined by id."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from karat.arrays import Floats
from karat.errors import InputError, counted, printable
from karat.measures.registry import Measure
from karat.measures.score_table import ScoreTable
from karat.stats.samples import RELATIVE_ROUNDING, Sample


@dataclass(frozen=True, eq=False)
class Pair:
    """One measure of two runs, query by query."""

    measure: Measure
    query_ids: pl.Series
    a: Sample
    b: Sample
    left_out: int
    """How many queries have a value in only one of the two."""
    names: tuple[str, str] | None = None
    """The names of the runs, where several pairs of the same runs are tested together."""

    @property
    def n(self) -> int:
        """How many queries are compared."""
        return self.a.n

    @property
    def difference(self) -> float | None:
        """The value of b less that of a, over these queries."""
        one, other = self.a.value, self.b.value
        return None if one is None or other is None else other - one

    @cached_property
    def differences(self) -> Sample:
        """What each query adds to the difference, as a sample of its own.

        Of a micro mean they are weighed as the values are; of a geometric mean they are
        differences of logarithms.
        """
        how = "mean" if self.a.how == "geometric" else self.a.how
        one, other = (s.x if s.how == "geometric" else s.values for s in (self.a, self.b))
        differ = self.apart != 0
        size = np.maximum(np.abs(one), np.abs(other)).max(where=differ, initial=0.0)
        apart = np.where(differ, other - one, 0.0)
        return Sample(how, apart, self.a.weights, size=float(size))

    @cached_property
    def apart(self) -> Floats:
        """How far b lies above a on each query, 0 where that is no more than rounding."""
        same = np.isclose(self.a.values, self.b.values, rtol=RELATIVE_ROUNDING, atol=0.0)
        return np.where(same, 0.0, self.b.values - self.a.values)

    @cached_property
    def n_differing(self) -> int:
        """On how many queries the two runs differ."""
        return int(np.count_nonzero(self.apart))

    def counts(self) -> tuple[int, int, int]:
        """Return for how many queries b is better than a, the same, and worse."""
        gains = self.apart if self.measure.declaration.higher_is_better else -self.apart
        wins = int(np.count_nonzero(gains > 0))
        losses = int(np.count_nonzero(gains < 0))
        return wins, self.n - wins - losses, losses

    def influence(self) -> Floats:
        """Return how much each query moves a difference of sums, to first order."""
        return self.b.influence() - self.a.influence()


def pair(
    a: ScoreTable, b: ScoreTable, measure: Measure, names: tuple[str, str] | None = None
) -> Pair:
    """Join the values of two runs by query, never by position."""
    name = measure.name
    one, other = (
        table.frame.select("query_id", value=name).hstack(
            table.weights.select(weight=name) if name in table.weights.columns else []
        )
        for table in (a, b)
    )
    if one["query_id"].equals(other["query_id"]):  # as it is for runs of one gold
        both = one.hstack(other.drop("query_id").rename(lambda column: f"{column}_b"))
    else:
        both = one.join(other, on="query_id", how="full", suffix="_b", coalesce=True)
    both = both.sort("query_id")
    known, known_b = both["value"].is_not_null(), both["value_b"].is_not_null()
    joined = both.filter(known & known_b)
    _refuse_other_gold(joined, measure)
    combine = measure.declaration.combine
    weights = [
        joined[column].to_numpy().astype(np.float64) if column in joined.columns else None
        for column in ("weight", "weight_b")
    ]
    return Pair(
        measure,
        joined["query_id"],
        Sample(combine, joined["value"].to_numpy(), weights[0]),
        Sample(combine, joined["value_b"].to_numpy(), weights[1]),
        int((known != known_b).sum()),
        names,
    )


def _refuse_other_gold(joined: pl.DataFrame, measure: Measure) -> None:
    """Refuse saved scores of another gold: a query must weigh the same in both."""
    if "weight" not in joined.columns:
        return
    other = joined.filter(pl.col("weight") != pl.col("weight_b"))
    if other.height:
        raise InputError(
            f"the scores rest on different gold: by {measure}, "
            f"{counted(other.height, 'query')} count differently, "
            f"such as {printable(other['query_id'][0])}",
            hint="score both runs with the same gold",
        )


def difference_table(pair: Pair) -> pl.DataFrame:
    """Return a row a query: query_id, value_a, value_b, and the difference, 0 if it is rounding."""
    return pl.DataFrame(
        {
            "query_id": pair.query_ids,
            "value_a": pair.a.values,
            "value_b": pair.b.values,
            "difference": pair.apart,
        }
    )


def moved_queries(pair: Pair, n: int) -> pl.DataFrame:
    """Return the queries that rose most, then those that fell most, at most n of each.

    Of queries that moved alike, the ids decide.
    """
    both = difference_table(pair)
    rose = both.filter(pl.col("difference") > 0)
    fell = both.filter(pl.col("difference") < 0)
    return pl.concat(
        [
            rose.sort("difference", "query_id", descending=[True, False]).head(n),
            fell.sort("difference", "query_id").head(n),
        ]
    )
