"""Judgments as Python dicts hold them, checked but not yet made into a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from itertools import chain
from typing import Any

import numpy as np
import polars as pl

from karat.data.lists import repeated, text_items, text_keys, text_list
from karat.errors import InputError

LARGEST_GRADE = 1 << 31  # no grade is that large, and sums of such grades would not be exact


def judgments_of(given: Mapping[Any, Any]) -> dict[str, dict[str, int]]:
    """Check `{query: {item: grade}}` or `{query: [item, …]}` (grade 1 each)."""
    by_query = text_keys(given, "query_id")
    if not set(map(type, by_query.values())) <= {dict}:
        by_query = {query: _graded(query, items) for query, items in by_query.items()}
    judged = text_items(by_query)
    grades = list(chain.from_iterable(map(dict.values, judged.values())))
    if set(map(type, grades)) <= {int} and (
        -LARGEST_GRADE < min(grades, default=0) <= max(grades, default=0) < LARGEST_GRADE
    ):
        return judged
    return {
        query: {item: grade_of(query, item, grade) for item, grade in items.items()}
        for query, items in judged.items()
    }


def _graded(query: str, items: Any) -> Mapping[Any, Any]:
    if isinstance(items, Mapping):
        return items
    if isinstance(items, (Sequence, Set)) and not isinstance(items, (str, bytes)):
        return dict.fromkeys(text_list(list(items)), 1)
    raise InputError(
        f"query {query!r} holds a {type(items).__name__}",
        field="judgments",
        hint="give {query: {item: grade}} or {query: [item, …]}",
    )


def grade_of(query: str | None, item: str, grade: Any) -> int:
    """Return a grade as a whole number, or say which is not one."""
    whole = isinstance(grade, (int, np.integer)) or (
        isinstance(grade, float) and grade.is_integer()
    )
    if whole and abs(grade) < LARGEST_GRADE:
        return int(grade)
    place = "" if query is None else f"query {query!r}, "
    what = "is too large to be a grade" if whole else "is no integer"
    raise InputError(
        f"{place}item {item!r}: {grade!r} {what}",
        field="grade",
        hint="write grades as whole numbers; if this is a run, gold and run may be swapped",
    )


def judgments_frame(judged: Mapping[str, Mapping[str, int]]) -> pl.DataFrame:
    """Return checked judgments as a table."""
    lengths = np.fromiter(map(len, judged.values()), np.int64, len(judged))
    return pl.DataFrame(
        {
            "query_id": repeated(judged, lengths),
            "item_id": pl.Series(list(chain.from_iterable(judged.values())), dtype=pl.String),
            "grade": pl.Series(
                list(chain.from_iterable(map(dict.values, judged.values()))),  # type: ignore[arg-type]
                dtype=pl.Int64,
            ),
        }
    )
