"""The lists of all queries side by side, made of flat columns when they are asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, overload

import numpy as np
import polars as pl

from karat.evaluation.page.outcomes import relevant_from, sought
from karat.evaluation.page.shown import HITS, Shown
from karat.measures.declare import Family
from karat.report.calculation import TOP
from karat.report.page.model import Json

MOST_WANTED = 50
"""How many relevant items of a query are named at most."""


class RankedLists(Sequence[Json]):
    """One a query: what each run returned, what of it was found, and what should have been.

    A run that is not at hand has an empty list.
    """

    def __init__(self, runs: Sequence[Shown | None]) -> None:
        shown = next(run for run in runs if run is not None)
        self._n = n = shown.opened.session.prepared.query_ids.len()
        self._items, self._places = _side_by_side(runs, n)
        self._hits = [
            _Columns(pl.DataFrame(schema=HITS) if run is None else run.hits.select(*HITS), n)
            for run in runs
        ]
        self._lengths = [[0] * n if run is None else run.length.tolist() for run in runs]
        self._wanted = _Columns(_wanted(shown), n)
        self._counts = _counts(shown)

    def __len__(self) -> int:
        return self._n

    @overload
    def __getitem__(self, query: int) -> Json: ...
    @overload
    def __getitem__(self, query: slice) -> list[Json]: ...
    def __getitem__(self, query: int | slice) -> Json | list[Json]:
        numbers = range(self._n)[query]
        if isinstance(numbers, int):
            return self._between(numbers, numbers + 1)[0]
        if numbers.step != 1:
            return [self[number] for number in numbers]
        return self._between(numbers.start, numbers.stop)

    def _between(self, first: int, stop: int) -> list[Json]:
        """Return the lists of neighbouring queries, since it pays to take many at once."""
        lists: list[Json] = [
            {"items": items, "lists": [], "below": [], "n": [], "hits": []}
            for (items,) in self._items.between(first, stop)
        ]
        for places, hits, lengths in zip(self._places, self._hits, self._lengths, strict=True):
            each = zip(
                lists,
                places.between(first, stop),
                hits.between(first, stop),
                lengths[first:stop],
                strict=True,
            )
            for listed, (ranks, items), found, length in each:
                top = min(length, TOP)
                listed["lists"].append(items[:top])
                listed["below"].append(_rows(ranks[top:], items[top:]))
                listed["n"].append(length)
                listed["hits"].append(_rows(*found))
        for listed, wanted in zip(lists, self._wanted.between(first, stop), strict=True):
            listed["wanted"] = _rows(*wanted)
        for number, listed in enumerate(lists, first):
            counts = {kind: counts[number] for kind, counts in self._counts.items()}
            listed["n_wanted"] = {kind: count for kind, count in counts.items() if count >= 0}
        return lists


def _rows(*columns: list[Any]) -> list[list[Any]]:
    return list(map(list, zip(*columns, strict=True)))


class _Columns:
    """A table sorted by query, cut by query when asked for."""

    def __init__(self, table: pl.DataFrame, n_queries: int) -> None:
        self._bounds = np.searchsorted(table["query"].to_numpy(), np.arange(n_queries + 1)).tolist()
        self._columns = table.drop("query").get_columns()

    def between(self, first: int, stop: int) -> Iterator[list[list[Any]]]:
        """Yield for each of some neighbouring queries its part of every column."""
        bounds = self._bounds[first : stop + 1]
        begin, end = bounds[0], bounds[-1]
        columns = [column[begin:end].to_list() for column in self._columns]
        for start, end in pairwise(bounds):
            yield [column[start - begin : end - begin] for column in columns]


def _side_by_side(runs: Sequence[Shown | None], n_queries: int) -> tuple[_Columns, list[_Columns]]:
    """Return the different items of each query, and the places of each run with their numbers.

    Items are numbered within their query, in the order in which they first come up.
    """
    parts = [run.places for run in runs if run is not None]
    at_hand = np.array([run is not None for run in runs])
    every = pl.concat(parts).select("query", "rank", "key", "label")
    whose = np.repeat(np.flatnonzero(at_hand), [part.height for part in parts])
    order = np.argsort(every["query"].to_numpy(), kind="stable")
    every, whose = every[order], whose[order]
    query = every["query"].to_numpy()
    code = every["key"].cast(pl.Categorical).to_physical().to_numpy().astype(np.int64)
    pairs = query * (int(code.max(initial=0)) + 1) + code
    _, first, which = np.unique(pairs, return_index=True, return_inverse=True)
    by_first = np.argsort(first)
    number = np.empty_like(by_first)
    number[by_first] = np.arange(first.size)
    leads = first[by_first]
    item = number[which] - np.searchsorted(query[leads], query)
    items = every.select("query", "label")[leads]
    placed = every.select("query", "rank").with_columns(item=item)
    places = [_Columns(placed.filter(whose == at), n_queries) for at in range(len(runs))]
    return _Columns(items, n_queries), places


def _wanted(shown: Shown) -> pl.DataFrame:
    """Return the relevant items of each query, the highest grades first."""
    if "rank" not in shown.families:
        return pl.DataFrame(schema={"query": pl.Int64, "item_id": pl.String, "grade": pl.Int64})
    judged = shown.opened.session.prepared.table.select("query", "item_id", "grade")
    relevant = judged.filter(pl.col("grade") >= relevant_from(shown.measure))
    ordered = relevant.sort("query", "grade", "item_id", descending=[False, True, False])
    return ordered.group_by("query", maintain_order=True).head(MOST_WANTED)


def _counts(shown: Shown) -> dict[str, list[int]]:
    """Count by kind of gold what should be found in each query; -1 where gold does not say."""
    kinds: dict[Family, str] = {"rank": "items", "span": "spans", "evidence": "evidence"}
    counts = {}
    for family, kind in kinds.items():
        if family in shown.families:
            reading = shown.opened.readings[family]
            wanted = sought(reading, family, shown.measure).wanted
            counts[kind] = np.where(reading.given, wanted, -1).tolist()
    return counts
