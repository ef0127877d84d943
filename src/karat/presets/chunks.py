"""Recall, precision and F1 over sets of chunk ids.

Lists have no cutoff, and repeated ids count once. If no ids are expected, recall is 1 and the
others are 0. The ids of chunks depend on the chunker; to compare chunkers, use
`karat.presets.spans` with the offsets of the chunks.
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
    """A metric over sets of chunk ids."""

    @property
    def name(self) -> str:
        """The name of the metric."""

    def calculate(self, retrieved: Iterable[ChunkId], ground_truth: Iterable[ChunkId]) -> float:
        """Return the value for one query."""


@dataclass(frozen=True)
class _ChunkMetric:
    name: str
    measure: str

    def calculate(self, retrieved: Iterable[ChunkId], ground_truth: Iterable[ChunkId]) -> float:
        """Return the value for one query.

        Parameters
        ----------
        retrieved : iterable of str
            The ids of the retrieved chunks, in any order; repeated ids count once. Integers are
            converted to text, so 7 and "7" are the same id.
        ground_truth : iterable of str
            The ids of the chunks that should be retrieved.

        Examples
        --------
        >>> from karat.presets import chunks
        >>> chunks.chunk_recall.calculate(["a", "x", "a"], ["a", "b"])
        0.5
        """
        # The same as the conventions duplicates=set and no_gold=recall for whole runs.
        distinct = dict.fromkeys(parse_ids(retrieved, "retrieved"))
        relevant = set(parse_ids(ground_truth, "ground_truth"))
        if not relevant and self.measure == "R":
            return 1.0
        return value(self.measure, hits_of(distinct, relevant))


chunk_recall: ChunkLevelMetric = _ChunkMetric("chunk_recall", "R")
chunk_precision: ChunkLevelMetric = _ChunkMetric("chunk_precision", "P")
chunk_f1: ChunkLevelMetric = _ChunkMetric("chunk_f1", "F1")
