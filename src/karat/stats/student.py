"""Student's paired t."""

from __future__ import annotations

import math

from karat.stats.samples import Sample, deviation


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


def student(differences: Sample) -> float | None:
    """Return the two-sided p of the mean difference; None where it is undefined."""
    effect = effect_size(differences)
    if effect is None:
        return None
    from scipy.special import stdtr

    return float(2 * stdtr(differences.n - 1, -abs(effect) * math.sqrt(differences.n)))
