"""Four metrics over character spans of documents.

Spans are half-open, `[start, end)`, in code points of one document. Overlapping and touching
spans count every character once.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from karat.conventions import Conventions
from karat.functional import calculate_overlap, merge_overlapping_spans
from karat.measures.one import check_stretch, coverage_of, span_value

MEASURES = ("span.recall@5", "span.precision@5", "span.iou@5", "span.f1@5")
CONVENTIONS = Conventions()

__all__ = [
    "CharacterSpan",
    "Metric",
    "SpanRange",
    "calculate_overlap",
    "f1",
    "iou",
    "merge_overlapping_spans",
    "precision",
    "recall",
]


@dataclass(frozen=True)
class SpanRange:
    """A stretch of text without its document."""

    start: int
    end: int

    def __post_init__(self) -> None:
        check_stretch(self.start, self.end)

    @property
    def length(self) -> int:
        """How many characters it holds."""
        return self.end - self.start


@dataclass(frozen=True)
class CharacterSpan:
    """A stretch of a document.

    >>> CharacterSpan("d1", 0, 50).length
    50
    """

    doc_id: str
    start: int
    end: int
    text: str | None = None

    def __post_init__(self) -> None:
        check_stretch(self.start, self.end)

    @property
    def length(self) -> int:
        """How many characters it holds."""
        return self.end - self.start


class Metric(Protocol):
    """What a metric is: a name, and a number from what was retrieved and what should be."""

    @property
    def name(self) -> str:
        """What it is called."""

    def calculate(
        self, retrieved: Sequence[CharacterSpan], ground_truth: Sequence[CharacterSpan]
    ) -> float:
        """Return its value."""


@dataclass(frozen=True)
class _SpanMetric:
    name: str

    def calculate(
        self, retrieved: Sequence[CharacterSpan], ground_truth: Sequence[CharacterSpan]
    ) -> float:
        """Return the declared measure of these spans."""
        return span_value(f"span.{self.name}", coverage_of(retrieved, ground_truth))


recall: Metric = _SpanMetric("recall")
precision: Metric = _SpanMetric("precision")
iou: Metric = _SpanMetric("iou")
f1: Metric = _SpanMetric("f1")

_REPLACED = {
    "span_recall": "recall",
    "span_precision": "precision",
    "span_iou": "iou",
    "span_f1": "f1",
    "TokenLevelMetric": "Metric",
}


def __getattr__(name: str) -> Any:
    if name not in _REPLACED:
        raise AttributeError(f"module 'karat.presets.spans' has no attribute {name!r}")
    new = _REPLACED[name]
    warnings.warn(f"{name} is now called {new}", DeprecationWarning, stacklevel=2)
    return globals()[new]
