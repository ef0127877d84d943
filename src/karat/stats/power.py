"""Power analysis: the smallest difference that a number of queries can show, and vice versa."""

from __future__ import annotations

import math

POWER = 0.8
"""The probability of detecting a true difference."""
ALPHA = 0.05
"""The significance level."""
_MOST_QUERIES = 1 << 40


def detectable_difference(spread: float, n: int) -> float | None:
    """Return the smallest true difference that a paired t-test detects in 80% of experiments.

    `spread` is the standard deviation of the differences.
    """
    if n < 2 or not spread > 0:
        return None
    low, high = 0.0, 1.0
    while _power(high, n) < POWER:
        high *= 2
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        if _power(middle, n) < POWER:
            low = middle
        else:
            high = middle
    return high * spread / math.sqrt(n)


def required_queries(spread: float, difference: float) -> int | None:
    """Return how many queries a paired t-test needs to detect a difference in 80% of experiments.

    `spread` is the standard deviation of the differences.
    """
    if not spread > 0 or difference == 0:
        return None
    effect = abs(difference) / spread
    low, high = 1, 2
    while _power(effect * math.sqrt(high), high) < POWER:
        low, high = high, high * 2
        if high > _MOST_QUERIES:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        if _power(effect * math.sqrt(middle), middle) < POWER:
            low = middle
        else:
            high = middle
    return high


def _power(shift: float, n: int) -> float:
    """Return the probability that |t| exceeds its critical value if t is centred at `shift`."""
    from scipy.special import nctdtr, stdtrit

    critical = float(stdtrit(n - 1, 1 - ALPHA / 2))
    if shift > 2 * critical + 40:  # far out, where the noncentral t loses precision
        return 1.0
    upper_tail = float(1 - nctdtr(n - 1, shift, critical))
    lower_tail = float(nctdtr(n - 1, shift, -critical))
    # The lower tail is tiny, and for 2 queries SciPy returns NaN for it.
    return upper_tail + lower_tail if lower_tail > 0 else upper_tail
