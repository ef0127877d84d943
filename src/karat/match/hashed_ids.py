"""Ids as hashes, of gold that is larger than the memory limit."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property

import numpy as np
import polars as pl

from karat.arrays import Flags


class HashedIds:
    """Distinct ids of 8 bytes each, and a function that yields the ids themselves in parts.

    That two of 10 million ids have the same hash has a probability of 3 in a million.
    """

    def __init__(self, parts: Callable[[], Iterable[pl.Series]]) -> None:
        self._parts = parts

    def __len__(self) -> int:
        return len(self._hashes)

    @cached_property
    def _hashes(self) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
        return np.unique(np.concatenate([part.hash().to_numpy() for part in self._parts()]))

    def are_in(self, ids: pl.Series) -> Flags:
        """Return which of the ids are among other ids."""
        hashes = np.unique(ids.hash().to_numpy())
        flags: Flags = np.isin(self._hashes, hashes, assume_unique=True)
        return flags

    def smallest(self, is_selected: Flags, n: int) -> list[str]:
        """Return the first selected ids by bytes."""
        selected = self._hashes[is_selected]
        smallest: list[str] = []
        for part in self._parts():
            ids = part.filter(np.isin(part.hash().to_numpy(), selected))
            smallest = sorted({*smallest, *ids.bottom_k(n)})[:n]
        return smallest
