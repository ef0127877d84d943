"""The lists of all queries side by side, made of flat columns when they are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, overload

import numpy as np
import polars as pl

from karat.evaluation.outcomes import relevant_from, sought
from karat.evaluation.shown import HITS, TOP, Shown
from karat.measures.declare import Family
from karat.report.page.model import Json

MOST_WANTED = 50
"""How many relevant items of a query are named at most."""
_PLACES = {"query": pl.Int64, "rank": pl.Int64, "item": pl.Int64}


class RankedLists(Sequence[Json]):
    """One a query: what each run returned, what of it was found, and what should have been.

    A run that is not at hand has an empty list.
    """

    def __init__(self, runs: Sequence[Shown | None]) -> None:
        shown = next(run for run in runs if run is not None)
        self._n = n = shown.opened.session.prepared.query_ids.len()
        items, places = _side_by_side(runs)
        self._items = _Columns(items, n)
        self._places = [_Columns(table, n) for table in places]
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
            return [self._between(number, number + 1)[0] for number in numbers]
        return self._between(numbers.start, numbers.stop)

    def _between(self, first: int, stop: int) -> list[Json]:
        """Return the lists of neighbouring queries, since it pays to take many at once."""
        items, wanted = (each.rows(first, stop) for each in (self._items, self._wanted))
        places = [of_run.rows(first, stop) for of_run in self._places]
        hits = [of_run.rows(first, stop) for of_run in self._hits]
        return [
            {
                "items": [label for (label,) in items[at]],
                "lists": [[item for rank, item in run[at] if rank <= TOP] for run in places],
                "below": [[[rank, item] for rank, item in run[at] if rank > TOP] for run in places],
                "n": [lengths[query] for lengths in self._lengths],
                "hits": [list(map(list, run[at])) for run in hits],
                "wanted": list(map(list, wanted[at])),
                "n_wanted": {kind: n[query] for kind, n in self._counts.items() if n[query] >= 0},
            }
            for at, query in enumerate(range(first, stop))
        ]


class _Columns:
    """A table sorted by query, cut by query when asked for."""

    def __init__(self, table: pl.DataFrame, n_queries: int) -> None:
        self._bounds = np.searchsorted(table["query"].to_numpy(), np.arange(n_queries + 1)).tolist()
        self._rest = table.drop("query")

    def rows(self, first: int, stop: int) -> list[list[tuple[Any, ...]]]:
        """Return the rows of each of some neighbouring queries."""
        bounds = self._bounds[first : stop + 1]
        rows = self._rest[bounds[0] : bounds[-1]].rows()
        return [rows[begin - bounds[0] : end - bounds[0]] for begin, end in pairwise(bounds)]


def _side_by_side(runs: Sequence[Shown | None]) -> tuple[pl.DataFrame, list[pl.DataFrame]]:
    """Return the different items of each query, and the places of each run with their numbers.

    Items are numbered within their query, in the order in which they first come up.
    """
    parts = [
        run.places.select("query", "rank", "key", "label", run=pl.lit(at, pl.Int64))
        for at, run in enumerate(runs)
        if run is not None
    ]
    every = pl.concat(parts).sort("query", maintain_order=True)
    items = every.unique(["query", "key"], keep="first", maintain_order=True)
    items = items.select(
        "query", "key", "label", item=pl.int_range(pl.len(), dtype=pl.Int64).over("query")
    )
    placed = every.join(items.drop("label"), on=["query", "key"], how="left", maintain_order="left")
    places = [placed.filter(run=at).select(*_PLACES) for at in range(len(runs))]
    return items.select("query", "label"), places


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
