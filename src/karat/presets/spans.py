"""Recall, precision, IoU and F1 over character spans of documents.

Spans are half-open, `[start, end)`, in code points of one document. Overlapping and touching
spans count every character once. Lists are not cut.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from karat.functional import calculate_overlap, merge_overlapping_spans
from karat.measures.presets import PRESETS
from karat.measures.single_query import AnySpan, check_span, coverage_of, span_value, parse_spans

MEASURES = PRESETS["spans"].measures
CONVENTIONS = PRESETS["spans"].conventions

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
    """A span of a document, without its text.

    >>> SpanRange("d1", 0, 50).length
    50
    """

    doc_id: str
    start: int
    end: int

    def __post_init__(self) -> None:
        check_span(self.doc_id, self.start, self.end)

    @property
    def length(self) -> int:
        """The number of characters."""
        return self.end - self.start


@dataclass(frozen=True)
class CharacterSpan:
    """A span of a document, with its text where that is known.

    >>> CharacterSpan("d1", 0, 50).length
    50
    """

    doc_id: str
    start: int
    end: int
    text: str | None = None

    def __post_init__(self) -> None:
        check_span(self.doc_id, self.start, self.end)

    @property
    def length(self) -> int:
        """The number of characters."""
        return self.end - self.start


@runtime_checkable
class Metric(Protocol):
    """A metric: a name, and a number from the spans retrieved and those that should be."""

    @property
    def name(self) -> str:
        """What it is called."""

    def calculate(self, retrieved: Iterable[AnySpan], ground_truth: Iterable[AnySpan]) -> float:
        """Return its value."""


@dataclass(frozen=True)
class _SpanMetric:
    name: str

    def calculate(self, retrieved: Iterable[AnySpan], ground_truth: Iterable[AnySpan]) -> float:
        """Return the value for one query.

        Parameters
        ----------
        retrieved
            The spans that were retrieved, as `merge_overlapping_spans` takes them.
        ground_truth
            The spans that should be retrieved, in the same forms.
        """
        spans = parse_spans(retrieved=retrieved, ground_truth=ground_truth)
        return span_value(f"span.{self.name}", coverage_of(*spans))


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
