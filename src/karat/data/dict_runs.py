"""Ranked lists as Python dicts hold them, checked but not yet made into a table.

A dict of a million entries is scored several times faster from the dict itself than by way of
a table, so a `Run` made from dicts keeps them (the very dicts: do not change them while it is in
use) and builds its table only if asked.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice, repeat
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from karat.data.frames import HAS_NUL
from karat.data.ranking import ranked_as_listed, ranked_by_score
from karat.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

_BLOCK = 64  # queries


@dataclass(frozen=True)
class DictRun:
    """What each query retrieved: dicts of scores, or sequences of ids in rank order."""

    by_query: dict[str, Any]
    scores: NDArray[np.float64] | None

    @classmethod
    def of(cls, given: Mapping[Any, Any]) -> DictRun:
        """Check `{query: {item: score}}` or `{query: [item, …]}` and take it as it is."""
        by_query = text_keys(given, "query_id")
        if set(map(type, by_query.values())) == {dict}:  # the usual case, told at once
            kinds = {"scores"}
        else:
            kinds = {_kind(items) or "ids" for items in by_query.values()}
        if len(kinds) > 1:
            raise InputError(
                "some queries hold a dict of scores and some a list of ids",
                hint="give every query the same kind",
            )
        if kinds == {"scores"}:
            return cls._of_scores(by_query)
        return cls({q: text_list(items) for q, items in by_query.items()}, None)

    @classmethod
    def _of_scores(cls, by_query: dict[str, Any]) -> DictRun:
        """Check ids and scores of a few queries at a time, while the cache holds them."""
        checked: dict[str, dict[str, Any]] = {}
        scores = []
        queries = iter(by_query.items())
        while block := dict(islice(queries, _BLOCK)):
            block = text_items(block)
            checked |= block
            scores.append(_checked_scores(block))
        return cls(checked, np.concatenate(scores))

    def only(self, query_ids: Collection[str]) -> DictRun:
        """Return the lists of some queries."""
        return DictRun.of({q: items for q, items in self.by_query.items() if q in query_ids})

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        """How many items each query retrieved, in the order of the dict."""
        return np.fromiter(map(len, self.by_query.values()), np.int64, len(self.by_query))

    def to_frame(self) -> pl.DataFrame:
        """Return the lists as a results table in rank order."""
        columns = {
            "query_id": repeat_query_ids(self.by_query, self.lengths),
            "item_id": pl.Series(
                "item_id", list(chain.from_iterable(self.by_query.values())), pl.String
            ),
        }
        if self.scores is None:
            return ranked_as_listed(pl.DataFrame(columns))
        return ranked_by_score(pl.DataFrame({**columns, "score": self.scores}))


def repeat_query_ids(keys: Collection[str], lengths: NDArray[np.int64]) -> pl.Series:
    """Return each query's id as often as it has rows."""
    rows = np.repeat(np.arange(len(keys)), lengths)
    return pl.Series("query_id", list(keys), pl.String).gather(rows)


def has_plain_lists(given: Mapping[Any, Any]) -> bool:
    """Tell whether every query has a dict of scores or a list of ids, which need no reading."""
    if set(map(type, given.values())) == {dict}:  # the usual case, told at once
        values = map(dict.values, filter(None, given.values()))
        if set(map(type, map(next, map(iter, values)))) <= {float, int}:
            return True
    return all(_kind(items) is not None for items in given.values())


def _kind(items: Any) -> str | None:
    """Return whether these are scores or ids, told by the first; None for anything else."""
    if isinstance(items, Mapping):
        value = next(iter(items.values()), None)
        return None if isinstance(value, (Mapping, list, tuple, np.ndarray)) else "scores"
    if isinstance(items, Sequence) and not isinstance(items, (str, bytes)):
        item = next(iter(items), "")
        return "ids" if isinstance(item, (str, int, np.integer)) else None
    return None


def text_id(value: Any, field: str) -> str:
    """Return an id as text: whole numbers become decimal, anything else is refused."""
    if isinstance(value, str) and value:
        return value
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        return str(value)
    raise InputError(f"{value!r} is no id", field=field, hint="ids are text or whole numbers")


def text_keys(given: Mapping[Any, Any], field: str) -> dict[str, Any]:
    """Return a dict with its keys as text; one that has only such keys is taken as it is."""
    if _all_text([given], field) and "" not in given:
        return given if isinstance(given, dict) else dict(given)
    texts = {text_id(key, field): value for key, value in given.items()}
    if len(texts) < len(given):
        raise InputError(
            "two ids are the same once they are text", field=field, hint="use one type of id"
        )
    return texts


def text_items(by_query: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Make the items of every query a dict with text keys, which most are already."""
    if all(issubclass(kind, dict) for kind in set(map(type, by_query.values()))) and (
        _all_text(by_query.values(), "item_id")
        and not any(map(dict.__contains__, by_query.values(), repeat("")))
    ):
        return by_query
    return {query: text_keys(items, "item_id") for query, items in by_query.items()}


def _all_text(groups: Iterable[Iterable[Any]], field: str) -> bool:
    """Tell whether all keys are text: joining refuses anything else, and is the fastest way."""
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
            f"{error.object[error.start]!r} is half a character (a lone surrogate)",
            field=field,
            hint="decode the id as UTF-8 before it comes here",
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
                fine = not np.isnan(float(score))
            except (TypeError, ValueError, OverflowError):
                fine = False
            if not fine:
                return InputError(
                    f"query {query!r}, item {item!r}: {score!r} is not a number",
                    field="score",
                    hint="write numbers; drop items that have no score",
                )
    raise AssertionError("no score is at fault")
