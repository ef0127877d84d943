"""Randomized Tukey HSD: all pairs of runs at once, paired by query.

B. Carterette, Multiple Testing in Statistical Analysis of Systems-Based Information Retrieval
Experiments, 2012: shuffle the values of each query among the runs, and see how often the largest
difference between any two runs is as large as the one between these two.
"""

from __future__ import annotations

import numpy as np

from karat.arrays import Floats
from karat.stats.resampling import SEED, random_integers, to_integers

CORRECTIONS = ("holm", "bh", "bonferroni", "tukey", "none")
TITLES = {
    "holm": "Holm",
    "bh": "Benjamini-Hochberg",
    "bonferroni": "Bonferroni",
    "tukey": "randomized Tukey HSD",
    "none": "nothing",
}


def correct(p: Floats, how: str) -> Floats:
    """Return corrected p, in the order given; the number of tests is the number of p."""
    m = p.size
    order = np.argsort(p, kind="stable")
    ranked = p[order]
    if how == "holm":
        ranked = np.maximum.accumulate(ranked * np.arange(m, 0, -1))
    elif how == "bh":
        ranked = np.minimum.accumulate((ranked * m / np.arange(1, m + 1))[::-1])[::-1]
    elif how == "bonferroni":
        ranked = ranked * m
    corrected = np.empty(m)
    corrected[order] = np.minimum(ranked, 1.0)
    return corrected


DRAWS = 10_000
_CELLS = 1 << 20


def tukey(values: Floats, draws: int = DRAWS) -> Floats:
    """Return the p of every pair of columns: a row a query, a column a run."""
    n, k = values.shape
    rounded, _ = to_integers(values.reshape(-1, 1))
    table = rounded.reshape(n, k)
    total = table.sum(axis=0)
    apart = np.abs(total[:, None] - total[None, :])
    ranges = []
    bits = np.random.PCG64(SEED)
    step = max(1, _CELLS // max(n * k, 1))
    for begin in range(0, draws, step):
        sums = _shuffled(table, bits, min(step, draws - begin)).sum(axis=1)
        ranges.append(sums.max(axis=1) - sums.min(axis=1))
    reached = np.sort(np.concatenate(ranges))
    # As in the sign-flip test, what is apart by the rounding of values alone is as large.
    below_it = np.searchsorted(reached, apart - 2 * n, "left")
    p: Floats = (draws - below_it + 1) / (draws + 1)
    return p


def _shuffled(table: Floats, bits: np.random.PCG64, draws: int) -> Floats:
    """Shuffle each row anew in each draw, by the exchanges of R. Durstenfeld, 1964."""
    shuffled = np.broadcast_to(table, (draws, *table.shape)).reshape(-1, table.shape[1]).copy()
    rows = np.arange(len(shuffled))
    for last in range(table.shape[1] - 1, 0, -1):
        other = random_integers(bits, last + 1, (len(shuffled),))
        taken = shuffled[rows, other]
        shuffled[rows, other] = shuffled[:, last]
        shuffled[:, last] = taken
    return shuffled.reshape(draws, *table.shape)
