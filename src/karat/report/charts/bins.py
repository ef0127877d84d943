"""Reducing many values to few marks: bins, and steps of cumulative shares."""

from __future__ import annotations

import math

import numpy as np

from karat.arrays import Floats, Ints

BINS = 20
_ROUND_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
_NARROWEST = 1e-300  # narrower ranges cannot be divided into bins
_TOLERANCE = 1e-9


def cumulative(values: Floats, points: int) -> tuple[Floats, Floats]:
    """Return points (value, share) of the empirical cumulative distribution function.

    Each point is exact. Between two points, the step function is too low by at most
    `max_error(n, points)`, since no larger share of the values lies strictly between them.
    """
    ordered = np.sort(values)
    at = np.unique(np.linspace(0, ordered.size - 1, min(points, ordered.size)).round().astype(int))
    steps = np.unique(ordered[at])
    return steps, np.searchsorted(ordered, steps, side="right") / ordered.size


def max_error(n: int, points: int) -> float:
    """Return the maximum amount by which `cumulative` is too low between two points."""
    if n <= points:
        return 0.0
    return math.ceil((n - 1) / (points - 1)) / n


def edges(low: float, high: float, *, whole: bool = False) -> Floats:
    """Return the edges of about 20 bins of equal, round width that contain low and high.

    For whole numbers, each bin contains the same number of integers.

    >>> edges(0.0, 1.0)[:3].tolist(), edges(3.0, 5.0, whole=True).tolist()
    ([0.0, 0.05, 0.1], [3.0, 4.0, 5.0, 6.0])
    """
    if whole:
        high += 1.0
    if high - low <= max(_TOLERANCE * max(abs(low), abs(high)), _NARROWEST):
        margin = abs(low) / BINS or 0.5
        return np.array([low - margin, high + margin])
    width = _round_width((high - low) / BINS)
    if whole:
        width = max(1.0, math.ceil(width))
    multiples = range(math.floor(low / width), math.ceil(high / width) + 1)
    bounds: Floats = np.array([float(f"{at * width:.12g}") for at in multiples])
    # Rounding may move the outer edges inside the range of the values.
    bounds[0], bounds[-1] = min(bounds[0], low), max(bounds[-1], high)
    return bounds


def edges_by_ratio(low: float, high: float) -> Floats:
    """Return the edges of 20 bins of equal width on a log scale; low must be above 0."""
    bounds: Floats = np.geomspace(low, high, BINS + 1)
    return bounds


def _round_width(least: float) -> float:
    power = 10.0 ** math.floor(math.log10(least))
    return next(power * step for step in _ROUND_STEPS if power * step >= least * (1 - _TOLERANCE))


def bin_numbers(values: Floats, bounds: Floats) -> Ints:
    """Return the bin of each value; a bin contains its lower edge, the last bin both edges."""
    at = np.searchsorted(bounds, values, side="right") - 1
    inside: Ints = np.clip(at, 0, bounds.size - 2)
    return inside
