"""Power: what difference so many queries can show, and how many a difference needs."""

from __future__ import annotations

import math

POWER = 0.8
ALPHA = 0.05
_MOST = 1 << 40


def detectable_difference(spread: float, n: int) -> float | None:
    """Return the smallest true difference that a paired t would show in 80% of experiments.

    `spread` is the standard deviation of the differences.
    """
    if n < 2 or not spread > 0:
        return None
    low, high = 0.0, 1.0
    while _power(high, n) < POWER:
        high *= 2
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if _power(middle, n) < POWER else (low, middle)
    return high * spread / math.sqrt(n)


def required_queries(spread: float, difference: float) -> int | None:
    """Return how many queries would show a difference in 80% of experiments."""
    if not spread > 0 or difference == 0:
        return None
    effect = abs(difference) / spread
    low, high = 1, 2
    while _power(effect * math.sqrt(high), high) < POWER:
        low, high = high, high * 2
        if high > _MOST:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        enough = _power(effect * math.sqrt(middle), middle) >= POWER
        low, high = (low, middle) if enough else (middle, high)
    return high


def _power(shift: float, n: int) -> float:
    """Return the chance that |t| passes its limit if t is centred at a shift."""
    from scipy.special import nctdtr, stdtrit

    limit = float(stdtrit(n - 1, 1 - ALPHA / 2))
    if shift > 2 * limit + 40:  # far out, where the noncentral t loses its digits
        return 1.0
    other_side = float(nctdtr(n - 1, shift, -limit))
    # So small that of 2 queries SciPy gives no number for it.
    return float(1 - nctdtr(n - 1, shift, limit)) + (other_side if other_side > 0 else 0.0)
