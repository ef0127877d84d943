"""Measures of one query, from plain lists, dicts and spans instead of tables."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from karat import checks
from karat.data.dict_runs import text_id, text_keys, text_list
from karat.data.frames import OFFSETS_HINT
from karat.data.gold_tables import check_grade
from karat.errors import InputError
from karat.match.hits import Hits, RankedRows, ideal_rows
from karat.match.span_intervals import Intervals
from karat.match.spans import Coverage
from karat.measures.name_parser import resolve_measure
from karat.measures.registry import REGISTRY

Relevant = Collection[str] | Mapping[str, int]
AnySpan = Any
"""(start, end), (doc_id, start, end), or a dict or an object with doc_id, start and end."""
_SPANS_HINT = "pass a list of (start, end), (doc_id, start, end), or objects with these attributes"


def parse_ids(ids: Iterable[Any], field: str) -> Sequence[str]:
    """Check a list of ids; ids are text, and integers become text."""
    items = _to_list(ids, field, "pass a list of ids")
    try:
        return text_list(items)
    except InputError as error:
        error.field = field
        raise


def _to_list(values: Iterable[Any], field: str, hint: str) -> list[Any]:
    if isinstance(values, (str, bytes)):
        raise InputError(f"must be a list, got the text {values!r}", field=field, hint=hint)
    try:
        return list(values)
    except TypeError:
        raise InputError(f"must be a list, got {values!r}", field=field, hint=hint) from None


def hits_of(retrieved: Iterable[str], relevant: Relevant) -> Hits:
    """Return the hits of one query; ids are text, and integers become text."""
    retrieved = parse_ids(retrieved, "retrieved")
    if isinstance(relevant, Mapping):
        relevant = text_keys(relevant, "relevant")
        grades = {item: check_grade(None, item, grade) for item, grade in relevant.items()}
    else:
        grades = dict.fromkeys(parse_ids(relevant, "relevant"), 1)
    ranked_grades: list[tuple[int, int]] = []
    repeats: list[tuple[int, int]] = []
    seen: set[str] = set()
    for rank, item in enumerate(retrieved, 1):
        if item in seen:
            repeats.append((rank, grades.get(item, -1)))
        elif item in grades:
            ranked_grades.append((rank, grades[item]))
        seen.add(item)
    gold = np.fromiter(grades.values(), np.int64, len(grades))
    return Hits(
        _ranked_rows(ranked_grades),
        _ranked_rows(repeats),
        ideal_rows(1, np.zeros(gold.size, np.int64), gold),
        np.array([len(retrieved)]),
    )


def value(name: str, hits: Hits, k: int | None = None, **params: object) -> float:
    """Return the value of a measure for the hits of one query."""
    cutoff = None if k is None else checked_cutoff(k)
    measure = resolve_measure(REGISTRY[name], cutoff, dict(params))
    return float(measure.declaration.kernel(hits, measure.cutoff, **measure.params)[0])


def checked_cutoff(k: Any) -> int:
    """Return a cutoff, which must be an integer of at least 1."""
    return checks.integer(k, "k", least=1)


def value_of(name: str, retrieved: Sequence[str], relevant: Relevant, k: int | None) -> float:
    """Return the value of a measure for one list."""
    return value(name, hits_of(retrieved, relevant), k)


class ParsedSpan(NamedTuple):
    """A span of a document; `doc_id` is None if the spans of a query name no documents."""

    doc_id: str | None
    start: int
    end: int
    text: str | None = None


def check_span(doc_id: Any, start: Any, end: Any) -> None:
    """Raise an InputError if `doc_id` is not an id, or the offsets are not valid."""
    text_id(doc_id, "doc_id")
    _check_offsets(start, end)


def _check_offsets(start: Any, end: Any) -> None:
    for field, offset in (("start", start), ("end", end)):
        if isinstance(offset, bool) or not isinstance(offset, (int, np.integer)):
            raise InputError(f"must be an integer, got {offset!r}", field=field, hint=OFFSETS_HINT)
    if not 0 <= start <= end:
        raise InputError(
            f"0 ≤ start ≤ end is required, got [{start}, {end})", field="start", hint=OFFSETS_HINT
        )


def parse_spans(**lists: Iterable[AnySpan]) -> tuple[list[ParsedSpan], ...]:
    """Parse lists of spans in any form; either all spans name a document, or none does."""
    parsed = tuple(
        [_parse_span(span) for span in span_list(spans, name)] for name, spans in lists.items()
    )
    if len({span.doc_id is None for spans in parsed for span in spans}) > 1:
        raise InputError(
            "some spans have a document and some do not",
            field="doc_id",
            hint="give every span a doc_id; use (start, end) only if all spans are in one document",
        )
    return parsed


def span_list(spans: Iterable[AnySpan], field: str) -> list[AnySpan]:
    """Return spans as a list, not parsed yet; a text is not a list of spans."""
    return _to_list(spans, field, _SPANS_HINT)


def _parse_span(span: AnySpan) -> ParsedSpan:
    if isinstance(span, tuple) and len(span) == 2:
        start, end = span
        _check_offsets(start, end)
        return ParsedSpan(None, int(start), int(end))
    if isinstance(span, tuple) and len(span) == 3:
        values = dict(zip(("doc_id", "start", "end"), span, strict=True))
    elif isinstance(span, Mapping):
        values = dict(span)
    else:
        names = ("doc_id", "start", "end", "text")
        values = {name: getattr(span, name) for name in names if hasattr(span, name)}
    if "start" not in values or "end" not in values:
        raise InputError(f"expected a span, got {span!r}", hint=_SPANS_HINT)
    if "doc_id" not in values:
        raise InputError(
            f"the span {span!r} has no doc_id",
            field="doc_id",
            hint="add doc_id; spans of a single document can be written as (start, end)",
        )
    check_span(values["doc_id"], values["start"], values["end"])
    text = values.get("text")
    return ParsedSpan(
        text_id(values["doc_id"], "doc_id"),
        int(values["start"]),
        int(values["end"]),
        text if isinstance(text, str) else None,
    )


def coverage_of(retrieved: Sequence[ParsedSpan], gold: Sequence[ParsedSpan]) -> Coverage:
    """Return the coverage of one query; `retrieved` is in rank order."""
    items, gold_intervals = intervals_of(retrieved, gold)
    size = items.text.size
    return Coverage(
        RankedRows(1, np.zeros(size, np.int64), np.arange(1, size + 1), np.zeros(size, np.int64)),
        items,
        gold_intervals,
        np.zeros(gold_intervals.text.size, np.int64),
        np.ones(1, np.bool_),
    )


def intervals_of(*lists: Sequence[ParsedSpan]) -> tuple[Intervals, ...]:
    """Return each list of spans as arrays, with the same document numbers in all of them."""
    documents = dict.fromkeys(span.doc_id for spans in lists for span in spans)
    number = {document: at for at, document in enumerate(documents)}
    return tuple(
        Intervals(
            np.array([number[span.doc_id] for span in spans], np.int64),
            np.array([span.start for span in spans], np.int64),
            np.array([span.end for span in spans], np.int64),
        )
        for spans in lists
    )


def span_value(name: str, coverage: Coverage, k: int | None = None) -> float:
    """Return the value of a span measure for one query."""
    return float(REGISTRY[name].kernel(coverage, k)[0])


def _ranked_rows(ranked_grades: list[tuple[int, int]]) -> RankedRows:
    rank, grade = np.array(ranked_grades, np.int64).reshape(-1, 2).T
    return RankedRows(1, np.zeros(rank.size, np.int64), rank, grade)
