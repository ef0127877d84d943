"""Quantiles and maxima of many samples at once."""

from __future__ import annotations

import numpy as np

from karat.arrays import Floats
from karat.stats.samples import Sample


def over_rows(sample: Sample, rows: Floats) -> Floats:
    """Combine each row as a sample says: to a quantile, or to the largest value."""
    found: Floats = (
        rows.max(axis=1) if sample.share is None else np.quantile(rows, sample.share, axis=1)
    )
    return found
