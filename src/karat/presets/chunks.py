"""Recall, precision and F1 over sets of chunk ids.

Lists are not cut, an id that is repeated counts once, and without any gold only recall is 1.
Ids change with every chunker, so they cannot compare chunkers: use `karat.presets.spans` where
the offsets of the chunks are known.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from karat.measures.presets import PRESETS
from karat.measures.single_query import hits_of, parse_ids, value

MEASURES = PRESETS["chunks"].measures
CONVENTIONS = PRESETS["chunks"].conventions

ChunkId = str


@runtime_checkable
class ChunkLevelMetric(Protocol):
    """A metric over chunk ids."""

    @property
    def name(self) -> str:
        """What it is called."""

    def calculate(self, retrieved: Iterable[ChunkId], ground_truth: Iterable[ChunkId]) -> float:
        """Return its value."""


@dataclass(frozen=True)
class _ChunkMetric:
    name: str
    measure: str

    def calculate(self, retrieved: Iterable[ChunkId], ground_truth: Iterable[ChunkId]) -> float:
        """Return the value for one query.

        Parameters
        ----------
        retrieved
            The ids of the chunks that were retrieved, in any order; repeats count once. Whole
            numbers are taken as text, so 7 and "7" are the same id.
        ground_truth
            The ids of the chunks that should be retrieved.
        """
        # As duplicates=set and no_gold=recall do it for whole runs.
        distinct = dict.fromkeys(parse_ids(retrieved, "retrieved"))
        relevant = set(parse_ids(ground_truth, "ground_truth"))
        if not relevant and self.measure == "R":
            return 1.0
        return value(self.measure, hits_of(distinct, relevant))


chunk_recall: ChunkLevelMetric = _ChunkMetric("chunk_recall", "R")
chunk_precision: ChunkLevelMetric = _ChunkMetric("chunk_precision", "P")
chunk_f1: ChunkLevelMetric = _ChunkMetric("chunk_f1", "F1")
