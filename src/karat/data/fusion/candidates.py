"""Candidates: the items that several runs retrieved for the same queries, aligned in arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from karat.arrays import Floats, Ints
from karat.data.ranking import QuerySegments
from karat.data.run import NO_RESULTS, Run
from karat.errors import InputError, counted, for_example, warn

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
        for name, run in runs.items():
            _require_ids(name, run)
        tables = [run.results.select(*_KEY) for run in runs.values() if run.results.height]
        pairs = pl.concat([NO_RESULTS, *tables])
        queries = pairs["query_id"].unique().sort()
        items = pairs["item_id"].unique().sort(descending=True)
        # A pair of ids as one number: sorting numbers is many times faster than sorting texts.
        numbers = _numbers(pairs["query_id"], queries) * items.len() + _numbers(
            pairs["item_id"], items
        )
        candidates = np.sort(numbers)  # np.unique hashes, which takes ten times as long
        candidates = candidates[np.diff(candidates, prepend=-1) > 0]
        rows = np.full((candidates.size, len(runs)), -1, np.int64)
        ranks = np.full((candidates.size, len(runs)), np.nan)
        start = 0
        for column, (name, run) in enumerate(runs.items()):
            in_run = numbers[start : start + run.results.height]
            start += in_run.size
            kept = _first_rows(name, run, in_run)
            candidate = np.searchsorted(candidates, in_run[kept])
            rows[candidate, column] = kept
            segments = QuerySegments.of(run.results["query_id"].gather(kept))
            position = np.arange(kept.size) - np.repeat(segments.starts, segments.lengths)
            ranks[candidate, column] = position + 1
        ids = pl.DataFrame(
            {
                "query_id": queries.gather(candidates // max(items.len(), 1)),
                "item_id": items.gather(candidates % max(items.len(), 1)),
            }
        )
        return cls(tuple(runs), tuple(runs.values()), ids, rows, ranks)

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


def _require_ids(name: str, run: Run) -> None:
    results = run.results
    if results.height and ("item_id" not in results.columns or results["item_id"].null_count()):
        raise InputError(
            f"run {name!r} has items without an id",
            field="item_id",
            hint="add an id to each item: the same item must have the same id in all runs",
        )


def _numbers(values: pl.Series, sorted_values: pl.Series) -> Ints:
    """Return the index of each value in the sorted values."""
    numbers: Ints = values.cast(pl.Enum(sorted_values)).to_physical().cast(pl.Int64).to_numpy()
    return numbers


def _first_rows(name: str, run: Run, numbers: Ints) -> Ints:
    """Return the rows of the items that do not repeat an earlier item of the same list."""
    rows: Ints = np.sort(np.unique(numbers, return_index=True)[1]).astype(np.int64)
    if n_repeats := numbers.size - rows.size:
        repeated = np.setdiff1d(np.arange(numbers.size), rows)[0]
        query = run.results["query_id"][int(repeated)]
        warn(
            f"run {name!r}: {counted(n_repeats, 'item')} "
            f"{'repeats' if n_repeats == 1 else 'repeat'} an earlier item of the same list"
            f"{for_example(n_repeats, f'in query {query!r}')}; only the first counts, and "
            "later items move up",
            stacklevel=4,
        )
    return rows


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
