"""One query at a time: the declared kernels on a list and its grades, without any table."""

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
"""(start, end), (doc_id, start, end), a dict or an object with doc_id, start and end."""
_SPANS = "give a list of (start, end), of (doc_id, start, end), or of objects with these three"


def ids_of(given: Iterable[Any], field: str) -> Sequence[str]:
    """Check a list of ids; ids are text, and whole numbers become text."""
    items = _listed(given, field, "give ids in a list")
    try:
        return text_list(items)
    except InputError as error:
        error.field = field
        raise


def _listed(given: Iterable[Any], field: str, hint: str) -> list[Any]:
    if isinstance(given, (str, bytes)):
        raise InputError("this is one text", field=field, hint=hint)
    try:
        return list(given)
    except TypeError:
        raise InputError(f"{given!r} is not a list", field=field, hint=hint) from None


def hits_of(retrieved: Iterable[str], relevant: Relevant) -> Hits:
    """Build the hits of one query; ids are text, and whole numbers become text."""
    retrieved = ids_of(retrieved, "retrieved")
    if isinstance(relevant, Mapping):
        relevant = text_keys(relevant, "relevant")
        grades = {item: check_grade(None, item, grade) for item, grade in relevant.items()}
    else:
        grades = dict.fromkeys(ids_of(relevant, "relevant"), 1)
    found: list[tuple[int, int]] = []
    repeats: list[tuple[int, int]] = []
    seen: set[str] = set()
    for rank, item in enumerate(retrieved, 1):
        if item in seen:
            repeats.append((rank, grades.get(item, -1)))
        elif item in grades:
            found.append((rank, grades[item]))
        seen.add(item)
    gold = np.fromiter(grades.values(), np.int64, len(grades))
    return Hits(
        _places(found),
        _places(repeats),
        ideal_rows(1, np.zeros(gold.size, np.int64), gold),
        np.array([len(retrieved)]),
    )


def value(name: str, hits: Hits, k: int | None = None, **params: object) -> float:
    """Return a declared measure of one query's hits."""
    cutoff = None if k is None else checked_cutoff(k)
    measure = resolve_measure(REGISTRY[name], cutoff, dict(params))
    return float(measure.declaration.kernel(hits, measure.cutoff, **measure.params)[0])


def checked_cutoff(k: Any) -> int:
    """Return a cutoff, or refuse what is not an integer of at least 1."""
    return checks.integer(k, "k", least=1)


def value_of(name: str, retrieved: Sequence[str], relevant: Relevant, k: int | None) -> float:
    """Return a declared measure of one list."""
    return value(name, hits_of(retrieved, relevant), k)


class Span(NamedTuple):
    """A stretch of a document; its document is None where no span of a query has one."""

    doc_id: str | None
    start: int
    end: int
    text: str | None = None


def check_span(doc_id: Any, start: Any, end: Any) -> None:
    """Refuse a document that is not an id, and offsets that do not mark a stretch of text."""
    text_id(doc_id, "doc_id")
    _check_offsets(start, end)


def _check_offsets(start: Any, end: Any) -> None:
    for field, offset in (("start", start), ("end", end)):
        if isinstance(offset, bool) or not isinstance(offset, (int, np.integer)):
            raise InputError(f"{offset!r} is not a whole number", field=field, hint=OFFSETS_HINT)
    if not 0 <= start <= end:
        raise InputError(
            f"[{start}, {end}) is no stretch of text", field="start", hint=OFFSETS_HINT
        )


def spans_of(**lists: Iterable[AnySpan]) -> tuple[list[Span], ...]:
    """Read lists of spans in any form; either all of the spans have a document, or none has."""
    read = tuple(
        [_span(span) for span in listed_spans(given, name)] for name, given in lists.items()
    )
    if len({span.doc_id is None for spans in read for span in spans}) > 1:
        raise InputError(
            "some spans have a document and some do not",
            field="doc_id",
            hint="name the document of every span; (start, end) is for spans of one document",
        )
    return read


def listed_spans(given: Iterable[AnySpan], field: str) -> list[AnySpan]:
    """Return spans as a list, unread; a text is not a list of spans."""
    return _listed(given, field, _SPANS)


def _span(span: AnySpan) -> Span:
    if isinstance(span, tuple) and len(span) == 2:
        start, end = span
        _check_offsets(start, end)
        return Span(None, int(start), int(end))
    if isinstance(span, tuple) and len(span) == 3:
        values = dict(zip(("doc_id", "start", "end"), span, strict=True))
    elif isinstance(span, Mapping):
        values = dict(span)
    else:
        names = ("doc_id", "start", "end", "text")
        values = {name: getattr(span, name) for name in names if hasattr(span, name)}
    if "start" not in values or "end" not in values:
        raise InputError(f"{span!r} is no span", hint=_SPANS)
    if "doc_id" not in values:
        raise InputError(
            f"{span!r} does not name its document",
            field="doc_id",
            hint="call it doc_id; spans of one document may be given as (start, end)",
        )
    check_span(values["doc_id"], values["start"], values["end"])
    text = values.get("text")
    return Span(
        text_id(values["doc_id"], "doc_id"),
        int(values["start"]),
        int(values["end"]),
        text if isinstance(text, str) else None,
    )


def coverage_of(retrieved: Sequence[Span], gold: Sequence[Span]) -> Coverage:
    """Build the coverage of one query, items in rank order."""
    items, wanted = stretches_of(retrieved, gold)
    size = items.text.size
    return Coverage(
        RankedRows(1, np.zeros(size, np.int64), np.arange(1, size + 1), np.zeros(size, np.int64)),
        items,
        wanted,
        np.zeros(wanted.text.size, np.int64),
        np.ones(1, np.bool_),
    )


def stretches_of(*lists: Sequence[Span]) -> tuple[Intervals, ...]:
    """Make stretches of several lists of spans, their documents numbered alike."""
    documents = {span.doc_id: None for spans in lists for span in spans}
    number = {document: at for at, document in enumerate(documents)}
    return tuple(
        Intervals(
            *(
                np.array(column, np.int64)
                for column in (
                    [number[span.doc_id] for span in spans],
                    [span.start for span in spans],
                    [span.end for span in spans],
                )
            )
        )
        for spans in lists
    )


def span_value(name: str, coverage: Coverage, k: int | None = None) -> float:
    """Return a declared span measure of one query."""
    return float(REGISTRY[name].kernel(coverage, k)[0])


def _places(ranked: list[tuple[int, int]]) -> RankedRows:
    rank, grade = np.array(ranked, np.int64).reshape(-1, 2).T
    return RankedRows(1, np.zeros(rank.size, np.int64), rank, grade)
