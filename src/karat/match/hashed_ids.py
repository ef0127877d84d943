"""Ids as hashes, of gold that is larger than the memory limit."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property

import numpy as np
import polars as pl

from karat.arrays import Flags, Ints


class HashedIds:
    """Distinct ids of 8 bytes each, and a function that yields the ids themselves in parts.

    That two of 10 million ids have the same hash has a probability of 3 in a million.
    """

    def __init__(self, parts: Callable[[], Iterable[pl.Series]]) -> None:
        self._parts = parts

    def __len__(self) -> int:
        return len(self._hashes)

    @cached_property
    def _hashes(self) -> pl.Series:
        return pl.concat([part.hash() for part in self._parts()]).unique().sort()

    def _positions(self, ids: pl.Series) -> tuple[Ints, Flags]:
        """Return where the hash of each id is or would be, and whether it is there."""
        hashes = ids.hash()
        if not self._hashes.len():
            return np.zeros(hashes.len(), np.int64), np.zeros(hashes.len(), np.bool_)
        position = self._hashes.search_sorted(hashes).clip(0, self._hashes.len() - 1)
        is_there = (self._hashes.gather(position) == hashes).to_numpy()
        return position.to_numpy().astype(np.int64), is_there

    def are_in(self, ids: pl.Series) -> Flags:
        """Return which of the ids are among other ids."""
        position, is_there = self._positions(ids.unique())
        flags: Flags = np.zeros(self._hashes.len(), np.bool_)
        flags[position[is_there]] = True
        return flags

    def smallest(self, is_selected: Flags, n: int) -> list[str]:
        """Return the first selected ids by bytes."""
        smallest: list[str] = []
        for part in self._parts():
            ids = part.filter(is_selected[self._positions(part)[0]])
            smallest = sorted({*smallest, *ids.bottom_k(n)})[:n]
        return smallest
