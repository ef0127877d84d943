"""Corrections of p for looking at several differences."""

from __future__ import annotations

import numpy as np

from karat.arrays import Floats

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
