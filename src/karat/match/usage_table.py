"""What a run says of its own speed, cost and length, brought to the queries of gold."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from karat.arrays import Flags, Floats, Ints
from karat.data.run import Run
from karat.match.hits import Places
from karat.match.numbers import asked, failed, numbers_of


@dataclass(frozen=True, eq=False)
class UsageTable:
    """The rows that a run holds of gold's queries: of its timings, its calls or its results.

    The rank of a place is which row of its query it is. `asked` marks the queries that are in the
    run, `present` those of them that did not fail: a failed query is neither fast nor cheap.
    `unknown` is the number of queries of the run that gold does not have.
    """

    places: Places
    table: pl.DataFrame
    asked: Flags
    present: Flags
    unknown: int

    @classmethod
    def of(cls, query_ids: pl.Series, run: Run, table: pl.DataFrame) -> UsageTable:
        """Sort the rows by query; leave out failed queries and those that gold does not have."""
        is_asked, unknown = asked(query_ids, run)
        present = is_asked & ~failed(query_ids, run)
        number = numbers_of(query_ids, table["query_id"])
        number = np.where(present[number], number, -1)
        order = np.argsort(number, kind="stable")
        order = order[number[order] >= 0]
        query, none = number[order], np.zeros(order.size, np.int64)
        rank: Ints = Places(query_ids.len(), query, none, none).ordinal
        places = Places(query_ids.len(), query, rank, none)
        return cls(places, table[order], is_asked, present, unknown)

    def floats(self, column: str) -> Floats:
        """Return the numbers of a column, NaN where there is none."""
        return self.table[column].cast(pl.Float64).fill_null(float("nan")).to_numpy()

    def holding(self, wanted: dict[str, str | None]) -> Flags:
        """Tell which rows hold the wanted words in the columns of these names; None is any."""
        keep = np.ones(self.table.height, np.bool_)
        for column, word in wanted.items():
            if word is not None:
                keep &= (self.table[column] == word).fill_null(value=False).to_numpy()
        return keep

    def where(self, **wanted: str | None) -> UsageTable:
        """Keep the rows that hold the wanted words."""
        keep = self.holding(wanted)
        return replace(self, places=self.places.where(keep), table=self.table.filter(keep))

    def total(self, amounts: Floats) -> Floats:
        """Sum in each query, the smallest first, so that the order of rows never shows."""
        order = np.lexsort((amounts, self.places.query))
        sums = np.bincount(self.places.query[order], amounts[order], self.places.n_queries)
        return sums.astype(np.float64, copy=False)
