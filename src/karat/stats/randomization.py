"""The sign-flip randomization test, paired by query.

If two runs are equally good, it is chance which of two values of a query is whose. So swap the
values of each query by the toss of a coin, and see how often the difference is as large as it is.
R. A. Fisher, 1935; for retrieval M. Smucker, J. Allan and B. Carterette, CIKM 2007.
"""

from __future__ import annotations

import math

import numpy as np

from karat.match.hits import Floats, Ints
from karat.stats.draws import coin_flips, every_pattern, slices
from karat.stats.pairs import Pair
from karat.stats.quantiles import over_rows
from karat.stats.whole import whole

DRAWS = 100_000
MANY_QUERIES = 10_000
DRAWS_OF_MANY = 10_000
"""Beyond so many queries, fewer draws do: p is that of the normal law by then, and each is dear."""
_DRAWS_A_COLUMN = 100
"""But so many for each p: corrected for all of them, the smallest can still be far below 0.05."""
DRAWS_OF_QUANTILES = 10_000
"""Fewer, as every draw looks for a quantile anew."""


def randomization(
    differences: Floats, draws: int | None = None, rounding: Floats | float = 0.0
) -> Floats:
    """Return the two-sided p of each column of differences: a row a query, 0 where it has none.

    All 2^n ways of swapping are tried where there are at most as many as draws, n being the
    queries with a difference; else p = (b + 1) / (B + 1), b of B draws reaching the difference.
    Every column sees the same draws. `rounding` says what is none but rounding, in each column.
    """
    if draws is None:
        draws = DRAWS
        if len(differences) > MANY_QUERIES:
            draws = min(DRAWS, max(DRAWS_OF_MANY, _DRAWS_A_COLUMN * differences.shape[1]))
    columns, _ = whole(differences, rounding)
    p = np.ones(columns.shape[1])
    few = np.count_nonzero(columns, axis=0) <= math.floor(math.log2(draws))
    for at in np.flatnonzero(few):
        own = columns[columns[:, at] != 0, at][:, None]
        p[at] = _reached(own, own.sum(axis=0), every_pattern(len(own)))[0] / (1 << len(own))
    many = columns[:, ~few]
    if many.size:
        total = many.sum(axis=0)
        reached = sum(_reached(many, total, flips) for flips in coin_flips(len(many), draws))
        p[~few] = (reached + 1) / (draws + 1)
    return p


def _reached(columns: Floats, total: Floats, flips: Floats) -> Ints:
    """Count the rows of flips that make each column's sum as large as the total, unflipped."""
    # Flipping a sign takes twice its value away. Sums are exact but for the rounding of each
    # value to a whole number, so what is apart by no more than that is as large.
    flipped = np.abs(total - 2 * (flips @ columns))
    reached: Ints = np.count_nonzero(flipped >= np.abs(total) - len(columns), axis=0)
    return reached


def swapped(pair: Pair, draws: int = DRAWS_OF_QUANTILES) -> float:
    """Return the p of a difference of quantiles or maxima, by swapping the values themselves."""
    apart = pair.apart != 0
    n = int(np.count_nonzero(apart))
    # Only queries with two values change by swapping; the others are the same in every draw.
    if exact := 1 << min(n, 62) <= draws:
        blocks = iter([every_pattern(n)])
    else:
        blocks = coin_flips(n, draws)
    observed, reached = abs(pair.difference or 0.0), 0
    least = observed * (1 - 1e-9)
    # Flips of few queries come in long blocks, too long beside the values of all queries.
    for turned in (flips[at] == 1 for flips in blocks for at in slices(len(flips), pair.n)):
        a = np.tile(pair.a.values, (len(turned), 1))
        b = np.tile(pair.b.values, (len(turned), 1))
        a[:, apart] = np.where(turned, pair.b.values[apart], pair.a.values[apart])
        b[:, apart] = np.where(turned, pair.a.values[apart], pair.b.values[apart])
        reached += int(
            np.count_nonzero(np.abs(over_rows(pair.b, b) - over_rows(pair.a, a)) >= least)
        )
    return reached / (1 << n) if exact else (reached + 1) / (draws + 1)
