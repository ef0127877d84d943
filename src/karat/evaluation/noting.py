"""What kernels noted of many queries at once, taken apart by query."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from karat.evaluation.rows import Rows
from karat.measures.declare import Family
from karat.measures.workings import Noted, NotedOthers, Workings
from karat.report.calculation import Row


class Notes:
    """What was noted of each query; underscores in names have become spaces."""

    def __init__(self, workings: Workings, n_queries: int, family: Family) -> None:
        tables = [_Table(noted, n_queries, family) for noted in workings.tables]
        self._best = [table for table in tables if table.ideal]
        self._listed = [table for table in tables if not table.ideal]
        self.columns = list(dict.fromkeys(name for each in self._listed for name in each.columns))
        """What was noted of the places of lists, in the order of the kernel."""
        self.numbers = {_words(name): _plain(each) for name, each in workings.numbers.items()}
        """What was noted of each query as a whole."""

    def beside(self, query: int, lists: Rows) -> Iterator[tuple[int, Row]]:
        """Yield the ranks of a query that count, with what was noted of each."""
        for table in self._listed:
            yield from table.others(query, lists) if table.are_others else table.places(query)

    def ideal(self, query: int) -> list[Row]:
        """Return the best list that there could be."""
        rows: dict[int, Row] = {}
        for table in self._best:
            for rank, noted in table.places(query):
                rows.setdefault(rank, {"rank": rank}).update(noted)
        return [rows[rank] for rank in sorted(rows)]


class _Table:
    """What was noted of places, which stand in the order of their queries."""

    def __init__(self, noted: Noted | NotedOthers, n_queries: int, family: Family) -> None:
        self.are_others = isinstance(noted, NotedOthers)
        self.ideal = isinstance(noted, Noted) and noted.ideal
        places = noted.places
        self._bounds = np.searchsorted(places.query, np.arange(n_queries + 1)).tolist()
        self._ranks: list[int] = places.rank.tolist()
        self._cutoff = noted.cutoff if isinstance(noted, NotedOthers) else None
        self.columns: dict[str, Any] = {
            _words(name): each if self.are_others else _plain(each)
            for name, each in noted.columns.items()
        }
        """Rows of values, or what gives one for a rank."""
        if self.ideal and family == "rank":
            self.columns = {"grade": places.grade.tolist()} | self.columns

    def places(self, query: int) -> Iterator[tuple[int, Row]]:
        for at in range(self._bounds[query], self._bounds[query + 1]):
            yield self._ranks[at], {name: each[at] for name, each in self.columns.items()}

    def others(self, query: int, lists: Rows) -> Iterator[tuple[int, Row]]:
        """Yield the ranks of items that stand at none of the places, each item once."""
        known = set(self._ranks[self._bounds[query] : self._bounds[query + 1]])
        for rank in lists.first_ranks(query, self._cutoff).values():
            if rank not in known:
                yield rank, {name: worth(rank) for name, worth in self.columns.items()}


def _words(name: str) -> str:
    return name.replace("_", " ")


def _plain(values: Any) -> list[Any]:
    """Return what NumPy holds as Python's own; what is no number is none."""
    listed: list[Any] = np.asarray(values).tolist()
    return [None if isinstance(one, float) and math.isnan(one) else one for one in listed]
