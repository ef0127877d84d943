"""Three metrics over sets of chunk ids, for those who have nothing else.

Ids change with every chunker, so they cannot compare chunkers: `karat.presets.spans` supersedes
this wherever places in the documents are known.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from karat.conventions import Conventions
from karat.measures.one import hits_of, value

MEASURES = ("R@10", "P(denominator=retrieved)@10", "F1@10")
CONVENTIONS = Conventions(no_gold="one")

ChunkId = str


class ChunkLevelMetric(Protocol):
    """What a metric over chunk ids is."""

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
        """Return the declared measure of these sets."""
        found, wanted = sorted(set(retrieved)), set(ground_truth)
        if not wanted and self.measure == "R":
            return 1.0
        hits = hits_of(found, wanted)
        if self.measure == "P":
            return value("P", hits, denominator="retrieved")
        return value(self.measure, hits)


chunk_recall: ChunkLevelMetric = _ChunkMetric("chunk_recall", "R")
chunk_precision: ChunkLevelMetric = _ChunkMetric("chunk_precision", "P")
chunk_f1: ChunkLevelMetric = _ChunkMetric("chunk_f1", "F1")
