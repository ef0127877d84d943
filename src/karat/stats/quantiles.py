"""Quantiles and maxima of many samples at once."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

from karat.match.hits import Floats
from karat.stats.samples import Sample


def over_rows(sample: Sample, rows: Floats) -> Floats:
    """Combine each row as a sample says: to a quantile, or to the largest value."""
    found: Floats = (
        rows.max(axis=1) if sample.share is None else np.quantile(rows, sample.share, axis=1)
    )
    return found


def quantile_influence(sample: Sample) -> Floats:
    """Return how much each query moves a quantile, to first order.

    It is (share − [value ≤ quantile]) / density. The density comes from how far apart the values
    lie around the quantile; how far to look is the rule of P. Hall and S. J. Sheather, 1988.
    """
    share = sample.share
    assert share is not None
    ordered, n = np.sort(sample.values), sample.n
    normal = NormalDist()
    z = normal.inv_cdf(share)
    width = (1.96**2 * 1.5 * normal.pdf(z) ** 2 / (2 * z * z + 1)) ** (1 / 3) * n ** (-1 / 3)
    width = min(width, share, 1 - share)
    low, at, high = np.quantile(ordered, [share - width, share, share + width])
    influence: Floats = (share - (sample.values <= at)) * (high - low) / (2 * width)
    return influence - math.fsum(influence.tolist()) / n
