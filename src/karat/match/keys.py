"""One number for a query and an item, so that millions of pairs are compared as numbers."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

_BLOCK = 1 << 16  # rows
_SPREAD = np.uint64(0x9E3779B97F4A7C15)  # Knuth's multiplier: sets the hashes of queries apart


def keys(items: pl.Series, query: NDArray[np.uint64], lengths: NDArray[np.int64]) -> pl.Series:
    """Return a hash of each item and its query, which stand one after the other.

    Equal pairs have equal keys. Unequal ones may have, by chance: who finds equal keys must still
    compare what they stand for.
    """
    spread = np.repeat(query * _SPREAD, lengths)
    spread ^= items.hash().to_numpy()
    return pl.Series("key", spread)


def surely_distinct(pairs: pl.Series, starts: NDArray[np.int64]) -> bool:
    """Tell whether no pair stands twice in its list; a False may be a chance collision.

    Goes by blocks of whole lists, since tables that fit the cache are several times as fast.
    """
    ends = np.append(starts[1:], pairs.len())
    first = 0
    while first < starts.size:
        last = max(int(np.searchsorted(ends, starts[first] + _BLOCK, "right")), first + 1)
        block = pairs.slice(int(starts[first]), int(ends[last - 1] - starts[first]))
        if block.n_unique() < block.len():
            return False
        first = last
    return True
