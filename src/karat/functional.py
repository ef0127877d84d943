"""Plain functions for one query: measures of a ranked list, and operations on spans.

They return the same values as the measures of `karat.evaluate`: `precision_at_k` is `P@k`,
`recall_at_k` is `R@k`, `ndcg_at_k` is `nDCG@k`, `mrr` is `RR`, `average_precision` is `AP`, and
`hit_rate` is `Success@k`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from typing import Any

from karat.measures.single_query import (
    AnySpan,
    ParsedSpan,
    Relevant,
    coverage_of,
    parse_spans,
    span_list,
    value_of,
)


def precision_at_k(retrieved: Sequence[str], relevant: Relevant, k: int) -> float:
    """Return the precision of the top k (Manning et al. 2008, section 8.4).

    Parameters
    ----------
    retrieved : sequence of str
        The ids of the retrieved items, best first. Integers are converted to text.
    relevant : collection of str, or mapping of str to int
        The ids of the relevant items, or the grade of each judged item; grades of 1 and higher
        are relevant.
    k : int
        The cutoff, at least 1.

    Returns
    -------
    float
        Relevant items in the top k / k, even if fewer than k items were retrieved.

    Raises
    ------
    InputError
        If `k` is below 1, or an argument has the wrong type.

    Examples
    --------
    >>> precision_at_k(["a", "b"], ["a"], 5)
    0.2
    """
    return value_of("P", retrieved, relevant, k)


def recall_at_k(retrieved: Sequence[str], relevant: Relevant, k: int) -> float:
    """Return the recall of the top k (Manning et al. 2008, section 8.3).

    Parameters
    ----------
    retrieved : sequence of str
        The ids of the retrieved items, best first. Integers are converted to text.
    relevant : collection of str, or mapping of str to int
        The ids of the relevant items, or the grade of each judged item; grades of 1 and higher
        are relevant.
    k : int
        The cutoff, at least 1.

    Returns
    -------
    float
        Relevant items in the top k / all relevant items, or 0.0 if nothing is relevant.

    Raises
    ------
    InputError
        If `k` is below 1, or an argument has the wrong type.

    Examples
    --------
    >>> recall_at_k(["a", "x", "b"], ["a", "b"], 2)
    0.5
    """
    return value_of("R", retrieved, relevant, k)


def ndcg_at_k(retrieved: Sequence[str], relevant: Relevant, k: int) -> float:
    """Return the normalised discounted cumulative gain of the top k.

    The gain of an item is its grade, and the discount is log2(rank + 1), as in Järvelin and
    Kekäläinen 2002.

    Parameters
    ----------
    retrieved : sequence of str
        The ids of the retrieved items, best first. Integers are converted to text.
    relevant : collection of str, or mapping of str to int
        The ids of the relevant items, or the grade of each judged item; grades of 1 and higher
        are relevant.
    k : int
        The cutoff, at least 1.

    Returns
    -------
    float
        DCG@k / DCG@k of the best order, or 0.0 if nothing is relevant.

    Raises
    ------
    InputError
        If `k` is below 1, or an argument has the wrong type.

    Examples
    --------
    >>> round(ndcg_at_k(["a", "c", "b"], {"a": 2, "b": 1, "c": 0}, 3), 3)
    0.95
    """
    return value_of("nDCG", retrieved, relevant, k)


def mrr(retrieved: Sequence[str], relevant: Relevant, k: int | None = None) -> float:
    """Return the reciprocal rank of the first relevant item (Voorhees 1999).

    The mean over queries is the MRR.

    Parameters
    ----------
    retrieved : sequence of str
        The ids of the retrieved items, best first. Integers are converted to text.
    relevant : collection of str, or mapping of str to int
        The ids of the relevant items, or the grade of each judged item; grades of 1 and higher
        are relevant.
    k : int, optional
        The cutoff, at least 1. Default: the whole list.

    Returns
    -------
    float
        1 / rank of the first relevant item, or 0.0 if there is none in the top k.

    Raises
    ------
    InputError
        If `k` is below 1, or an argument has the wrong type.

    Examples
    --------
    >>> mrr(["x", "a"], ["a"])
    0.5
    """
    return value_of("RR", retrieved, relevant, k)


def average_precision(retrieved: Sequence[str], relevant: Relevant, k: int | None = None) -> float:
    """Return the average precision (Manning et al. 2008, section 8.4).

    The mean over queries is the MAP.

    Parameters
    ----------
    retrieved : sequence of str
        The ids of the retrieved items, best first. Integers are converted to text.
    relevant : collection of str, or mapping of str to int
        The ids of the relevant items, or the grade of each judged item; grades of 1 and higher
        are relevant.
    k : int, optional
        The cutoff, at least 1. Default: the whole list.

    Returns
    -------
    float
        The sum of precision at each relevant item in the top k / all relevant items, or 0.0 if
        nothing is relevant.

    Raises
    ------
    InputError
        If `k` is below 1, or an argument has the wrong type.

    Examples
    --------
    >>> round(average_precision(["a", "x", "b", "y"], ["a", "b"]), 4)
    0.8333
    """
    return value_of("AP", retrieved, relevant, k)


def hit_rate(retrieved: Sequence[str], relevant: Relevant, k: int) -> float:
    """Return whether a relevant item is in the top k.

    The mean over queries is the hit rate.

    Parameters
    ----------
    retrieved : sequence of str
        The ids of the retrieved items, best first. Integers are converted to text.
    relevant : collection of str, or mapping of str to int
        The ids of the relevant items, or the grade of each judged item; grades of 1 and higher
        are relevant.
    k : int
        The cutoff, at least 1.

    Returns
    -------
    float
        1.0 if a relevant item is in the top k, else 0.0.

    Raises
    ------
    InputError
        If `k` is below 1, or an argument has the wrong type.

    Examples
    --------
    >>> hit_rate(["x", "a"], ["a"], 2)
    1.0
    """
    return value_of("Success", retrieved, relevant, k)


def merge_overlapping_spans(spans: Sequence[AnySpan]) -> list[AnySpan]:
    """Merge spans of the same document that overlap or touch.

    Parameters
    ----------
    spans : sequence of spans
        Each span is a `(start, end)` tuple, a `(doc_id, start, end)` tuple, a dict with these keys,
        or an object with these attributes that can be constructed from them, such as
        `karat.presets.spans.CharacterSpan`. Spans are half-open, `[start, end)`. Either all spans
        have a document, or none has.

    Returns
    -------
    list of spans
        The merged spans, sorted by document and start; empty spans are removed. They have the type
        of the input spans, or are tuples if the types are mixed. Objects and dicts keep their
        `text` if the texts of the merged spans determine it without gaps or contradictions.

    Raises
    ------
    InputError
        If a span is not valid, or only some of the spans have a document.

    Examples
    --------
    >>> merge_overlapping_spans([(30, 80), (0, 50)])
    [(0, 80)]
    >>> merge_overlapping_spans([("a", 0, 50), ("a", 50, 100), ("b", 0, 10)])
    [('a', 0, 100), ('b', 0, 10)]
    """
    listed = span_list(spans, "spans")
    (parsed,) = parse_spans(spans=listed)
    make = _span_factory(listed)
    return [make(_merge(group)) for group in _overlapping_groups(parsed)]


def calculate_overlap(a: Sequence[AnySpan], b: Sequence[AnySpan]) -> int:
    """Return the number of characters that are in both lists of spans.

    Parameters
    ----------
    a, b : sequence of spans
        The spans, in the forms that `merge_overlapping_spans` accepts.

    Returns
    -------
    int
        The number of characters in both lists; each character counts once.

    Raises
    ------
    InputError
        If a span is not valid, or only some of the spans have a document.

    Examples
    --------
    >>> calculate_overlap([(0, 100)], [(50, 150)])
    50
    >>> calculate_overlap([("a", 0, 100)], [("b", 0, 100)])
    0
    """
    return int(coverage_of(*parse_spans(a=a, b=b)).within(None).gold[0])


def _overlapping_groups(spans: list[ParsedSpan]) -> list[list[ParsedSpan]]:
    """Group the spans that overlap or touch; empty spans are dropped."""
    groups: list[list[ParsedSpan]] = []
    group_end = 0
    not_empty = [span for span in spans if span.end > span.start]
    for span in sorted(not_empty, key=lambda span: (span.doc_id or "", span.start, -span.end)):
        if groups and groups[-1][0].doc_id == span.doc_id and span.start <= group_end:
            groups[-1].append(span)
            group_end = max(group_end, span.end)
        else:
            groups.append([span])
            group_end = span.end
    return groups


def _merge(group: list[ParsedSpan]) -> ParsedSpan:
    start, end = group[0].start, max(span.end for span in group)
    return ParsedSpan(group[0].doc_id, start, end, _merged_text(group, start, end))


def _merged_text(group: list[ParsedSpan], start: int, end: int) -> str | None:
    """Return the text of merged spans, or None if their texts do not determine it."""
    texts = {span.text for span in group}
    if len(texts) == 1 and all((span.start, span.end) == (start, end) for span in group):
        return texts.pop()
    merged = ""
    for span in group:
        if span.text is None or len(span.text) != span.end - span.start:
            continue
        shared = merged[span.start - start :]
        has_gap = span.start - start > len(merged)
        overlap = min(len(shared), len(span.text))
        if has_gap or shared[:overlap] != span.text[:overlap]:
            return None
        merged += span.text[overlap:]
    return merged if len(merged) == end - start else None


def _span_factory(spans: Sequence[AnySpan]) -> Callable[[ParsedSpan], AnySpan]:
    """Return a function that makes spans of the type of these spans."""
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
