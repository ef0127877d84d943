"""Judgments as Python dicts hold them, checked but not yet made into a table."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence, Set
from itertools import chain
from typing import Any

import numpy as np
import polars as pl

from karat.data.frames import LARGEST_GRADE
from karat.data.lists import repeated, text_id, text_items, text_keys, text_list
from karat.errors import InputError, KaratWarning, counted


def judgments_of(given: Mapping[Any, Any]) -> dict[str, dict[str, int]]:
    """Check `{query: {item: grade}}`, `{query: [item, …]}` (grade 1 each) or judgment objects."""
    by_query = text_keys(given, "query_id")
    if not set(map(type, by_query.values())) <= {dict}:
        by_query = {query: _graded(query, items) for query, items in by_query.items()}
    judged = text_items(by_query)
    grades = list(chain.from_iterable(map(dict.values, judged.values())))
    if set(map(type, grades)) <= {int}:
        different = set(grades)  # few, so that they are quickly compared
        if -LARGEST_GRADE < min(different, default=0) <= max(different, default=0) < LARGEST_GRADE:
            return judged
    return {
        query: {item: grade_of(query, item, grade) for item, grade in items.items()}
        for query, items in judged.items()
    }


def _graded(query: str, items: Any) -> Mapping[Any, Any]:
    if isinstance(items, Mapping):
        return items
    if isinstance(items, (Sequence, Set)) and not isinstance(items, (str, bytes)):
        listed = list(items)
        if listed and all(map(_is_judgment, listed)):
            return highest_grades(listed)
        return dict.fromkeys(text_list(listed), 1)
    raise InputError(
        f"query {query!r} holds a {type(items).__name__}",
        field="judgments",
        hint="give {query: {item: grade}}, {query: [item, …]} or {query: [judgment, …]}",
    )


def _is_judgment(item: Any) -> bool:
    return hasattr(item, "chunk_id") and hasattr(item, "grade")


def highest_grades(judgments: Iterable[Any]) -> dict[str, int]:
    """Return the grades of judgment objects; of a chunk judged twice the highest, with a warning.

    A judgment has a chunk_id and a grade, such as `karat.presets.graded.RelevanceJudgment`.
    """
    grades: dict[str, int] = {}
    repeated_chunks = []
    for judgment in judgments:
        chunk = text_id(judgment.chunk_id, "chunk_id")
        grade = grade_of(None, chunk, judgment.grade)
        if chunk in grades:
            repeated_chunks.append(chunk)
        grades[chunk] = max(grade, grades.get(chunk, grade))
    if repeated_chunks:
        warnings.warn(
            KaratWarning(
                f"{counted(len(repeated_chunks), 'judgment')} repeat a chunk that is judged "
                f"already, such as {repeated_chunks[0]!r}; the highest grade counts"
            ),
            stacklevel=4,
        )
    return grades


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
