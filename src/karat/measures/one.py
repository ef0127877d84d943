"""One query at a time: the declared kernels on a list and its grades, without any table."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

import numpy as np

from karat.data.frames import PLACE_HINT
from karat.data.judgments import grade_of
from karat.errors import InputError
from karat.match.hits import Hits, Places, ideal
from karat.match.spans import Coverage
from karat.match.stretches import Stretches
from karat.measures.declare import REGISTRY
from karat.measures.names import settle

Relevant = Collection[str] | Mapping[str, int]


def hits_of(retrieved: Sequence[str], relevant: Relevant) -> Hits:
    """Build the hits of one query."""
    for name, given in (("retrieved", retrieved), ("relevant", relevant)):
        if isinstance(given, (str, bytes)):
            raise InputError("this is one text", field=name, hint="give ids in a list")
    if isinstance(relevant, Mapping):
        grades = {item: grade_of(None, item, grade) for item, grade in relevant.items()}
    else:
        grades = dict.fromkeys(relevant, 1)
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
        ideal(1, np.zeros(gold.size, np.int64), gold),
        np.array([len(retrieved)]),
    )


def value(name: str, hits: Hits, k: int | None = None, **params: object) -> float:
    """Return a declared measure of one query's hits."""
    if k is not None and (isinstance(k, bool) or not isinstance(k, (int, np.integer)) or k < 1):
        raise InputError(f"k is {k!r}", field="k", hint="k is a whole number from 1 up")
    measure = settle(REGISTRY[name], None if k is None else int(k), dict(params))
    return float(measure.declaration.kernel(hits, measure.cutoff, **measure.params)[0])


def value_of(name: str, retrieved: Sequence[str], relevant: Relevant, k: int | None) -> float:
    """Return a declared measure of one list."""
    return value(name, hits_of(retrieved, relevant), k)


class Span(Protocol):
    """A stretch of a document, whatever class holds it."""

    @property
    def doc_id(self) -> str:
        """The document it stands in."""

    @property
    def start(self) -> int:
        """Where it begins."""

    @property
    def end(self) -> int:
        """Where it ends, itself not included."""


def check_stretch(start: int, end: int) -> None:
    """Refuse a start or an end that marks no stretch of text."""
    if not 0 <= start <= end:
        raise InputError(f"[{start}, {end}) is no stretch of text", field="start", hint=PLACE_HINT)


def coverage_of(retrieved: Sequence[Span], gold: Sequence[Span]) -> Coverage:
    """Build the coverage of one query, items in rank order."""
    items, wanted = stretches_of(retrieved, gold)
    size = items.text.size
    return Coverage(
        Places(1, np.zeros(size, np.int64), np.arange(1, size + 1), np.zeros(size, np.int64)),
        items,
        wanted,
        np.zeros(wanted.text.size, np.int64),
        np.ones(1, np.bool_),
    )


def stretches_of(*lists: Sequence[Span]) -> tuple[Stretches, ...]:
    """Make stretches of several lists of spans, their documents numbered alike."""
    documents = {span.doc_id: None for spans in lists for span in spans}
    number = {document: at for at, document in enumerate(documents)}
    return tuple(
        Stretches(
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


def _places(ranked: list[tuple[int, int]]) -> Places:
    rank, grade = np.array(ranked, np.int64).reshape(-1, 2).T
    return Places(1, np.zeros(rank.size, np.int64), rank, grade)
