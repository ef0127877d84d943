"""Corrections of p-values for multiple comparisons.

`correct` applies Holm, Benjamini-Hochberg or Bonferroni to the p-values of any test. `tukey` is the
randomized Tukey HSD test, which compares all runs at once, paired by query: B. Carterette, Multiple
Testing in Statistical Analysis of Systems-Based Information Retrieval Experiments, 2012. It
shuffles the values of each query among the runs, and counts how often the largest difference
between any two runs is at least as large as the observed one.
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
DRAWS = 10_000
MANY_QUERIES = 50_000
DRAWS_OF_MANY = 500
"""Above MANY_QUERIES there are fewer draws: each shuffles the values of every query."""
_BLOCK_CELLS = 1 << 20


def correct(p: Floats, how: str) -> Floats:
    """Return the corrected p-values, in the same order; the number of tests is `p.size`."""
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


def tukey_draws(n_queries: int) -> int:
    """Return the number of draws of Tukey's test."""
    return DRAWS if n_queries <= MANY_QUERIES else DRAWS_OF_MANY


def tukey(values: Floats, draws: int | None = None) -> Floats:
    """Return the p-value of each pair of runs, for a matrix of one row per query."""
    n, k = values.shape
    draws = tukey_draws(n) if draws is None else draws
    rounded, _ = to_integers(values.reshape(-1, 1))
    table = rounded.reshape(n, k)
    total = table.sum(axis=0)
    observed = np.abs(total[:, None] - total[None, :])
    ranges = []
    bits = np.random.PCG64(SEED)
    step = max(1, _BLOCK_CELLS // max(n * k, 1))
    for start in range(0, draws, step):
        sums = _shuffle_rows(table, bits, min(step, draws - start)).sum(axis=1)
        ranges.append(sums.max(axis=1) - sums.min(axis=1))
    sorted_ranges = np.sort(np.concatenate(ranges))
    # As in the sign-flip test, a range that is smaller only by rounding counts as large enough.
    n_smaller = np.searchsorted(sorted_ranges, observed - 2 * n, "left")
    p: Floats = (draws - n_smaller + 1) / (draws + 1)
    return p


def _shuffle_rows(table: Floats, bits: np.random.PCG64, draws: int) -> Floats:
    """Return `draws` copies of the table with each row shuffled (R. Durstenfeld, 1964)."""
    shuffled = np.broadcast_to(table, (draws, *table.shape)).reshape(-1, table.shape[1]).copy()
    rows = np.arange(len(shuffled))
    for last in range(table.shape[1] - 1, 0, -1):
        other = random_integers(bits, last + 1, (len(shuffled),))
        swapped = shuffled[rows, other]
        shuffled[rows, other] = shuffled[:, last]
        shuffled[:, last] = swapped
    return shuffled.reshape(draws, *table.shape)
