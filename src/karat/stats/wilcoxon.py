"""Wilcoxon's signed-rank test."""

from __future__ import annotations

import math

import numpy as np

from karat.match.hits import Floats, Ints

MOST_EXACT = 50
_DIGITS = 12


def wilcoxon(differences: Floats) -> float:
    """Return the two-sided p; queries without a difference are dropped, ties share their ranks.

    With up to 50 differences the distribution over all signs is counted out, ties included; with
    more it is taken as normal, its variance corrected for ties.
    """
    differences = differences[differences != 0]
    if not differences.size:
        return 1.0
    sizes = np.abs(differences)
    # Equal differences must not be told apart by their last digits.
    sizes = np.round(sizes / sizes.max(), _DIGITS)
    doubled, ties = _doubled_ranks(sizes)
    positive = int(doubled[differences > 0].sum())
    total = int(doubled.sum())
    if differences.size <= MOST_EXACT:
        return _exact(doubled, min(positive, total - positive))
    n = differences.size
    variance = n * (n + 1) * (2 * n + 1) / 24 - float((ties**3 - ties).sum()) / 48
    z = (positive - total / 2) / 2 / math.sqrt(variance)
    return math.erfc(abs(z) / math.sqrt(2))


def _doubled_ranks(sizes: Floats) -> tuple[Ints, Ints]:
    """Return twice the mean rank of each, a whole number, and how many share each size."""
    _, group, count = np.unique(sizes, return_inverse=True, return_counts=True)
    last = np.cumsum(count)
    return (2 * last - count + 1)[group], count


def _exact(doubled: Ints, smaller: int) -> float:
    """Count the signs that give so small a sum of ranks on either side."""
    ways = np.zeros(int(doubled.sum()) + 1)
    ways[0] = 1.0
    for rank in doubled.tolist():
        ways[rank:] += ways[:-rank].copy()
    return min(1.0, float(2 * ways[: smaller + 1].sum() / ways.sum()))
