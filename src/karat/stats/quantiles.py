"""Bootstrap of the difference of a quantile, over queries or over clusters of queries.

The quantile of a resample of n queries depends only on how often each query with a value near the
quantile is drawn, and on how many of the queries below are. With many queries these numbers are
drawn directly: the distribution is the same, and a resample takes about √n draws instead of n.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from karat.arrays import Floats, Ints
from karat.stats import resampling
from karat.stats.resampling import SEED, counts_in, random_integers, random_shares, resamples
from karat.stats.samples import Sample

MOST_WHOLE = 10_000
"""Up to this many queries, every query of a resample is drawn."""
MANY_CLUSTERS = 50_000
RESAMPLES_OF_MANY = 2_000
"""Above MANY_CLUSTERS there are fewer resamples, since every cluster of a resample is drawn."""
_REACH = 7.0
"""The half width of the window around a quantile, in standard deviations of the rank of a resampled
quantile: one resample in 10^12 is outside."""
_CLUSTERED_REACH = 12.0
"""The same for clusters, whose sizes may differ, so that the rank is less normal."""
_BLOCK_CELLS = 1 << 20


def resampled_differences(a: Sample, b: Sample) -> Floats:
    """Return the quantile of b − that of a, for resamples of the queries that both share."""
    if a.clusters is not None:
        return _of_clusters(a, b, a.clusters)
    if a.n <= MOST_WHOLE:
        rows = resamples(a.n)
        return np.concatenate([_quantiles(b, at) - _quantiles(a, at) for at in rows])
    return _of_many(a, b)


def _share(sample: Sample) -> float:
    assert sample.share is not None, "the measure is a quantile"
    return sample.share


def _quantiles(sample: Sample, rows: Ints) -> Floats:
    quantiles: Floats = np.quantile(sample.values[rows], _share(sample), axis=1)
    return quantiles


@dataclass(frozen=True, eq=False)
class _Window:
    """The queries around the quantile of a sample: all that can be the quantile of a resample."""

    sample: Sample
    order: Ints
    """The queries in the order of their values."""
    first: int
    stop: int
    """The ranks of the window."""

    @classmethod
    def of(cls, sample: Sample, reach: float) -> _Window:
        """Return the window of ranks that are at most `reach` below or above the quantile."""
        middle = (sample.n - 1) * _share(sample)
        first = max(math.floor(middle - reach) - 2, 0)
        stop = min(math.ceil(middle + reach) + 3, sample.n)
        return cls(sample, np.argsort(sample.values, kind="stable"), first, stop)

    def sides(self) -> Ints:
        """Return for each query whether it is below (-1), inside (0) or above (1) the window."""
        sides = np.zeros(self.sample.n, np.int64)
        sides[self.order[: self.first]] = -1
        sides[self.order[self.stop :]] = 1
        return sides

    def quantiles(self, below: Ints, counts: Ints, total: Ints | int, values: Floats) -> Floats:
        """Return the quantile of each resample.

        `below` and `total` are the numbers of drawn queries below and altogether, `counts` is how
        often each query of ascending `values` is drawn.
        """
        up_to = np.cumsum(counts, axis=1) + below[:, None]
        position = (np.asarray(total) - 1) * _share(self.sample)
        rank = np.floor(position).astype(np.int64)
        low, high = (
            values[np.minimum((up_to <= at[..., None]).sum(axis=1), len(values) - 1)]
            for at in (rank, rank + 1)
        )
        quantiles: Floats = low + (position - rank) * (high - low)
        return quantiles


def _of_many(a: Sample, b: Sample) -> Floats:
    n, share = a.n, _share(a)
    reach = _REACH * math.sqrt(n * share * (1 - share))
    windows = [_Window.of(sample, reach) for sample in (a, b)]
    side_a, side_b = (window.sides() for window in windows)
    inside = np.flatnonzero((side_a == 0) | (side_b == 0))
    # Of the other queries it matters only on which side of the windows they are.
    outside = (side_a != 0) & (side_b != 0)
    kinds = np.bincount((2 * (side_a < 0) + (side_b < 0))[outside], minlength=4)
    bits = np.random.PCG64(SEED)
    drawn = _multinomial(bits, [*kinds.tolist(), inside.size], resampling.RESAMPLES)
    below = [drawn[:, 2] + drawn[:, 3], drawn[:, 1] + drawn[:, 3]]
    position = np.empty(n, np.int64)
    position[inside] = np.arange(inside.size)
    columns = []
    for window in windows:
        ordered = window.order[~outside[window.order]]
        columns.append((position[ordered], window.sample.values[ordered]))
    differences = []
    for rows, counts in _drawn_inside(bits, drawn[:, 4], inside.size):
        of_a, of_b = (
            window.quantiles(below_window[rows], counts[:, at], n, values)
            for window, below_window, (at, values) in zip(windows, below, columns, strict=True)
        )
        differences.append(of_b - of_a)
    return np.concatenate(differences)


def _drawn_inside(bits: np.random.PCG64, totals: Ints, size: int) -> Iterator[tuple[slice, Ints]]:
    """Yield blocks of resamples: how often each of `size` queries is among `totals` draws."""
    step = max(_BLOCK_CELLS // size, 1)
    for start in range(0, totals.size, step):
        rows = slice(start, min(start + step, totals.size))
        block = totals[rows]
        at = np.repeat(np.arange(block.size), block)
        flat = at * size + random_integers(bits, size, (at.size,))
        counts = np.bincount(flat, minlength=block.size * size)
        yield rows, counts.reshape(block.size, size)


def _multinomial(bits: np.random.PCG64, sizes: list[int], draws: int) -> Ints:
    """Return how many of n = Σ sizes draws with replacement are of each kind, `draws` times."""
    left, size_left = np.full(draws, sum(sizes)), sum(sizes)
    columns = []
    for size in sizes[:-1]:
        column = _binomial(random_shares(bits, draws), left, size / size_left if size_left else 0.0)
        columns.append(column)
        left, size_left = left - column, size_left - size
    return np.column_stack([*columns, left])


def _binomial(shares: Floats, n: Ints, p: float) -> Ints:
    """Return the smallest k with P(B ≤ k) ≥ share, for B that is binomial with n and p."""
    from scipy.special import bdtr

    if p <= 0:
        return np.zeros_like(n)
    if p >= 1:
        return n.copy()
    low, high = np.full_like(n, -1), n.copy()  # P(B ≤ low) < share ≤ P(B ≤ high)
    while (high - low).max() > 1:
        middle = (low + high) // 2
        is_enough = (middle >= 0) & (bdtr(np.maximum(middle, 0).astype(float), n, p) >= shares)
        low, high = np.where(is_enough, low, middle), np.where(is_enough, middle, high)
    return high


def _of_clusters(a: Sample, b: Sample, clusters: Ints) -> Floats:
    sizes = np.bincount(clusters, minlength=a.units)
    windows = [_Window.of(sample, _clustered_reach(sample, clusters, sizes)) for sample in (a, b)]
    below = [
        np.bincount(clusters[window.order[: window.first]], minlength=a.units) for window in windows
    ]
    columns = np.column_stack([sizes, *below]).astype(np.float64)
    inside = [window.order[window.first : window.stop] for window in windows]
    draws = resampling.RESAMPLES
    if a.units > MANY_CLUSTERS:
        draws = min(draws, RESAMPLES_OF_MANY)
    differences = []
    for drawn in resamples(a.units, draws):
        counts = counts_in(drawn)
        totals = (counts.astype(np.float64) @ columns).astype(np.int64)
        of_a, of_b = (
            window.quantiles(
                totals[:, at], counts[:, clusters[rows]], totals[:, 0], window.sample.values[rows]
            )
            for at, (window, rows) in enumerate(zip(windows, inside, strict=True), 1)
        )
        differences.append(of_b - of_a)
    return np.concatenate(differences)


def _clustered_reach(sample: Sample, clusters: Ints, sizes: Ints) -> float:
    if sample.n <= MOST_WHOLE or sample.value is None:
        return float(sample.n)
    up_to = np.bincount(clusters[sample.values <= sample.value], minlength=sizes.size)
    residuals = up_to - _share(sample) * sizes
    return _CLUSTERED_REACH * math.sqrt(float((residuals * residuals).sum()))
