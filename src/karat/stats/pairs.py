"""Pair: the values of two runs, joined by query id, and which queries differ most."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from karat.arrays import Floats, Ints
from karat.errors import InputError, counted, printable
from karat.measures.registry import Measure
from karat.measures.score_table import ScoreTable
from karat.stats.samples import RELATIVE_ROUNDING, Sample, numbered


@dataclass(frozen=True, eq=False)
class Pair:
    """The values of one measure for two runs, on the queries that both have a value for."""

    measure: Measure
    query_ids: pl.Series
    a: Sample
    b: Sample
    left_out: int
    """How many queries have a value in only one of the runs."""
    names: tuple[str, str] | None = None
    """The names of the runs, if several pairs of the same runs are tested together."""
    clusters: pl.Series | None = None
    """The labels of the clusters of the queries; None if all queries are independent."""

    @property
    def n(self) -> int:
        """The number of queries that are compared."""
        return self.a.n

    @property
    def units(self) -> int:
        """The number of independent units: the clusters, or the queries if there are none."""
        return self.a.units

    @cached_property
    def unit_ids(self) -> pl.Series:
        """The labels of the clusters in order, or the ids of the queries if there are none."""
        if self.clusters is None:
            return self.query_ids
        return self.clusters.unique().sort()

    @property
    def difference(self) -> float | None:
        """The value of b − the value of a."""
        if self.a.value is None or self.b.value is None:
            return None
        return self.b.value - self.a.value

    @cached_property
    def differences(self) -> Sample:
        """The differences per query, as a sample.

        For a micro mean they have the weights of the values; for a geometric mean they are
        differences of logarithms.
        """
        how, one, other = self.a.how, self.a.values, self.b.values
        if how == "geometric":
            how, one, other = "mean", self.a.x, self.b.x
        differ = self.value_differences != 0
        size = np.maximum(np.abs(one), np.abs(other)).max(where=differ, initial=0.0)
        differences = np.where(differ, other - one, 0.0)
        return Sample(how, differences, self.a.weights, size=float(size), clusters=self.a.clusters)

    @cached_property
    def unit_differences(self) -> Floats:
        """The differences per query, or their sum per cluster; 0 if they differ only by rounding.

        For clusters they have the unit of the tested terms, such as logarithms.
        """
        if self.clusters is None:
            return self.value_differences
        totals = self.differences.totals[0]
        rounding = self.differences.rounding * self.a.per_unit(np.ones(self.n))
        return np.where(np.abs(totals) <= rounding, 0.0, totals)

    @cached_property
    def value_differences(self) -> Floats:
        """The value of b − the value of a per query, 0 if they differ only by rounding."""
        same = np.isclose(self.a.values, self.b.values, rtol=RELATIVE_ROUNDING, atol=0.0)
        return np.where(same, 0.0, self.b.values - self.a.values)

    @cached_property
    def n_differing(self) -> int:
        """The number of queries on which the runs differ."""
        return int(np.count_nonzero(self.value_differences))

    @cached_property
    def n_units_differing(self) -> int:
        """The number of clusters on which the runs differ, or of queries if there are none."""
        return int(np.count_nonzero(self.unit_differences))

    def counts(self) -> tuple[int, int, int]:
        """Return the number of wins, ties and losses of b against a."""
        gains = self.value_differences
        if not self.measure.declaration.higher_is_better:
            gains = -gains
        wins = int(np.count_nonzero(gains > 0))
        losses = int(np.count_nonzero(gains < 0))
        return wins, self.n - wins - losses, losses

    def influence(self) -> Floats:
        """Return the influence of each query or cluster on the difference, to first order."""
        return self.b.influence() - self.a.influence()


def pair(
    a: ScoreTable, b: ScoreTable, measure: Measure, names: tuple[str, str] | None = None
) -> Pair:
    """Join the values of two runs by query id; the clusters are those of run a if it has any."""
    one, other = _values_and_weights(a, measure), _values_and_weights(b, measure)
    if one["query_id"].equals(other["query_id"]):  # the usual case: both runs have the same gold
        both = one.hstack(other.drop("query_id").rename(lambda column: f"{column}_b"))
    else:
        both = one.join(other, on="query_id", how="full", suffix="_b", coalesce=True)
    both = both.sort("query_id")
    has_a, has_b = both["value"].is_not_null(), both["value_b"].is_not_null()
    joined = both.filter(has_a & has_b)
    _require_same_gold(joined, measure)
    combine = measure.declaration.combine
    labels, clusters = _clusters(joined)
    weights = [
        joined[column].to_numpy().astype(np.float64) if column in joined.columns else None
        for column in ("weight", "weight_b")
    ]
    return Pair(
        measure,
        joined["query_id"],
        Sample(combine, joined["value"].to_numpy(), weights[0], clusters=clusters),
        Sample(combine, joined["value_b"].to_numpy(), weights[1], clusters=clusters),
        int((has_a != has_b).sum()),
        names,
        labels,
    )


def _clusters(joined: pl.DataFrame) -> tuple[pl.Series | None, Ints | None]:
    """Return the labels and the numbers of the clusters; None if the queries are independent."""
    columns = [name for name in ("cluster", "cluster_b") if name in joined.columns]
    if not columns:
        return None, None
    labels = joined.select(pl.coalesce(columns)).to_series()
    numbers = numbered(labels)
    return (None, None) if numbers is None else (labels, numbers)


def _values_and_weights(table: ScoreTable, measure: Measure) -> pl.DataFrame:
    values = table.frame.select("query_id", value=measure.name)
    if table.clusters is not None:
        values = values.with_columns(table.clusters.alias("cluster"))
    if measure.name not in table.weights.columns:
        return values
    return values.hstack(table.weights.select(weight=measure.name))


def _require_same_gold(joined: pl.DataFrame, measure: Measure) -> None:
    """Raise an InputError if a query has different weights, as in saved scores of other gold."""
    if "weight" not in joined.columns:
        return
    different = joined.filter(pl.col("weight") != pl.col("weight_b"))
    if different.height:
        raise InputError(
            f"the runs were scored with different gold: the denominator of {measure} differs for "
            f"{counted(different.height, 'query')}, such as {printable(different['query_id'][0])}",
            hint="score both runs with the same gold",
        )


def difference_table(pair: Pair) -> pl.DataFrame:
    """Return one row per query: query_id, value_a, value_b, difference (0 if only rounding)."""
    return pl.DataFrame(
        {
            "query_id": pair.query_ids,
            "value_a": pair.a.values,
            "value_b": pair.b.values,
            "difference": pair.value_differences,
        }
    )


def moved_queries(pair: Pair, n: int) -> pl.DataFrame:
    """Return the n queries with the largest increase, then the n with the largest decrease.

    Equal differences are sorted by query id.
    """
    table = difference_table(pair)
    rose = table.filter(pl.col("difference") > 0)
    fell = table.filter(pl.col("difference") < 0)
    return pl.concat(
        [
            rose.sort("difference", "query_id", descending=[True, False]).head(n),
            fell.sort("difference", "query_id").head(n),
        ]
    )
