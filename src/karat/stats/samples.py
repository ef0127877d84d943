"""Sample: the values of one measure per query, and how they are combined to one number."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from karat.arrays import Floats, Ints
from karat.measures.aggregate import GEOMETRIC_FLOOR, SHARES, combine, micro
from karat.measures.array_math import logarithm
from karat.measures.registry import Combine, Measure
from karat.measures.score_table import ScoreTable

SUMMED = ("mean", "micro", "sum", "geometric")
"""The ways to combine values that are a function of two sums over queries: f(Σ x / Σ w)."""
RELATIVE_ROUNDING = 1e-12
"""A relative difference up to this is rounding: the values are equal."""


@dataclass(frozen=True, eq=False)
class Sample:
    """The values of a measure for the queries that count, in the order of their ids.

    Mean, micro mean, sum and geometric mean are all f(Σ x / Σ w): x is the value, the numerator or
    the logarithm; w is 1 or the denominator; and f is the identity, multiplication by n, or exp.
    So resampling, leaving one query out and estimating the variance are the same for all of them.
    """

    how: Combine
    values: Floats
    weights: Floats | None = None
    """The denominators, for micro means."""
    binary: bool = False
    """Whether the measure only has the values 0 and 1."""
    bounded: bool = False
    """Whether the measure only has values from 0 to 1."""
    size: float | None = None
    """For differences: the largest of the original values, which determines the rounding error."""
    clusters: Ints | None = None
    """The number of the cluster of each query, from 0; None if all queries are independent."""

    @classmethod
    def of(cls, table: ScoreTable, measure: Measure) -> Sample:
        """Read the values of a measure from a table, without the queries that are left out."""
        column = table.frame[measure.name]
        counts = column.is_not_null()
        declaration = measure.declaration
        weights = None
        if declaration.combine == "micro":
            weights = table.weights[measure.name].filter(counts).to_numpy().astype(np.float64)
        return cls(
            declaration.combine,
            column.filter(counts).to_numpy(),
            weights,
            declaration.binary,
            declaration.bounded,
            clusters=None if table.clusters is None else numbered(table.clusters.filter(counts)),
        )

    @property
    def n(self) -> int:
        """The number of queries that count."""
        return self.values.size

    @property
    def units(self) -> int:
        """The number of independent units: the clusters, or the queries if there are none."""
        return self.n if self.clusters is None else int(self.clusters.max(initial=-1)) + 1

    def per_unit(self, column: Floats) -> Floats:
        """Return the sum of a column over each cluster; the column itself without clusters."""
        if self.clusters is None:
            return column
        sums: Floats = np.bincount(self.clusters, column, self.units).astype(np.float64)
        return sums

    @property
    def summed(self) -> bool:
        """Whether the combined value is a function of two sums."""
        return self.how in SUMMED

    @property
    def share(self) -> float | None:
        """For quantiles: the share of the queries below it, such as 0.5 for the median."""
        return SHARES.get(self.how)

    @property
    def constant(self) -> bool:
        """Whether all queries have the same value, apart from rounding."""
        return bool(np.ptp(self._unweighted) <= self.rounding)

    @cached_property
    def rounding(self) -> float:
        """The largest difference of values, or of means, that is still rounding."""
        size = np.abs(self._unweighted).max(initial=0.0) if self.size is None else self.size
        return RELATIVE_ROUNDING * float(size)

    @property
    def _unweighted(self) -> Floats:
        return self.x if self.how == "geometric" else self.values

    @cached_property
    def value(self) -> float | None:
        """The combined value of these queries."""
        if self.weights is not None:
            return micro(self.values.tolist(), self.weights.astype(np.int64).tolist())
        return combine(self.how, self.values.tolist())

    @property
    def spread(self) -> float | None:
        """The standard deviation of the values; None for fewer than two."""
        mean = self.value if self.how == "mean" else None
        return deviation(self.values, mean) if self.n > 1 else None

    @cached_property
    def x(self) -> Floats:
        """The terms of the numerator."""
        if self.weights is not None:
            return np.rint(self.values * self.weights)
        if self.how == "geometric":
            return logarithm(np.maximum(self.values, GEOMETRIC_FLOOR), math.log)
        return self.values

    @cached_property
    def w(self) -> Floats:
        """The terms of the denominator."""
        return np.ones(self.n) if self.weights is None else self.weights

    @cached_property
    def totals(self) -> tuple[Floats, Floats]:
        """Σ x and Σ w of each cluster; x and w themselves without clusters."""
        return self.per_unit(self.x), self.per_unit(self.w)

    @cached_property
    def ratio(self) -> float:
        """Σ x / Σ w; NaN if Σ w is 0."""
        return self._sum_x / self._sum_w if self._sum_w else math.nan

    def finish(self, x: Floats, w: Floats) -> Floats:
        """Return f(x / w) for arrays of sums Σ x and Σ w; NaN where Σ w is 0."""
        ratio = np.divide(x, w, out=np.full_like(x, np.nan), where=w > 0)
        return self.f(ratio)

    def f(self, ratio: Floats) -> Floats:
        """Convert Σ x / Σ w to the combined value."""
        if self.how == "geometric":
            return np.exp(ratio)
        return ratio * self.n if self.how == "sum" else ratio

    @property
    def slope(self) -> float:
        """The derivative of `f` at Σ x / Σ w."""
        if self.how == "geometric":
            return math.exp(self.ratio)
        return float(self.n) if self.how == "sum" else 1.0

    def without_each(self) -> Floats:
        """Return, for each query, the combined value without it."""
        return self.finish(self._sum_x - self.x, self._sum_w - self.w)

    def influence(self) -> Floats:
        """Return the influence of each unit on the combined value, to first order; its mean is 0.

        For a mean this is value − mean; for a ratio of sums, the usual linearisation.
        """
        x, w = self.totals
        residual: Floats = self.slope * (x - self.ratio * w)
        return residual / (self._sum_w / self.units)

    @cached_property
    def _sum_x(self) -> float:
        return math.fsum(self.x.tolist())

    @cached_property
    def _sum_w(self) -> float:
        return float(self.n) if self.weights is None else math.fsum(self.weights.tolist())


def numbered(labels: pl.Series) -> Ints | None:
    """Return the numbers of the clusters from 0; None if each query is a cluster of its own."""
    numbers = labels.rank("dense").to_numpy().astype(np.int64) - 1
    return numbers if numbers.max(initial=-1) + 1 < numbers.size else None


def deviation(values: Floats, mean: float | None = None) -> float:
    """Return the standard deviation with denominator n − 1, computed from exact sums."""
    if mean is None:
        mean = math.fsum(values.tolist()) / values.size
    differences = values - mean
    return math.sqrt(math.fsum((differences * differences).tolist()) / (values.size - 1))
