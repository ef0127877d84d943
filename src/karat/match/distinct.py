"""A quick answer to whether any item stands twice in one query."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

_SPREAD = np.uint64(0x9E3779B97F4A7C15)  # Knuth's multiplier: sets the hashes of queries apart
_ROWS = 1 << 20


def surely_distinct(query: NDArray[np.uint64], items: pl.Series) -> bool:
    """Tell whether no item stands twice in a query; a False may be a chance collision.

    Equal pairs have equal hashes, so as many different hashes as rows means no repeat. That
    costs a tenth of comparing the strings, which is left to the few tables that need it.
    """
    keys = items.hash().to_numpy() ^ (query * _SPREAD)
    return pl.Series(keys).n_unique() == items.len()


def surely_distinct_lists(items: pl.Series, starts: NDArray[np.int64]) -> bool:
    """Tell the same of lists that stand one after the other, a million rows at a time."""
    # Whole lists only: a block ends where the first list begins that would not fit it.
    ends = np.append(starts[1:], items.len())
    first = 0
    while first < starts.size:
        last = max(int(np.searchsorted(ends, starts[first] + _ROWS, "right")), first + 1)
        block = items.slice(int(starts[first]), int(ends[last - 1] - starts[first]))
        lengths = ends[first:last] - starts[first:last]
        lists = np.repeat(np.arange(last - first, dtype=np.uint64), lengths)
        if not surely_distinct(lists, block):
            return False
        first = last
    return True
