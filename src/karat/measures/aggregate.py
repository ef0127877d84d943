"""From a value for each query to one number; sums are exact, so order never matters."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

from karat.measures.registry import Combine

GEOMETRIC_FLOOR = 0.00001


def mean(values: list[float]) -> float:
    """Return the exact sum over the number of values."""
    return math.fsum(values) / len(values)


def median(values: list[float]) -> float:
    """Return the middle value, or the mean of the two in the middle."""
    ordered, half = sorted(values), len(values) // 2
    return ordered[half] if len(values) % 2 else (ordered[half - 1] + ordered[half]) / 2


def quantile(share: float, values: list[float]) -> float:
    """Return the value below which a share of them lies, between two of them by a straight line.

    >>> quantile(0.9, [1.0, 2.0, 3.0])
    2.8
    """
    ordered = sorted(values)
    place = (len(ordered) - 1) * share
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


def micro(values: list[float], weights: list[int]) -> float | None:
    """Return the sum of numerators over that of denominators, which the weights are.

    Numerators are whole, so a value times its weight lies next to the one it came from.
    """
    total = sum(weights)
    parts = zip(values, weights, strict=True)
    return sum(round(value * weight) for value, weight in parts) / total if total else None


def geometric(values: list[float]) -> float:
    """Return the geometric mean; a value under 0.00001 counts as that, as in trec_eval."""
    return math.exp(mean([math.log(max(value, GEOMETRIC_FLOOR)) for value in values]))


SHARES: dict[Combine, float] = {"median": 0.5, "p50": 0.5, "p90": 0.9, "p99": 0.99}
"""What is a quantile, and of which share."""

COMBINE: dict[Combine, Callable[[list[float]], float]] = {
    "mean": mean,
    "geometric": geometric,
    "sum": math.fsum,
    "median": median,
    **{how: partial(quantile, SHARES[how]) for how in ("p50", "p90", "p99")},
    "max": max,
}


def combine(how: Combine, values: list[float]) -> float | None:
    """Combine the values that are there; None if there is none."""
    return COMBINE[how](values) if values else None
