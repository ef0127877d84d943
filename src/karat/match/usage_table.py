"""What a run says of its own speed, cost and length, brought to the queries of gold."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from karat.arrays import Flags, Floats, Ints
from karat.data.run import Run
from karat.match.align import answered_queries, failed_queries, query_numbers
from karat.match.hits import RankedRows


@dataclass(frozen=True, eq=False)
class UsageTable:
    """The rows that a run holds of gold's queries: of its timings, its calls or its results.

    The rank of a place is which row of its query it is. `asked` marks the queries that are in the
    run, `present` those of them that did not fail: a failed query is neither fast nor cheap.
    `unknown` is the number of queries of the run that gold does not have.
    """

    places: RankedRows
    table: pl.DataFrame
    asked: Flags
    present: Flags
    unknown: int

    @classmethod
    def of(cls, query_ids: pl.Series, run: Run, table: pl.DataFrame) -> UsageTable:
        """Sort the rows by query; leave out failed queries and those that gold does not have."""
        is_asked, unknown = answered_queries(query_ids, run)
        present = is_asked & ~failed_queries(query_ids, run)
        number = query_numbers(query_ids, table["query_id"])
        number = np.where(present[number], number, -1)
        order = np.argsort(number, kind="stable")
        order = order[number[order] >= 0]
        query, none = number[order], np.zeros(order.size, np.int64)
        rank: Ints = RankedRows(query_ids.len(), query, none, none).ordinal
        places = RankedRows(query_ids.len(), query, rank, none)
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


def tokens_of(results: UsageTable) -> Floats:
    """Return the tokens of each result, NaN where they are not known."""
    return results.floats("tokens")


def prices_of(calls: UsageTable) -> Floats:
    """Return what each call costs in USD, NaN where that is not known."""
    # Not with Polars, which divides by 1000 as it multiplies by 0.001: other digits.
    columns = ("prompt_tokens", "completion_tokens", "price_per_1k", "price_in", "price_out")
    prompt, completion, price, price_in, price_out = map(calls.floats, columns)
    per_call = calls.floats("price_per_call")
    per_call = np.where(np.isnan(per_call), calls.floats("price_per_1k_calls") / 1000, per_call)
    # An embedder writes no tokens, so its completion may be left out; a prompt never is.
    at_one_price = (prompt + _or_zero(completion)) / 1000 * price
    at_two = _part(prompt, price_in) + _part(completion, price_out)
    given = [~np.isnan(price), ~np.isnan(price_in) | ~np.isnan(price_out), ~np.isnan(per_call)]
    known: Floats = _or_zero(per_call) + np.select(given, [at_one_price, at_two, 0.0], np.nan)
    return known


def _part(tokens: Floats, price: Floats) -> Floats:
    """Return the price of one kind of tokens; no price is needed where there are none."""
    none = np.isnan(price) & (_or_zero(tokens) == 0)
    return np.where(none, 0.0, tokens / 1000 * price)


def _or_zero(values: Floats) -> Floats:
    return np.where(np.isnan(values), 0.0, values)
