"""A quick answer to whether any item stands twice in one query."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

_SPREAD = np.uint64(0x9E3779B97F4A7C15)  # Knuth's multiplier: sets the hashes of queries apart


def surely_distinct(query: NDArray[np.uint64], items: pl.Series) -> bool:
    """Tell whether no item stands twice in a query; a False may be a chance collision.

    Equal pairs have equal hashes, so as many different hashes as rows means no repeat. That
    costs a tenth of comparing the strings, which is left to the few tables that need it.
    """
    keys = items.hash().to_numpy() ^ (query * _SPREAD)
    return pl.Series(keys).n_unique() == items.len()
