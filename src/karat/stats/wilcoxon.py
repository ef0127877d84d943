"""Wilcoxon's signed-rank test."""

from __future__ import annotations

import math

import numpy as np

from karat.arrays import Floats, Ints

MOST_EXACT = 50


def wilcoxon(differences: Floats, rounding: float = 0.0) -> float:
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
