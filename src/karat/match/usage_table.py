"""Timings, model calls and tokens that a run records, aligned with the queries of gold."""

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
    """The rows of a run for the queries of gold: its timings, its calls or its results."""

    rows: RankedRows
    """The query of each row; the rank is the position among the rows of the query."""
    table: pl.DataFrame
    in_run: Flags
    """Which queries are in the run."""
    present: Flags
    """Which queries are in the run and did not fail: a failed query is neither fast nor cheap."""
    unknown: int
    """How many queries of the run are not in gold."""

    @classmethod
    def of(cls, query_ids: pl.Series, run: Run, table: pl.DataFrame) -> UsageTable:
        """Sort the rows by query, without failed queries and queries that are not in gold."""
        in_run, unknown = answered_queries(query_ids, run)
        present = in_run & ~failed_queries(query_ids, run)
        number = query_numbers(query_ids, table["query_id"])
        is_used = np.append(present, False)  # unknown queries have the number -1
        number = np.where(is_used[number], number, -1)
        order = np.argsort(number, kind="stable")
        order = order[number[order] >= 0]
        query, zeros = number[order], np.zeros(order.size, np.int64)
        rank: Ints = RankedRows(query_ids.len(), query, zeros, zeros).ordinal
        rows = RankedRows(query_ids.len(), query, rank, zeros)
        return cls(rows, table[order], in_run, present, unknown)

    def floats(self, column: str) -> Floats:
        """Return the numbers of a column, with NaN for missing values."""
        return self.table[column].cast(pl.Float64).fill_null(float("nan")).to_numpy()

    def matches(self, values: dict[str, str | None]) -> Flags:
        """Return which rows have these values in these columns; None allows any value."""
        keep = np.ones(self.table.height, np.bool_)
        for column, value in values.items():
            if value is not None:
                keep &= (self.table[column] == value).fill_null(value=False).to_numpy()
        return keep

    def where(self, **values: str | None) -> UsageTable:
        """Keep the rows that have these values in these columns; None allows any value."""
        keep = self.matches(values)
        return replace(self, rows=self.rows.where(keep), table=self.table.filter(keep))

    def total(self, amounts: Floats) -> Floats:
        """Sum the amounts of each query, smallest first, so that the row order has no effect."""
        order = np.lexsort((amounts, self.rows.query))
        sums = np.bincount(self.rows.query[order], amounts[order], self.rows.n_queries)
        return sums.astype(np.float64, copy=False)


def tokens_of(results: UsageTable) -> Floats:
    """Return the number of tokens of each result, NaN if it is not known."""
    return results.floats("tokens")


def prices_of(calls: UsageTable) -> Floats:
    """Return the price of each call in USD, NaN if it is not known."""
    # In NumPy, since Polars divides by 1000 by multiplying with 0.001, which rounds differently.
    columns = ("prompt_tokens", "completion_tokens", "price_per_1k", "price_in", "price_out")
    prompt, completion, price, price_in, price_out = map(calls.floats, columns)
    per_call = calls.floats("price_per_call")
    per_call = np.where(np.isnan(per_call), calls.floats("price_per_1k_calls") / 1000, per_call)
    # Embedding calls have no completion tokens, so these may be missing; prompt tokens may not.
    at_one_price = (prompt + _or_zero(completion)) / 1000 * price
    at_two_prices = _token_price(prompt, price_in) + _token_price(completion, price_out)
    conditions = [
        ~np.isnan(price),
        ~np.isnan(price_in) | ~np.isnan(price_out),
        ~np.isnan(per_call),
    ]
    by_tokens = np.select(conditions, [at_one_price, at_two_prices, 0.0], np.nan)
    prices: Floats = _or_zero(per_call) + by_tokens
    return prices


def _token_price(tokens: Floats, price: Floats) -> Floats:
    """Return the cost of one kind of token; no price is needed if there are no tokens."""
    is_free = np.isnan(price) & (_or_zero(tokens) == 0)
    return np.where(is_free, 0.0, tokens / 1000 * price)


def _or_zero(values: Floats) -> Floats:
    return np.where(np.isnan(values), 0.0, values)
