"""One query at a time: the declared kernels on a list and its grades, without any table."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from karat.data.judgments import grade_of
from karat.errors import InputError
from karat.match.hits import Hits, Places, ideal
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


def _places(ranked: list[tuple[int, int]]) -> Places:
    rank, grade = np.array(ranked, np.int64).reshape(-1, 2).T
    return Places(1, np.zeros(rank.size, np.int64), rank, grade)
