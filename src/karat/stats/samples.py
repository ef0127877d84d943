"""Sample: the values of one measure, and how they become one number."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from karat.arrays import Floats
from karat.measures.aggregate import GEOMETRIC_FLOOR, SHARES, combine, micro
from karat.measures.array_math import logarithm
from karat.measures.registry import Combine, Measure
from karat.measures.score_table import ScoreTable

SUMMED = ("mean", "micro", "sum", "geometric")
"""What is a function of two sums over queries: f(Σ x / Σ w)."""
RELATIVE_ROUNDING = 1e-12
"""Values that are as close as this, of their size, differ by rounding alone."""


@dataclass(frozen=True, eq=False)
class Sample:
    """What the queries that count are worth, in the order of their ids.

    Mean, micro mean, sum and geometric mean are all f(Σ x / Σ w): x is the value, the numerator
    or the logarithm, w is 1 or the denominator, and f is the identity, n times it, or exp. So one
    way of resampling, of leaving one out and of estimating the variance serves them all.
    """

    how: Combine
    values: Floats
    weights: Floats | None = None
    """The denominators, for micro means."""
    binary: bool = False
    """Whether a query's value can only be 0 or 1, whatever was seen."""
    bounded: bool = False
    """Whether a query's value can only be between 0 and 1."""
    size: float | None = None
    """How large the values were of which these are differences: it says how much is rounding."""

    @classmethod
    def of(cls, table: ScoreTable, measure: Measure) -> Sample:
        """Take a measure's values from a table, without the queries that are left out."""
        column = table.frame[measure.name]
        known = column.is_not_null()
        declaration = measure.declaration
        weights = None
        if declaration.combine == "micro":
            weights = table.weights[measure.name].filter(known).to_numpy().astype(np.float64)
        return cls(
            declaration.combine,
            column.filter(known).to_numpy(),
            weights,
            declaration.binary,
            declaration.bounded,
        )

    @property
    def n(self) -> int:
        """How many queries count."""
        return self.values.size

    @property
    def summed(self) -> bool:
        """Whether the number is a function of two sums."""
        return self.how in SUMMED

    @property
    def share(self) -> float | None:
        """Which share of the queries lies below, where the number is a quantile."""
        return SHARES.get(self.how)

    @property
    def constant(self) -> bool:
        """Whether all queries have the same value, but for rounding."""
        return bool(np.ptp(self._as_added) <= self.rounding)

    @cached_property
    def rounding(self) -> float:
        """How far apart values can be, or means of them, that are the same but for rounding."""
        size = np.abs(self._as_added).max(initial=0.0) if self.size is None else self.size
        return RELATIVE_ROUNDING * float(size)

    @property
    def _as_added(self) -> Floats:
        return self.x if self.how == "geometric" else self.values

    @cached_property
    def value(self) -> float | None:
        """The measure over these queries."""
        if self.weights is not None:
            return micro(self.values.tolist(), self.weights.astype(np.int64).tolist())
        return combine(self.how, self.values.tolist())

    @property
    def spread(self) -> float | None:
        """The standard deviation of the values; None of fewer than two."""
        middle = self.value if self.how == "mean" else None
        return deviation(self.values, middle) if self.n > 1 else None

    @cached_property
    def x(self) -> Floats:
        """What is summed."""
        if self.weights is not None:
            return np.rint(self.values * self.weights)
        if self.how == "geometric":
            return logarithm(np.maximum(self.values, GEOMETRIC_FLOOR), math.log)
        return self.values

    @cached_property
    def w(self) -> Floats:
        """What the sum is divided by."""
        return np.ones(self.n) if self.weights is None else self.weights

    @cached_property
    def ratio(self) -> float:
        """Σ x / Σ w; not a number where nothing is weighed."""
        return self._sum_x / self._sum_w if self._sum_w else math.nan

    def finish(self, x: Floats, w: Floats) -> Floats:
        """Return the numbers that sums of x and of w give; not a number where w is 0."""
        ratio = np.divide(x, w, out=np.full_like(x, np.nan), where=w > 0)
        return self.f(ratio)

    def f(self, ratio: Floats) -> Floats:
        """Make of Σ x / Σ w what is shown."""
        if self.how == "geometric":
            return np.exp(ratio)
        return ratio * self.n if self.how == "sum" else ratio

    @property
    def slope(self) -> float:
        """How fast the number changes with Σ x / Σ w."""
        if self.how == "geometric":
            return math.exp(self.ratio)
        return float(self.n) if self.how == "sum" else 1.0

    def without_each(self) -> Floats:
        """Return the number without one query, for each query."""
        return self.finish(self._sum_x - self.x, self._sum_w - self.w)

    def influence(self) -> Floats:
        """Return how much each query moves the number, to first order: 0 on average.

        Of a mean it is value − mean; of a ratio of sums the usual linear form.
        """
        residual: Floats = self.slope * (self.x - self.ratio * self.w)
        return residual / (self._sum_w / self.n)

    @cached_property
    def _sum_x(self) -> float:
        return math.fsum(self.x.tolist())

    @cached_property
    def _sum_w(self) -> float:
        return float(self.n) if self.weights is None else math.fsum(self.weights.tolist())


def deviation(values: Floats, middle: float | None = None) -> float:
    """Return the standard deviation, over n − 1, from exact sums; the mean may be known."""
    if middle is None:
        middle = math.fsum(values.tolist()) / values.size
    apart = values - middle
    return math.sqrt(math.fsum((apart * apart).tolist()) / (values.size - 1))
