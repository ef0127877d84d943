"""Plain functions for one query: a ranked list of ids, and what is relevant.

`relevant` is a collection of ids, or a dict from id to grade. Each function is the measure of
the same name, called on one query; k < 1 is an InputError.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from typing import Any

from karat.measures.single_query import (
    AnySpan,
    Relevant,
    ParsedSpan,
    coverage_of,
    span_list,
    parse_spans,
    value_of,
)


def precision_at_k(retrieved: Sequence[str], relevant: Relevant, k: int) -> float:
    """Return relevant items in the top k / k (Manning et al. 2008, section 8.4).

    >>> precision_at_k(["a", "b"], ["a"], 5)
    0.2
    """
    return value_of("P", retrieved, relevant, k)


def recall_at_k(retrieved: Sequence[str], relevant: Relevant, k: int) -> float:
    """Return relevant items in the top k / all relevant items (Manning et al. 2008, section 8.3).

    >>> recall_at_k(["a", "x", "b"], ["a", "b"], 2)
    0.5
    """
    return value_of("R", retrieved, relevant, k)


def ndcg_at_k(retrieved: Sequence[str], relevant: Relevant, k: int) -> float:
    """Return DCG@k / the DCG@k of the best order, gain = grade, discount log2(rank + 1).

    The measure is from Järvelin and Kekäläinen 2002.

    >>> round(ndcg_at_k(["a", "c", "b"], {"a": 2, "b": 1, "c": 0}, 3), 3)
    0.95
    """
    return value_of("nDCG", retrieved, relevant, k)


def mrr(retrieved: Sequence[str], relevant: Relevant, k: int | None = None) -> float:
    """Return 1 / rank of the first relevant item, 0 if there is none (Voorhees 1999).

    >>> mrr(["x", "a"], ["a"])
    0.5
    """
    return value_of("RR", retrieved, relevant, k)


def average_precision(retrieved: Sequence[str], relevant: Relevant, k: int | None = None) -> float:
    """Return the sum of precision at each relevant item / all relevant items.

    Its mean over queries is MAP (Manning et al. 2008, section 8.4).

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
    """Join spans of one document that overlap or touch, sorted by document and start.

    Parameters
    ----------
    spans
        `(start, end)` tuples of one document, `(doc_id, start, end)` tuples, dicts with these
        keys, or objects with these attributes that can be made from them, such as
        `karat.presets.spans.CharacterSpan`. Spans with and without a document do not mix.

    Returns
    -------
    Spans of the kind that was given, or tuples where kinds were mixed. Objects and dicts keep
    their `text` where the texts of the joined spans give it without a gap or contradiction.

    >>> merge_overlapping_spans([(30, 80), (0, 50)])
    [(0, 80)]
    >>> merge_overlapping_spans([("a", 0, 50), ("a", 50, 100), ("b", 0, 10)])
    [('a', 0, 100), ('b', 0, 10)]
    """
    given = span_list(spans, "spans")
    (read,) = parse_spans(spans=given)
    make = _maker(given)
    return [make(_joined(group)) for group in _groups(read)]


def _groups(spans: list[ParsedSpan]) -> list[list[ParsedSpan]]:
    """Return the spans that hold characters, those that overlap or touch together."""
    groups: list[list[ParsedSpan]] = []
    reached = 0
    with_characters = [span for span in spans if span.end > span.start]
    for span in sorted(with_characters, key=lambda s: (s.doc_id or "", s.start, -s.end)):
        if groups and groups[-1][0].doc_id == span.doc_id and span.start <= reached:
            groups[-1].append(span)
            reached = max(reached, span.end)
        else:
            groups.append([span])
            reached = span.end
    return groups


def _joined(group: list[ParsedSpan]) -> ParsedSpan:
    """Return the span that a group makes, with its text where that is certain."""
    start, end = group[0].start, max(span.end for span in group)
    texts = {span.text for span in group}
    if len(texts) == 1 and all((span.start, span.end) == (start, end) for span in group):
        return ParsedSpan(group[0].doc_id, start, end, texts.pop())
    text = ""
    for span in group:
        if span.text is None or len(span.text) != span.end - span.start:
            continue
        known = text[span.start - start :]
        gap = span.start - start > len(text)
        overlap = min(len(known), len(span.text))
        if gap or known[:overlap] != span.text[:overlap]:
            return ParsedSpan(group[0].doc_id, start, end)
        text += span.text[overlap:]
    return ParsedSpan(group[0].doc_id, start, end, text if len(text) == end - start else None)


def calculate_overlap(a: Sequence[AnySpan], b: Sequence[AnySpan]) -> int:
    """Return how many characters are in both lists of spans, each counted once.

    Both take spans as `merge_overlapping_spans` does.

    >>> calculate_overlap([(0, 100)], [(50, 150)])
    50
    >>> calculate_overlap([("a", 0, 100)], [("b", 0, 100)])
    0
    """
    return int(coverage_of(*parse_spans(a=a, b=b)).within(None).gold[0])


def _maker(spans: Sequence[AnySpan]) -> Callable[[ParsedSpan], AnySpan]:
    """Return what makes spans of the kind that was given."""
    kinds = {type(span) for span in spans}
    kind: Any = kinds.pop() if len(kinds) == 1 else tuple
    if issubclass(kind, tuple):
        return lambda span: span[:3] if span.doc_id is not None else span[1:3]
    if issubclass(kind, Mapping):
        return lambda span: {
            name: value for name, value in span._asdict().items() if value is not None
        }
    if "text" in signature(kind).parameters:
        return lambda span: kind(span.doc_id, span.start, span.end, text=span.text)
    return lambda span: kind(span.doc_id, span.start, span.end)
