"""Many values as few marks, with a known error."""

from __future__ import annotations

import math

import numpy as np

from karat.arrays import Floats, Ints

BINS = 20
_ROUND_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
_TOLERANCE = 1e-9


def cumulative(values: Floats, points: int) -> tuple[Floats, Floats]:
    """Return points of the share of values that are no larger, as a line of steps.

    Each point is exact. Between two of them the steps are low by at most `slack(n, points)`,
    since no more values than that lie strictly between.
    """
    ordered = np.sort(values)
    at = np.unique(np.linspace(0, ordered.size - 1, min(points, ordered.size)).round().astype(int))
    kept = np.unique(ordered[at])
    return kept, np.searchsorted(ordered, kept, side="right") / ordered.size


def max_error(n: int, points: int) -> float:
    """Return by how much the line of `cumulative` may be too low between its points."""
    if n <= points:
        return 0.0
    return math.ceil((n - 1) / (points - 1)) / n


def edges(low: float, high: float, *, whole: bool = False) -> Floats:
    """Return the edges of about 20 bins of one round width, which hold all from low to high.

    Of whole numbers each bin holds as many as any other.

    >>> edges(0.0, 1.0)[:3].tolist(), edges(3.0, 5.0, whole=True).tolist()
    ([0.0, 0.05, 0.1], [3.0, 4.0, 5.0, 6.0])
    """
    if whole:
        high += 1.0
    if high - low <= _TOLERANCE * max(abs(low), abs(high)):
        beside = abs(low) / BINS or 0.5
        return np.array([low - beside, high + beside])
    width = _round_width((high - low) / BINS)
    if whole:
        width = max(1.0, math.ceil(width))
    places = range(math.floor(low / width), math.ceil(high / width) + 1)
    found: Floats = np.array([float(f"{at * width:.12g}") for at in places])
    # A product may miss by its last digit the very value that it stands for.
    found[0], found[-1] = min(found[0], low), max(found[-1], high)
    return found


def edges_by_ratio(low: float, high: float) -> Floats:
    """Return the edges of 20 bins, each as many times as wide as the one before; low is above 0."""
    found: Floats = np.geomspace(low, high, BINS + 1)
    return found


def _round_width(least: float) -> float:
    power = 10.0 ** math.floor(math.log10(least))
    return next(power * step for step in _ROUND_STEPS if power * step >= least * (1 - _TOLERANCE))


def bin_numbers(values: Floats, bounds: Floats) -> Ints:
    """Return in which bin each value lies; a bin holds its lower edge, the last one both."""
    at = np.searchsorted(bounds, values, side="right") - 1
    inside: Ints = np.clip(at, 0, bounds.size - 2)
    return inside
