"""The bias-corrected and accelerated bootstrap."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

from karat.arrays import Floats

_ROUNDING = 1e-9
"""What is as close as this, of the whole range, is the same number: 1/3 + 1/3 and 2/3."""


def corrected(value: float, resampled: Floats, without_each: Floats, confidence: float) -> Floats:
    """Return both ends of the BCa interval.

    B. Efron, Better Bootstrap Confidence Intervals, 1987. The bias is how far the resampled
    numbers lie to one side (ties to both), the acceleration comes from leaving each query out.
    """
    normal = NormalDist()
    known = resampled[~np.isnan(resampled)]
    apart = known - value
    apart[np.abs(apart) <= _ROUNDING * np.ptp(known)] = 0.0
    below, same = np.count_nonzero(apart < 0), np.count_nonzero(apart == 0)
    # Never quite 0 or 1, of which the normal quantile is infinite.
    share = (below + same / 2 + 0.5) / (known.size + 1)
    bias = normal.inv_cdf(share)
    acceleration = _acceleration(without_each[~np.isnan(without_each)])
    ends = []
    tail = normal.inv_cdf((1 - confidence) / 2)
    for step in (bias + tail, bias - tail):
        room = 1 - acceleration * step
        # At a confidence near 1 the correction may reach past infinity: then nothing is left out.
        ends.append(normal.cdf(bias + step / room) if room > 0 else float(step > 0))
    return np.quantile(known, ends)


def percentile(resampled: Floats, confidence: float) -> Floats:
    """Return both ends of the plain percentile interval."""
    return np.quantile(resampled, [(1 - confidence) / 2, (1 + confidence) / 2])


def _acceleration(without_each: Floats) -> float:
    middle = math.fsum(without_each.tolist()) / without_each.size
    apart = middle - without_each
    # It has no unit: in units of the largest, no cube vanishes or grows beyond all numbers.
    parts = np.ldexp(apart, -np.frexp(np.abs(apart).max(initial=0.0))[1]).tolist()
    spread = math.fsum(a * a for a in parts) ** 1.5
    return math.fsum(a * a * a for a in parts) / (6 * spread) if spread else 0.0
