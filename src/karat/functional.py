"""Plain functions for one query: a ranked list of ids, and what is relevant.

`relevant` is a collection of ids, or a dict from id to grade. Each function is the measure of
the same name, called on one query; k < 1 is an InputError.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from karat.errors import InputError
from karat.measures.one import Relevant, check_stretch, coverage_of, stretches_of, value_of

AnySpan = Any


def precision_at_k(retrieved: Sequence[str], relevant: Relevant, k: int) -> float:
    """Return relevant items in the top k / k.

    >>> precision_at_k(["a", "b"], ["a"], 5)
    0.2
    """
    return value_of("P", retrieved, relevant, k)


def recall_at_k(retrieved: Sequence[str], relevant: Relevant, k: int) -> float:
    """Return relevant items in the top k / all relevant items.

    >>> recall_at_k(["a", "x", "b"], ["a", "b"], 2)
    0.5
    """
    return value_of("R", retrieved, relevant, k)


def ndcg_at_k(retrieved: Sequence[str], relevant: Relevant, k: int) -> float:
    """Return DCG@k / the DCG@k of the best order, gain = grade, discount log2(rank + 1).

    >>> round(ndcg_at_k(["a", "c", "b"], {"a": 2, "b": 1, "c": 0}, 3), 3)
    0.95
    """
    return value_of("nDCG", retrieved, relevant, k)


def mrr(retrieved: Sequence[str], relevant: Relevant, k: int | None = None) -> float:
    """Return 1 / rank of the first relevant item, 0 if there is none.

    >>> mrr(["x", "a"], ["a"])
    0.5
    """
    return value_of("RR", retrieved, relevant, k)


def average_precision(retrieved: Sequence[str], relevant: Relevant, k: int | None = None) -> float:
    """Return the sum of precision at each relevant item / all relevant items.

    >>> round(average_precision(["a", "x", "b", "y"], ["a", "b"]), 4)
    0.8333
    """
    return value_of("AP", retrieved, relevant, k)


def hit_rate(retrieved: Sequence[str], relevant: Relevant, k: int) -> float:
    """Return 1.0 if a relevant item is in the top k, else 0.0.

    >>> hit_rate(["x", "a"], ["a"], 2)
    1.0
    """
    return value_of("Success", retrieved, relevant, k)


def merge_overlapping_spans(spans: Sequence[AnySpan]) -> list[AnySpan]:
    """Join spans of one document that overlap or touch, sorted by document and place.

    Each span is an object with doc_id, start and end that can be made from these three, or such a
    tuple; without a doc_id, all stand in one document.

    >>> merge_overlapping_spans([(30, 80), (0, 50)])
    [(0, 80)]
    >>> merge_overlapping_spans([("a", 0, 50), ("a", 50, 100), ("b", 0, 10)])
    [('a', 0, 100), ('b', 0, 10)]
    """
    held = [_span(span) for span in spans]
    documents = sorted({span.doc_id for span in held})
    order = sorted(held, key=lambda span: span.doc_id)
    (stretches,) = stretches_of(order)
    merged = stretches.merged
    make = _maker(spans)
    return [
        make(documents[text], start, end)
        for text, start, end in zip(
            merged.text.tolist(), merged.start.tolist(), merged.end.tolist(), strict=True
        )
    ]


def calculate_overlap(a: Sequence[AnySpan], b: Sequence[AnySpan]) -> int:
    """Return how many characters stand in both, after each is merged.

    >>> calculate_overlap([(0, 100)], [(50, 150)])
    50
    >>> calculate_overlap([("a", 0, 100)], [("b", 0, 100)])
    0
    """
    coverage = coverage_of([_span(span) for span in a], [_span(span) for span in b])
    return int(coverage.within(None).gold[0])


class _Place(NamedTuple):
    doc_id: str
    start: int
    end: int


def _span(span: AnySpan) -> _Place:
    if isinstance(span, tuple) and len(span) in (2, 3):
        place = _Place("", *span) if len(span) == 2 else _Place(*span)
    elif hasattr(span, "start") and hasattr(span, "end"):
        place = _Place(getattr(span, "doc_id", ""), span.start, span.end)
    else:
        raise InputError(
            f"{span!r} is no span",
            hint="give a list of (start, end), of (doc_id, start, end), or of spans as objects",
        )
    check_stretch(place.start, place.end)
    return place


def _maker(spans: Sequence[AnySpan]) -> Callable[[str, int, int], AnySpan]:
    """Return what makes spans of the kind that came in."""
    first = spans[0] if spans else ()
    if not isinstance(first, tuple):
        kind = type(first)
        return kind if hasattr(first, "doc_id") else lambda _, start, end: kind(start, end)
    return (lambda _, start, end: (start, end)) if len(first) == 2 else (lambda *place: place)
