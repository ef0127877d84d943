"""The sign-flip test of a paired difference, and the interval that it implies.

If two runs are equally good, it is chance which of two values of a query belongs to which run. So
flip the sign of each query's difference by the toss of a coin, and count how often the mean is as
far from 0 as it is. R. A. Fisher, 1935; for retrieval M. Smucker, J. Allan and B. Carterette, CIKM
2007.

The interval contains every shift δ that the same test, with the same draws, does not reject. A
draw reaches δ if δ lies between the mean difference of the flipped queries and that of the others
(J. A. Hartigan's typical values, 1969). So the ends are order statistics of such means, and the
interval excludes 0 exactly if p < α.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from karat.arrays import Floats, Ints
from karat.measures.aggregate import GEOMETRIC_FLOOR
from karat.stats.resampling import all_sign_patterns, coin_flips
from karat.stats.samples import RELATIVE_ROUNDING, Sample, deviation

if TYPE_CHECKING:
    from karat.stats.pairs import Pair


def effect_size(differences: Sample) -> float | None:
    """Return dz: the mean difference in standard deviations of the differences.

    None where all queries differ by the same amount: there is nothing to measure it by.
    """
    if differences.n < 2:
        return None
    spread = deviation(differences.influence() / differences.slope)
    if spread > differences.rounding:
        return differences.ratio / spread
    return 0.0 if differences.ratio == 0 else None


def t_test(differences: Sample) -> float | None:
    """Return the two-sided p of the mean difference; None where it is undefined."""
    effect = effect_size(differences)
    if effect is None:
        return None
    from scipy.special import stdtr

    return float(2 * stdtr(differences.n - 1, -abs(effect) * math.sqrt(differences.n)))


MOST_EXACT = 50


def wilcoxon_test(differences: Floats, rounding: float = 0.0) -> float:
    """Return the two-sided p; queries without a difference are dropped, ties share their ranks.

    With up to 50 differences the distribution over all signs is counted out, ties included; with
    more it is taken as normal, its variance corrected for ties. Differences that are apart by no
    more than `rounding` are ties.
    """
    differences = differences[differences != 0]
    if not differences.size:
        return 1.0
    doubled, ties = _doubled_ranks(np.abs(differences), rounding)
    positive = int(doubled[differences > 0].sum())
    total = int(doubled.sum())
    if differences.size <= MOST_EXACT:
        return _exact(doubled, min(positive, total - positive))
    n = differences.size
    shared = ties.astype(np.float64)  # cubes of millions do not fit whole numbers
    variance = n * (n + 1) * (2 * n + 1) / 24 - float((shared**3 - shared).sum()) / 48
    z = (positive - total / 2) / 2 / math.sqrt(variance)
    return math.erfc(abs(z) / math.sqrt(2))


def _doubled_ranks(sizes: Floats, rounding: float) -> tuple[Ints, Ints]:
    """Return twice the mean rank of each, a whole number, and how many share each size."""
    order = np.argsort(sizes, kind="stable")
    starts = np.diff(sizes[order], prepend=-np.inf) > rounding
    group = np.cumsum(starts) - 1
    count = np.bincount(group)
    doubled = np.empty(sizes.size, dtype=np.int64)
    doubled[order] = (2 * np.cumsum(count) - count + 1)[group]
    return doubled, count


def _exact(doubled: Ints, smaller: int) -> float:
    """Count the signs that give so small a sum of ranks on either side."""
    ways = np.zeros(int(doubled.sum()) + 1)
    ways[0] = 1.0
    for rank in doubled.tolist():
        ways[rank:] += ways[:-rank].copy()
    return min(1.0, float(2 * ways[: smaller + 1].sum() / ways.sum()))


DRAWS = 100_000
MANY_QUERIES = 10_000
DRAWS_OF_MANY = 10_000
"""Above MANY_QUERIES fewer draws are made: p is normal by then, and every draw is expensive."""
DRAWS_PER_PAIR = 100
"""But at least this many for each p: corrected for all of them, the smallest can be below 0.05."""
_MOST_ENUMERATED = 16
"""All 2^m sign patterns are tried where at most this many queries differ."""
_SLACK = 1e-9


@dataclass(frozen=True, eq=False)
class Flips:
    """For each draw, between which two means the shifts lie that it reaches."""

    low: Floats
    high: Floats
    unit: float
    """What the means are multiplied by to become differences."""
    exact: bool
    """Whether the draws are all the sign patterns there are."""
    is_zero: bool
    """Whether the mean difference is 0."""

    @property
    def _extra(self) -> int:
        """The data as they are count as one more draw, unless all patterns were tried."""
        return 0 if self.exact else 1

    @property
    def rounding(self) -> float:
        """How far rounding to whole numbers can move a mean; micro means are exact."""
        return 0.0 if self.unit == 1.0 else self.unit

    @cached_property
    def p(self) -> float:
        """The two-sided p of no difference."""
        return 1.0 if self.is_zero else self._p_at(0.0)

    def p_at(self, shift: float) -> float:
        """Return the two-sided p of a shift."""
        return self.p if shift == 0 else self._p_at(shift, self.rounding)

    def _p_at(self, shift: float, rounding: float = 0.0) -> float:
        above, below = (shift + rounding) / self.unit, (shift - rounding) / self.unit
        reached = int(np.count_nonzero((self.low <= above) & (self.high >= below)))
        return (reached + self._extra) / (self.low.size + self._extra)

    def interval(self, confidence: float) -> tuple[float, float]:
        """Return the least and the greatest shift that is not rejected."""
        n, alpha = self.low.size, 1 - confidence
        # p(δ) ≥ α exactly if at least k draws reach δ.
        k = max(math.ceil(alpha * (n + self._extra) - self._extra - _SLACK), 1)
        low = float(np.partition(self.low, k - 1)[k - 1])
        high = float(np.partition(self.high, n - k)[n - k])
        return low * self.unit, high * self.unit


def too_few(n_differing: int, confidence: float) -> bool:
    """Return whether so few queries differ that no p can be below α."""
    return 2.0 ** (1 - n_differing) >= 1 - confidence - 1e-12


def sign_flips(pairs: Sequence[Pair], draws: int | None = None) -> Iterator[Flips | None]:
    """Yield the draws of each pair whose difference is one of sums; None for the others.

    All pairs see the same draws, query by query. Runs are summed, not pairs: ten runs make 45
    pairs.
    """
    tested = [at for at, pair in enumerate(pairs) if pair.a.summed and pair.n]
    if not tested:
        yield from [None] * len(pairs)
        return
    ids = pl.concat([pairs[at].query_ids for at in tested]).unique().sort()
    if draws is None:
        draws = _draws(ids.len(), len(tested))
    columns = _Columns(ids)
    plans = [_plan(pairs[at], columns) for at in tested]
    sums = columns.sums(draws)
    plan_of = dict(zip(tested, plans, strict=True))
    for at in range(len(pairs)):
        yield plan_of[at].flips(sums) if at in plan_of else None


def _draws(n_queries: int, n_pairs: int) -> int:
    if n_queries <= MANY_QUERIES:
        return DRAWS
    return min(DRAWS, max(DRAWS_OF_MANY, DRAWS_PER_PAIR * n_pairs))


class _Columns:
    """The columns to be summed over the flipped queries of each draw, each of them once."""

    def __init__(self, ids: pl.Series) -> None:
        self.ids = ids
        self._columns: list[Floats] = []
        self._known: dict[Hashable, int] = {}

    def add(self, query_ids: pl.Series, values: Floats, key: Hashable = None) -> int:
        """Return the number of a column; one with a key that is known is the same column."""
        if key is not None and key in self._known:
            return self._known[key]
        column = np.zeros(self.ids.len())
        rows = slice(None)
        if query_ids.len() != self.ids.len():
            rows = self.ids.search_sorted(query_ids).to_numpy()  # type: ignore[assignment]
        column[rows] = values
        self._columns.append(column)
        if key is not None:
            self._known[key] = len(self._columns) - 1
        return len(self._columns) - 1

    def sums(self, draws: int) -> Floats:
        """Return the sum of every column over the flipped queries of each draw: a row each."""
        if not self._columns:
            return np.zeros((0, 0))
        table = np.column_stack(self._columns)
        sums, begin = np.empty((table.shape[1], draws)), 0
        for flips in coin_flips(self.ids.len(), draws):
            sums[:, begin : begin + len(flips)] = (flips @ table).T
            begin += len(flips)
        return sums


@dataclass(frozen=True, eq=False)
class _Plan:
    """How the sums of a pair come out of the columns, or out of all sign patterns."""

    x: Floats
    """The differences as whole numbers; 0 for ties."""
    w: Floats
    unit: float
    total: float
    """The sum of the differences, as the columns have it."""
    minus: int | None = None
    plus: int | None = None
    weights: int | None = None
    """The column of weights; where all patterns are tried, that of the weights of ties."""

    @property
    def n(self) -> int:
        return self.x.size

    def flips(self, sums: Floats) -> Flips:
        """Return which shifts each draw reaches."""
        total, whole = self.total, self.w.sum()
        sum_x, sum_w, exact = self._of_patterns(sums) if self.plus is None else self._of_draws(sums)
        rest = total - sum_x
        # Sums of whole numbers are exact, and each difference of two rounded values is right to
        # within 1: a sum within that is 0. Micro means count whole numbers from the start.
        tolerance = 0.0 if self.unit == 1.0 else float(self.n)
        sum_x[np.abs(sum_x) <= tolerance] = 0.0
        rest[np.abs(rest) <= tolerance] = 0.0
        one_sided = (sum_w == 0) | (sum_w == whole)  # nothing or all flipped reaches every shift
        one = np.divide(sum_x, sum_w, out=np.full_like(sum_x, -np.inf), where=~one_sided)
        other = np.divide(rest, whole - sum_w, out=np.full_like(rest, np.inf), where=~one_sided)
        is_zero = bool(abs(total) <= tolerance)
        return Flips(np.minimum(one, other), np.maximum(one, other), self.unit, exact, is_zero)

    def _of_draws(self, sums: Floats) -> tuple[Floats, Floats, bool]:
        sum_x = sums[self.plus].copy()
        if self.minus is not None:
            sum_x -= sums[self.minus]
        return sum_x, sums[self.weights], False

    def _of_patterns(self, sums: Floats) -> tuple[Floats, Floats, bool]:
        """Try all patterns of the queries that differ; of ties only the weight flipped matters."""
        if self.weights is None:
            patterns = all_sign_patterns(self.n)
            return patterns @ self.x, patterns @ self.w, True
        differ = self.x != 0
        patterns = all_sign_patterns(int(np.count_nonzero(differ)))
        times = max(sums.shape[1] // len(patterns), 1)
        sum_x = np.tile(patterns @ self.x[differ], times)
        # There are fewer draws than patterns where queries are many: then draws are used again.
        of_ties = np.resize(sums[self.weights], sum_x.size)
        sum_w = np.tile(patterns @ self.w[differ], times) + of_ties
        return sum_x, sum_w, True


def _plan(pair: Pair, columns: _Columns) -> _Plan:
    one, other, unit = _whole_numbers(pair)
    x, w = np.where(pair.apart == 0, 0.0, other - one), pair.a.w
    ids, measure = pair.query_ids, pair.measure.name
    if pair.n <= _MOST_ENUMERATED:
        return _Plan(x, w, unit, float(x.sum()))
    if np.count_nonzero(x) <= _MOST_ENUMERATED:
        at_ties = columns.add(ids, np.where(x == 0, w, 0.0))
        return _Plan(x, w, unit, float(x.sum()), weights=at_ties)
    if pair.names is None:
        return _Plan(x, w, unit, float(x.sum()), None, columns.add(ids, x), columns.add(ids, w))
    queries = (ids.len(), int(ids.hash().sum()))
    weights = columns.add(ids, w, (queries, None if pair.a.weights is None else measure))
    if not pair.measure.declaration.bounded:  # each pair has its own unit
        return _Plan(x, w, unit, float(x.sum()), None, columns.add(ids, x), weights)
    minus, plus = (  # a run is one column for all of its pairs over the same queries
        columns.add(ids, column, (queries, measure, name))
        for column, name in zip((one, other), pair.names, strict=True)
    )
    return _Plan(x, w, unit, float((other - one).sum()), minus, plus, weights)


def _whole_numbers(pair: Pair) -> tuple[Floats, Floats, float]:
    """Return the values of both runs as whole numbers of a unit, and the unit.

    The unit depends on the measure and on the number of queries alone, where the values of the
    measure are bounded, so that a run is the same column in all of its pairs. Otherwise ties count
    as 0: their values may be far larger than those that differ.
    """
    if pair.a.weights is not None:
        return pair.a.x, pair.b.x, 1.0
    one, other = pair.a.x, pair.b.x
    if not pair.measure.declaration.bounded:
        one, other = (np.where(pair.apart == 0, 0.0, column) for column in (one, other))
    largest = float(max(np.abs(one).max(initial=0.0), np.abs(other).max(initial=0.0)))
    if pair.measure.declaration.bounded:
        largest = max(largest, 1.0)
    if pair.a.how == "geometric":
        largest = max(largest, -math.log(GEOMETRIC_FLOOR))
    bits = 52 - math.ceil(math.log2(max(pair.n, 2))) - int(np.frexp(largest)[1])
    # No unit is smaller than what rounding makes of a value.
    bits = min(bits, -int(np.frexp(RELATIVE_ROUNDING * largest)[1])) if largest else bits
    scaled_one, scaled_other = (np.rint(np.ldexp(column, bits)) for column in (one, other))
    return scaled_one, scaled_other, 2.0**-bits
