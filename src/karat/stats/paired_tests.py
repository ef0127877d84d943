"""Paired tests of two runs: effect size, t-test, Wilcoxon's test, and the sign-flip test.

The sign-flip test is the randomization test of karat: if two runs are equally good, it is random
which of the two values of a query belongs to which run. So the sign of each difference is flipped
at random, and the test counts how often the mean is at least as far from 0 as the observed one
(R. A. Fisher, 1935; for retrieval M. Smucker, J. Allan and B. Carterette, CIKM 2007).

The confidence interval contains every shift δ that the test, with the same draws, does not reject.
A draw counts against the rejection of δ if δ lies between the mean difference of the flipped
queries and the mean difference of the other queries (J. A. Hartigan's typical values, 1969). So the
ends are order statistics of such means, and the interval excludes 0 exactly if p < α.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from karat.arrays import Floats, Ints
from karat.measures.aggregate import GEOMETRIC_FLOOR
from karat.stats.clusters import clustered_error
from karat.stats.resampling import all_sign_patterns, flipped_sums
from karat.stats.samples import RELATIVE_ROUNDING, Sample, deviation
from karat.steps import tracked

if TYPE_CHECKING:
    from karat.stats.pairs import Pair

MOST_EXACT = 50
"""Up to this many differences, Wilcoxon's test is exact."""
DRAWS = 100_000
MANY_QUERIES = 50_000
DRAWS_OF_MANY = 10_000
"""Above MANY_QUERIES there are fewer draws: p is nearly normal then, and draws are expensive."""
DRAWS_PER_PAIR = 100
"""The minimum number of draws per pair, so that corrected p-values can be below 0.05."""
_MOST_ENUMERATED = 16
"""Up to this many differing queries, all 2^m sign patterns are used instead of random draws."""
_LARGEST_EXACT_SUM = 1_000_000
"""Up to this sum of ranks, Wilcoxon's test of clusters is exact."""
_SLACK = 1e-9


def effect_size(differences: Sample) -> float | None:
    """Return Cohen's dz: the mean difference / the standard deviation of the differences.

    None if all queries differ by the same amount, so that the standard deviation is 0.
    """
    if differences.n < 2:
        return None
    differences = replace(differences, clusters=None)
    spread = deviation(differences.influence() / differences.slope)
    if spread > differences.rounding:
        return differences.ratio / spread
    return 0.0 if differences.ratio == 0 else None


def t_test(differences: Sample) -> float | None:
    """Return the two-sided p-value of the paired t-test; None if it is undefined.

    With clusters, the standard error is cluster-robust.
    """
    effect = effect_size(differences)
    if effect is None:
        return None
    if differences.clusters is not None:
        clustered = clustered_error(differences)
        if clustered is None or clustered.error <= differences.rounding:
            return None
        return clustered.p(differences.ratio)
    from scipy.special import stdtr

    return float(2 * stdtr(differences.n - 1, -abs(effect) * math.sqrt(differences.n)))


def wilcoxon_test(
    differences: Floats, rounding: float = 0.0, clusters: Ints | None = None
) -> float:
    """Return the two-sided p-value of Wilcoxon's signed-rank test.

    Differences of 0 are dropped, and ties share their mean rank. With up to 50 differences the
    distribution over all signs is exact, also with ties; with more it is approximated by a normal
    distribution with a variance corrected for ties. Differences that differ by at most `rounding`
    are ties. With clusters, the sum of signed ranks of a cluster takes the place of a signed rank
    (B. Rosner, R. Glynn and M.-L. Lee, 2006).
    """
    differs = differences != 0
    differences = differences[differs]
    if not differences.size:
        return 1.0
    doubled, ties = _doubled_ranks(np.abs(differences), rounding)
    if clusters is not None:
        signed = np.bincount(clusters[differs], np.sign(differences) * doubled)
        return _clustered_wilcoxon(signed[signed != 0])
    positive = int(doubled[differences > 0].sum())
    total = int(doubled.sum())
    if differences.size <= MOST_EXACT:
        return _exact_p(doubled, min(positive, total - positive))
    n = differences.size
    sizes = ties.astype(np.float64)  # the cubes of millions do not fit into integers
    variance = n * (n + 1) * (2 * n + 1) / 24 - float((sizes**3 - sizes).sum()) / 48
    z = (positive - total / 2) / 2 / math.sqrt(variance)
    return math.erfc(abs(z) / math.sqrt(2))


def _clustered_wilcoxon(signed: Floats) -> float:
    """Return the p-value of the sums of signed ranks of clusters, all different from 0."""
    if not signed.size:
        return 1.0
    sizes = np.abs(signed).astype(np.int64)
    if signed.size <= MOST_EXACT and sizes.sum() <= _LARGEST_EXACT_SUM:
        positive, negative = sizes[signed > 0].sum(), sizes[signed < 0].sum()
        return _exact_p(sizes, int(min(positive, negative)))
    z = signed.sum() / math.sqrt(float((signed * signed).sum()))
    return math.erfc(abs(z) / math.sqrt(2))


def _doubled_ranks(sizes: Floats, rounding: float) -> tuple[Ints, Ints]:
    """Return twice the mean rank of each difference, an integer, and the sizes of all ties."""
    order = np.argsort(sizes, kind="stable")
    starts = np.diff(sizes[order], prepend=-np.inf) > rounding
    group = np.cumsum(starts) - 1
    count = np.bincount(group)
    doubled = np.empty(sizes.size, dtype=np.int64)
    doubled[order] = (2 * np.cumsum(count) - count + 1)[group]
    return doubled, count


def _exact_p(doubled: Ints, smaller: int) -> float:
    """Return the share of sign patterns with a rank sum of at most `smaller` on either side."""
    ways = np.zeros(int(doubled.sum()) + 1)
    ways[0] = 1.0
    for rank in doubled.tolist():
        ways[rank:] += ways[:-rank].copy()
    return min(1.0, float(2 * ways[: smaller + 1].sum() / ways.sum()))


@dataclass(frozen=True, eq=False)
class Flips:
    """The draws of a sign-flip test: each counts against rejecting the shifts between two means."""

    low: Floats
    high: Floats
    unit: float
    """The factor that converts means to differences."""
    exact: bool
    """Whether the draws are all possible sign patterns."""
    is_zero: bool
    """Whether the mean difference is 0."""

    @property
    def draws(self) -> int | None:
        """The number of random draws; None if all possible sign patterns are used."""
        return None if self.exact else self.low.size

    @property
    def _extra(self) -> int:
        """The observed data count as one more draw, unless the draws already include them."""
        return 0 if self.exact else 1

    @property
    def rounding(self) -> float:
        """The error of a mean due to rounding to integers; micro means are exact."""
        return 0.0 if self.unit == 1.0 else self.unit

    @cached_property
    def p(self) -> float:
        """The two-sided p-value for the null hypothesis of no difference."""
        return 1.0 if self.is_zero else self._p_at(0.0)

    def p_at(self, shift: float) -> float:
        """Return the two-sided p-value of a shift."""
        return self.p if shift == 0 else self._p_at(shift, self.rounding)

    def _p_at(self, shift: float, rounding: float = 0.0) -> float:
        above, below = (shift + rounding) / self.unit, (shift - rounding) / self.unit
        n_reached = int(np.count_nonzero((self.low <= above) & (self.high >= below)))
        return (n_reached + self._extra) / (self.low.size + self._extra)

    def interval(self, confidence: float) -> tuple[float, float]:
        """Return the smallest and the largest shift that is not rejected."""
        n, alpha = self.low.size, 1 - confidence
        # p(δ) ≥ α exactly if at least k draws do not reject δ.
        k = max(math.ceil(alpha * (n + self._extra) - self._extra - _SLACK), 1)
        low = float(np.partition(self.low, k - 1)[k - 1])
        high = float(np.partition(self.high, n - k)[n - k])
        return low * self.unit, high * self.unit


def too_few(n_differing: int, confidence: float) -> bool:
    """Return whether too few queries differ for any p-value below α."""
    return 2.0 ** (1 - n_differing) >= 1 - confidence - 1e-12


def sign_flips(pairs: Sequence[Pair], draws: int | None = None) -> Iterator[Flips | None]:
    """Yield the draws of each pair, None for pairs whose value is not a function of sums.

    All pairs use the same flips of each query or cluster. Sums are computed per run instead of per
    pair, since ten runs make 45 pairs.
    """
    tested = [number for number, pair in enumerate(pairs) if pair.a.summed and pair.n]
    if not tested:
        yield from [None] * len(pairs)
        return
    ids = pl.concat([pairs[number].unit_ids for number in tested]).unique().sort()
    if draws is None:
        draws = _number_of_draws(ids.len(), len(tested))
    columns = _Columns(ids)
    plans = {number: _flip_plan(pairs[number], columns) for number in tested}
    sums = columns.sums(draws)
    for number in range(len(pairs)):
        yield plans[number].flips(sums) if number in plans else None


def _number_of_draws(n_queries: int, n_pairs: int) -> int:
    if n_queries <= MANY_QUERIES:
        return DRAWS
    return min(DRAWS, max(DRAWS_OF_MANY, DRAWS_PER_PAIR * n_pairs))


class _Columns:
    """The columns to sum over the flipped queries of each draw, without duplicates."""

    def __init__(self, ids: pl.Series) -> None:
        self.ids = ids
        self._columns: list[Floats] = []
        self._number_by_key: dict[Hashable, int] = {}

    def add(self, unit_ids: pl.Series, values: Floats, key: Hashable = None) -> int:
        """Add a column and return its number; columns with the same key are added once."""
        if key is not None and key in self._number_by_key:
            return self._number_by_key[key]
        column = np.zeros(self.ids.len())
        rows = slice(None)
        if unit_ids.len() != self.ids.len():
            rows = self.ids.search_sorted(unit_ids).to_numpy()  # type: ignore[assignment]
        column[rows] = values
        self._columns.append(column)
        if key is not None:
            self._number_by_key[key] = len(self._columns) - 1
        return len(self._columns) - 1

    def sums(self, draws: int) -> Floats:
        """Return one row per column: its sum over the flipped queries of each draw."""
        if not self._columns:
            return np.zeros((0, 0))
        table = np.column_stack(self._columns)
        sums, start = np.empty((table.shape[1], draws)), 0
        for block in tracked(flipped_sums(table, draws), "drawing samples", draws, size=len):
            sums[:, start : start + len(block)] = block.T
            start += len(block)
        return sums


@dataclass(frozen=True, eq=False)
class _FlipPlan:
    """How to compute the sums of a pair: from columns, or from all sign patterns."""

    x: Floats
    """The differences as integers, per query or cluster; 0 for ties."""
    w: Floats
    tolerance: float
    """The largest sum of differences that may be due to rounding."""
    unit: float
    total: float
    """The sum of the differences, computed like the columns."""
    minus: int | None = None
    plus: int | None = None
    weights: int | None = None
    """The column of weights; with all sign patterns, the column of the weights of ties."""

    @property
    def n(self) -> int:
        return self.x.size

    def flips(self, sums: Floats) -> Flips:
        """Return the two means of each draw: of the flipped queries and of the others."""
        total, total_w = self.total, self.w.sum()
        if self.plus is None:
            exact = True
            sum_x, sum_w = self._sums_of_patterns(sums)
        else:
            exact = False
            sum_x, sum_w = self._sums_of_draws(sums)
        rest = total - sum_x
        sum_x[np.abs(sum_x) <= self.tolerance] = 0.0
        rest[np.abs(rest) <= self.tolerance] = 0.0
        # A draw that flips no query or all queries rejects no shift.
        one_sided = (sum_w == 0) | (sum_w == total_w)
        flipped = np.divide(sum_x, sum_w, out=np.full_like(sum_x, -np.inf), where=~one_sided)
        others = np.divide(rest, total_w - sum_w, out=np.full_like(rest, np.inf), where=~one_sided)
        is_zero = bool(abs(total) <= self.tolerance)
        low, high = np.minimum(flipped, others), np.maximum(flipped, others)
        return Flips(low, high, self.unit, exact, is_zero)

    def _sums_of_draws(self, sums: Floats) -> tuple[Floats, Floats]:
        sum_x = sums[self.plus].copy()
        if self.minus is not None:
            sum_x -= sums[self.minus]
        return sum_x, sums[self.weights]

    def _sums_of_patterns(self, sums: Floats) -> tuple[Floats, Floats]:
        """Use all sign patterns of the differing queries; ties only contribute their weight."""
        if self.weights is None:
            patterns = all_sign_patterns(self.n)
            return patterns @ self.x, patterns @ self.w
        differ = self.x != 0
        patterns = all_sign_patterns(int(np.count_nonzero(differ)))
        times = max(sums.shape[1] // len(patterns), 1)
        sum_x = np.tile(patterns @ self.x[differ], times)
        # With many queries there are fewer draws than patterns, so draws of the ties are reused.
        tie_weights = np.resize(sums[self.weights], sum_x.size)
        sum_w = np.tile(patterns @ self.w[differ], times) + tie_weights
        return sum_x, sum_w


def _flip_plan(pair: Pair, columns: _Columns) -> _FlipPlan:
    one, other, unit = _integer_values(pair)
    # Sums of integers are exact, but each difference of two rounded values has an error of up to 1:
    # a sum below n is 0. The numerators of micro means are integers from the start.
    tolerance = 0.0 if unit == 1.0 else float(pair.n)
    x = pair.a.per_unit(np.where(pair.value_differences == 0, 0.0, other - one))
    x = np.where(pair.unit_differences == 0, 0.0, x)
    w, ids, measure = pair.a.totals[1], pair.unit_ids, pair.measure.name
    plan = _FlipPlan(x, w, tolerance, unit, float(x.sum()))
    if pair.units <= _MOST_ENUMERATED:
        return plan
    if np.count_nonzero(x) <= _MOST_ENUMERATED:
        return replace(plan, weights=columns.add(ids, np.where(x == 0, w, 0.0)))
    if pair.names is None:
        return replace(plan, plus=columns.add(ids, x), weights=columns.add(ids, w))
    queries = (pair.n, int(pair.query_ids.hash().sum()))
    weights = columns.add(ids, w, (queries, None if pair.a.weights is None else measure))
    if not pair.measure.declaration.bounded:  # each pair has its own unit
        return replace(plan, plus=columns.add(ids, x), weights=weights)
    minus, plus = (  # a run is one column for all of its pairs over the same queries
        columns.add(ids, pair.a.per_unit(column), (queries, measure, name))
        for column, name in zip((one, other), pair.names, strict=True)
    )
    return replace(plan, total=float((other - one).sum()), minus=minus, plus=plus, weights=weights)


def _integer_values(pair: Pair) -> tuple[Floats, Floats, float]:
    """Return the values of both runs as integer multiples of a unit, and the unit.

    For bounded measures the unit depends only on the measure and the number of queries, so that a
    run has the same column in all of its pairs. For others, ties count as 0, since their values
    may be much larger than those that differ.
    """
    if pair.a.weights is not None:
        return pair.a.x, pair.b.x, 1.0
    one, other = pair.a.x, pair.b.x
    if not pair.measure.declaration.bounded:
        one, other = (np.where(pair.value_differences == 0, 0.0, column) for column in (one, other))
    largest = float(max(np.abs(one).max(initial=0.0), np.abs(other).max(initial=0.0)))
    if pair.measure.declaration.bounded:
        largest = max(largest, 1.0)
    if pair.a.how == "geometric":
        largest = max(largest, -math.log(GEOMETRIC_FLOOR))
    bits = 52 - math.ceil(math.log2(max(pair.n, 2))) - int(np.frexp(largest)[1])
    # The unit is not smaller than the rounding error of a value.
    bits = min(bits, -int(np.frexp(RELATIVE_ROUNDING * largest)[1])) if largest else bits
    scaled_one, scaled_other = (np.rint(np.ldexp(column, bits)) for column in (one, other))
    return scaled_one, scaled_other, 2.0**-bits
