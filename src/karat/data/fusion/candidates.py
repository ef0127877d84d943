"""Candidates: the items that several runs retrieved for the same queries, aligned in arrays."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from karat.arrays import Floats, Ints
from karat.data.run import Run
from karat.errors import InputError, KaratWarning, counted, for_example

_SPAN = ("doc_id", "start", "end")
_TEXT = ("text", "tokens")
_KEY = ["query_id", "item_id"]


@dataclass(frozen=True, eq=False)
class Candidates:
    """Every item that at least one run retrieved for a query.

    The candidates are sorted by query id, then by item id in descending order, which is the order
    of ties. The arrays have one row per candidate and one column per run, so they do not depend on
    the order of the rows in the files.
    """

    names: tuple[str, ...]
    runs: tuple[Run, ...]
    pairs: pl.DataFrame
    """The query id and the item id of each candidate."""
    rows: Ints
    """The row of each candidate in the results of each run; -1 if the run does not have it."""
    ranks: Floats
    """The rank of each candidate in each run, from 1; NaN if the run does not have it."""

    @classmethod
    def of(cls, runs: Mapping[str, Run]) -> Candidates:
        """Align runs; an item that repeats an earlier item of the same list is ignored."""
        lists = [_distinct_items(name, run) for name, run in runs.items()]
        pairs = (
            pl.concat([items.select(_KEY) for items in lists])
            .unique()
            .sort(_KEY, descending=[False, True])
        )
        numbers = pairs.with_row_index("candidate")
        rows = np.full((pairs.height, len(lists)), -1, np.int64)
        ranks = np.full((pairs.height, len(lists)), np.nan)
        for column, items in enumerate(lists):
            joined = items.join(numbers, on=_KEY, maintain_order="left")
            candidate = joined["candidate"].to_numpy()
            rows[candidate, column] = joined["row"].to_numpy()
            ranks[candidate, column] = joined["rank"].to_numpy()
        return cls(tuple(runs), tuple(runs.values()), pairs, rows, ranks)

    @cached_property
    def query(self) -> Ints:
        """The number of the query of each candidate, from 0."""
        numbers: Ints = self.pairs["query_id"].rle_id().cast(pl.Int64).to_numpy()
        return numbers

    @cached_property
    def counts(self) -> Ints:
        """The number of candidates of each query."""
        return np.bincount(self.query)

    @cached_property
    def lengths(self) -> Ints:
        """The number of items that each run retrieved for each query."""
        has_item = self.rows >= 0
        columns = [np.bincount(self.query, has_item[:, run]) for run in range(len(self.runs))]
        return np.stack(columns, axis=1).astype(np.int64)

    @cached_property
    def query_ids(self) -> pl.Series:
        """The ids of the queries for which something was retrieved, sorted."""
        return self.pairs["query_id"].unique(maintain_order=True)

    def scores(self, need: str) -> Floats:
        """Return the score of each candidate in each run, NaN if the run does not have it.

        `need` is what the scores are needed for, for the error message of a run without scores.
        """
        scores = np.full(self.rows.shape, np.nan)
        for column, (name, run) in enumerate(zip(self.names, self.runs, strict=True)):
            has_item = self.rows[:, column] >= 0
            if has_item.any():
                values = _checked_scores(name, run, need)
                scores[has_item, column] = values[self.rows[has_item, column]]
        return scores

    def contents(self) -> pl.DataFrame:
        """Return the columns of the candidates besides ids and scores, such as offsets and texts.

        The document and the offsets of an item come from the first run that has them, and so does
        its text.
        """
        return pl.DataFrame([*self._first(_SPAN), *self._first(_TEXT)])

    def _first(self, names: tuple[str, ...]) -> list[pl.Series]:
        """Return columns that belong together, each row from the first run that has them."""
        tables = [
            run.results.select("query_id", *(n for n in names if n in run.results.columns))
            for run in self.runs
        ]
        stacked = pl.concat(tables, how="diagonal_relaxed").drop("query_id")
        heights = np.array([run.results.height for run in self.runs])
        index = np.where(self.rows >= 0, self.rows + np.cumsum(heights) - heights, -1)
        source = np.full(index.shape[0], -1)
        for name in reversed(stacked.columns):
            has_value = stacked[name].is_not_null().to_numpy()
            for column in index.T:
                is_first = (source < 0) & (column >= 0) & has_value[column]
                source = np.where(is_first, column, source)
        rows = pl.Series(source).replace(-1, None)
        return stacked.select(pl.all().gather(rows)).get_columns()


def _distinct_items(name: str, run: Run) -> pl.DataFrame:
    """Return query id, item id, row and rank of each item, without repeats."""
    results = run.results
    if not results.height:
        schema = {"query_id": pl.String, "item_id": pl.String, "row": pl.UInt32, "rank": pl.UInt32}
        return pl.DataFrame(schema=schema)
    if "item_id" not in results.columns or results["item_id"].null_count():
        raise InputError(
            f"run {name!r} has items without an id",
            field="item_id",
            hint="add an id to each item: the same item must have the same id in all runs",
        )
    items = results.select(_KEY).with_row_index("row")
    distinct = items.unique(_KEY, keep="first", maintain_order=True)
    if n_repeats := items.height - distinct.height:
        query = items.filter(items.select(_KEY).is_duplicated())["query_id"][0]
        warnings.warn(
            KaratWarning(
                f"run {name!r}: {counted(n_repeats, 'item')} "
                f"{'repeats' if n_repeats == 1 else 'repeat'} an earlier item of the same list"
                f"{for_example(n_repeats, f'in query {query!r}')}; only the first counts, and "
                "later items move up"
            ),
            stacklevel=5,
        )
    rank = pl.int_range(1, pl.len() + 1).over("query_id").alias("rank")
    return distinct.with_columns(rank)


def _checked_scores(name: str, run: Run, need: str) -> Floats:
    results = run.results
    hint = "use a method that needs only ranks, such as rrf, or the normalization rank"
    if "score" not in results.columns:
        raise InputError(
            f"run {name!r} has no scores, which {need} needs", field="score", hint=hint
        )
    without = results.filter(pl.col("score").is_null() | ~pl.col("score").is_finite())
    if without.height:
        query, item, score = without.select(*_KEY, "score").row(0)
        problem = "no score" if score is None else f"the score {score}"
        raise InputError(
            f"run {name!r}, query {query!r}: item {item!r} has {problem}, but {need} needs a "
            "finite score for every item",
            field="score",
            hint=hint,
        )
    values: Floats = results["score"].cast(pl.Float64).to_numpy()
    return values
