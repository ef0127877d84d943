"""Recall, precision, IoU and F1 over character spans of documents.

Spans are half-open, `[start, end)`, and count code points of a document. Each character counts
once, even if several spans contain it. Lists have no cutoff.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from karat.functional import calculate_overlap, merge_overlapping_spans
from karat.measures.presets import PRESETS
from karat.measures.single_query import AnySpan, check_span, coverage_of, parse_spans, span_value

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

    Parameters
    ----------
    doc_id : str
        The id of the document.
    start, end : int
        The half-open span `[start, end)`, in code points.

    Examples
    --------
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
    """A span of a document, optionally with its text.

    Parameters
    ----------
    doc_id : str
        The id of the document.
    start, end : int
        The half-open span `[start, end)`, in code points.
    text : str, optional
        The text of the span.

    Examples
    --------
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
    """A metric over spans: its name, and a function of retrieved and expected spans."""

    @property
    def name(self) -> str:
        """The name of the metric."""

    def calculate(self, retrieved: Iterable[AnySpan], ground_truth: Iterable[AnySpan]) -> float:
        """Return the value for one query."""


@dataclass(frozen=True)
class _SpanMetric:
    name: str

    def calculate(self, retrieved: Iterable[AnySpan], ground_truth: Iterable[AnySpan]) -> float:
        """Return the value for one query.

        Parameters
        ----------
        retrieved : iterable of spans
            The retrieved spans, in the forms that `merge_overlapping_spans` accepts.
        ground_truth : iterable of spans
            The spans that should be retrieved, in the same forms.

        Examples
        --------
        >>> from karat.presets import spans
        >>> spans.recall.calculate([(0, 50)], [(0, 100)])
        0.5
        """
        spans = parse_spans(retrieved=retrieved, ground_truth=ground_truth)
        return span_value(f"span.{self.name}", coverage_of(*spans))


recall: Metric = _SpanMetric("recall")
precision: Metric = _SpanMetric("precision")
iou: Metric = _SpanMetric("iou")
f1: Metric = _SpanMetric("f1")

_NEW_NAMES = {
    "span_recall": "recall",
    "span_precision": "precision",
    "span_iou": "iou",
    "span_f1": "f1",
    "TokenLevelMetric": "Metric",
}


def __getattr__(name: str) -> Any:
    if name not in _NEW_NAMES:
        raise AttributeError(f"module 'karat.presets.spans' has no attribute {name!r}")
    new_name = _NEW_NAMES[name]
    warnings.warn(f"{name} is deprecated, use {new_name} instead", DeprecationWarning, stacklevel=2)
    return globals()[new_name]
