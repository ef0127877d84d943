"""Runs given as Python dicts, checked but not converted to a table.

Scoring a dict with a million entries directly is several times faster than converting it to
a table first. A `Run` made from dicts therefore refers to the original dicts, which must not be
changed while it is in use, and builds its table only on demand.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from karat.data.frames import HAS_NUL
from karat.data.ranking import ranked_as_listed, ranked_by_score
from karat.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class DictRun:
    """The results of each query: dicts of scores, or sequences of ids in rank order."""

    by_query: dict[str, Any]
    scores: NDArray[np.float64] | None
    has_32_bit_scores: bool = False
    """Whether `scores` are the scores in `by_query` rounded to 32 bits."""

    @classmethod
    def of(cls, source: Mapping[Any, Any]) -> DictRun:
        """Check `{query: {item: score}}` or `{query: [item, …]}`."""
        by_query = text_keys(source, "query_id")
        if set(map(type, by_query.values())) == {dict}:  # a fast path for the usual case
            kinds = {"scores"}
        else:
            kinds = {_kind(items) or "ids" for items in by_query.values()}
        if len(kinds) > 1:
            raise InputError(
                "some queries have a dict of scores and others a list of ids",
                hint="use the same type for all queries",
            )
        if kinds == {"scores"}:
            by_query = text_items(by_query)
            return cls(by_query, _checked_scores(by_query))
        return cls({q: text_list(items) for q, items in by_query.items()}, None)

    def only(self, query_ids: Collection[str]) -> DictRun:
        """Return the results of the given queries."""
        part = DictRun.of({q: items for q, items in self.by_query.items() if q in query_ids})
        return part.with_32_bit_scores() if self.has_32_bit_scores else part

    def with_32_bit_scores(self) -> DictRun:
        """Return the same results with scores rounded to 32 bits, as trec_eval 9 keeps them."""
        scores = None if self.scores is None else to_32_bits(self.scores)
        return DictRun(self.by_query, scores, has_32_bit_scores=True)

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        """The number of items of each query, in the order of the dict."""
        return np.fromiter(map(len, self.by_query.values()), np.int64, len(self.by_query))

    def to_frame(self) -> pl.DataFrame:
        """Return the results as a table in rank order."""
        columns = {
            "query_id": repeat_query_ids(self.by_query, self.lengths),
            "item_id": pl.Series(
                "item_id", list(chain.from_iterable(self.by_query.values())), pl.String
            ),
        }
        if self.scores is None:
            return ranked_as_listed(pl.DataFrame(columns))
        return ranked_by_score(pl.DataFrame({**columns, "score": self.scores}))


def to_32_bits(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return scores rounded to 32 bits; those that are too large become infinite."""
    with np.errstate(over="ignore"):
        return scores.astype(np.float32).astype(np.float64)


def repeat_query_ids(keys: Collection[str], lengths: NDArray[np.int64]) -> pl.Series:
    """Return a column in which each query id is repeated once per row."""
    rows = np.repeat(np.arange(len(keys)), lengths)
    return pl.Series("query_id", list(keys), pl.String).gather(rows)


def has_plain_lists(source: Mapping[Any, Any]) -> bool:
    """Return whether every query has a dict of scores or a list of ids."""
    if set(map(type, source.values())) == {dict}:  # a fast path for the usual case
        values = map(dict.values, filter(None, source.values()))
        if set(map(type, map(next, map(iter, values)))) <= {float, int}:
            return True
    return all(_kind(items) is not None for items in source.values())


def _kind(items: Any) -> str | None:
    """Return "scores" or "ids", judging by the first entry, or None for anything else."""
    if isinstance(items, Mapping):
        value = next(iter(items.values()), None)
        return None if isinstance(value, (Mapping, list, tuple, np.ndarray)) else "scores"
    if isinstance(items, Sequence) and not isinstance(items, (str, bytes)):
        item = next(iter(items), "")
        return "ids" if isinstance(item, (str, int, np.integer)) else None
    return None


def text_id(value: Any, field: str) -> str:
    """Return an id as text: whole numbers become decimal strings, other types are an error."""
    if isinstance(value, str) and value:
        return value
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        return str(value)
    raise InputError(f"{value!r} is not an id", field=field, hint="use text or whole numbers")


def text_keys(mapping: Mapping[Any, Any], field: str) -> dict[str, Any]:
    """Return a dict with all keys as text; the same dict if they are text already."""
    if _all_text([mapping], field) and "" not in mapping:
        return mapping if isinstance(mapping, dict) else dict(mapping)
    by_text = {text_id(key, field): value for key, value in mapping.items()}
    if len(by_text) < len(mapping):
        raise InputError(
            "two ids are equal after conversion to text", field=field, hint="use one type of id"
        )
    return by_text


def text_items(by_query: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the dicts of all queries with text keys; the same dict if they are text already."""
    if all(issubclass(kind, dict) for kind in set(map(type, by_query.values()))) and (
        _all_text(by_query.values(), "item_id")
        and not any("" in items for items in by_query.values())
    ):
        return by_query
    return {query: text_keys(items, "item_id") for query, items in by_query.items()}


def _all_text(groups: Iterable[Iterable[Any]], field: str) -> bool:
    """Return whether all keys are text. `str.join` raises for other types and is the fastest."""
    try:
        for group in groups:
            joined = "".join(group)
            if not joined.isascii():
                joined.encode()
            if "\0" in joined:
                raise InputError(f"an id {HAS_NUL}", field=field, hint="use another id")
    except TypeError:
        return False
    except UnicodeEncodeError as error:
        raise InputError(
            f"an id contains a lone surrogate: {error.object[error.start]!r}",
            field=field,
            hint="decode the id as UTF-8 first",
        ) from error
    return True


def text_list(items: Sequence[Any]) -> Sequence[str]:
    """Return ids in a list as text."""
    if _all_text([items], "item_id") and "" not in items:
        return items
    return [text_id(item, "item_id") for item in items]


def _checked_scores(by_query: dict[str, dict[str, Any]]) -> NDArray[np.float64]:
    total = sum(map(len, by_query.values()))
    values = chain.from_iterable(map(dict.values, by_query.values()))
    try:
        scores = np.fromiter(values, np.float64, total)
        if not np.isnan(scores).any():
            return scores
    except (TypeError, ValueError, OverflowError):
        pass
    raise _score_error(by_query)


def _score_error(by_query: dict[str, dict[str, Any]]) -> InputError:
    for query, items in by_query.items():
        for item, score in items.items():
            try:
                is_number = not np.isnan(float(score))
            except (TypeError, ValueError, OverflowError):
                is_number = False
            if not is_number:
                return InputError(
                    f"query {query!r}, item {item!r}: {score!r} is not a number",
                    field="score",
                    hint="use numbers; remove items without a score",
                )
    raise AssertionError("all scores are numbers")
