"""From a value for each query to one number; sums are exact, so order never matters."""

from __future__ import annotations

import math
from collections.abc import Callable

from karat.measures.declare import Combine

LEAST_OF_GEOMETRIC = 0.00001


def mean(values: list[float]) -> float:
    """Return the exact sum over the number of values."""
    return math.fsum(values) / len(values)


def median(values: list[float]) -> float:
    """Return the middle value, or the mean of the two in the middle."""
    ordered, half = sorted(values), len(values) // 2
    return ordered[half] if len(values) % 2 else (ordered[half - 1] + ordered[half]) / 2


def geometric(values: list[float]) -> float:
    """Return the geometric mean; a value under 0.00001 counts as that, as in trec_eval."""
    return math.exp(mean([math.log(max(value, LEAST_OF_GEOMETRIC)) for value in values]))


COMBINE: dict[Combine, Callable[[list[float]], float]] = {
    "mean": mean,
    "geometric": geometric,
    "sum": math.fsum,
    "median": median,
}


def combine(how: Combine, values: list[float]) -> float | None:
    """Combine the values that are there; None if there is none."""
    return COMBINE[how](values) if values else None
