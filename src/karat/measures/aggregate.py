"""Combine the values of all queries into one number.

Sums are exact (`math.fsum`), so the order of the queries never changes a result.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

from karat.measures.registry import Combine

GEOMETRIC_FLOOR = 0.00001
"""Smaller values count as this in a geometric mean, as in trec_eval."""


def mean(values: list[float]) -> float:
    """Return the arithmetic mean, from an exact sum."""
    return math.fsum(values) / len(values)


def exact_terms(values: list[float]) -> list[float]:
    """Return a few numbers whose sum is exactly that of the values, without any rounding.

    The terms of several parts are added like the values themselves: `math.fsum` returns the same
    number for both.

    >>> exact_terms([1.0, 1e-20, 2.0])
    [3.0, 1e-20]
    """
    terms: list[float] = []
    rest = math.fsum(values)
    while rest and math.isfinite(rest):
        terms.append(rest)
        rest = math.fsum([*values, *(-term for term in terms)])
    return [*terms, rest] if rest else terms


def median(values: list[float]) -> float:
    """Return the middle value, or the mean of the two middle values."""
    ordered, middle = sorted(values), len(values) // 2
    if len(values) % 2:
        return ordered[middle]
    return (ordered[middle - 1] + ordered[middle]) / 2


def quantile(share: float, values: list[float]) -> float:
    """Return the quantile for a share between 0 and 1, with linear interpolation.

    This is the default method of `numpy.quantile`.

    >>> quantile(0.9, [1.0, 2.0, 3.0])
    2.8
    """
    ordered = sorted(values)
    position = (len(ordered) - 1) * share
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (position - below) * (ordered[above] - ordered[below])


def micro(values: list[float], weights: list[int]) -> float | None:
    """Return the sum of all numerators / the sum of all denominators, or None if that is 0.

    The weights are the denominators. Numerators are integers, so each one is its query's value
    times its weight, rounded.
    """
    denominator = sum(weights)
    if not denominator:
        return None
    numerators = (round(value * weight) for value, weight in zip(values, weights, strict=True))
    return sum(numerators) / denominator


def geometric(values: list[float]) -> float:
    """Return the geometric mean; values below 0.00001 count as 0.00001, as in trec_eval."""
    return math.exp(mean([math.log(max(value, GEOMETRIC_FLOOR)) for value in values]))


SHARES: dict[Combine, float] = {"median": 0.5, "p50": 0.5, "p90": 0.9, "p99": 0.99}
"""The ways to combine values that are quantiles, and their shares."""

COMBINE: dict[Combine, Callable[[list[float]], float]] = {
    "mean": mean,
    "geometric": geometric,
    "sum": math.fsum,
    "median": median,
    **{how: partial(quantile, SHARES[how]) for how in ("p50", "p90", "p99")},
    "max": max,
}


def combine(how: Combine, values: list[float]) -> float | None:
    """Combine values; return None if there are none."""
    return COMBINE[how](values) if values else None
