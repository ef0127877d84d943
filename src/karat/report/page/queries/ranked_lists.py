"""The ranked lists of all runs as a page shows them: the lists that were scored, by query."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, overload

import numpy as np
import polars as pl

from karat.arrays import Flags, Ints
from karat.evaluation.calculation import TOP
from karat.evaluation.loaded_run import LoadedRun
from karat.match.align import query_numbers
from karat.measures import Measure
from karat.measures.families import FAMILIES, RANK, FamilyName
from karat.report.page.data import QueryLists
from karat.report.page.queries.gold_kinds import GOLD_KINDS, min_relevant_grade

MAX_HITS_BELOW = 40
"""The maximum number of hits shown below the top of a list."""
LABEL_LENGTH = 60
"""How many characters of the text name an item without an id."""

_RANK_COLUMNS = {"query": pl.Int64(), "rank": pl.Int64()}
HITS = pl.Schema(_RANK_COLUMNS | {kind.column: kind.dtype for kind in GOLD_KINDS.values()})


@dataclass(frozen=True, eq=False)
class ScoredLists:
    """The lists of a run, in the form that the first measure of gold was computed from.

    Rank measures may read a reduced list: with level="doc" the first chunk of each document, with
    unjudged="skip" only the judged items. Measures of spans and evidence always read every chunk.
    A kind of gold is therefore shown next to a list only if its measures read that list.
    """

    opened: LoadedRun
    measure: Measure | None
    """The first measure that reads gold."""

    @cached_property
    def _has_reduced_list(self) -> bool:
        """Whether rank measures read a reduced list."""
        plan = self.opened.plan
        return plan.level == "doc" or plan.conventions.unjudged == "skip"

    @cached_property
    def shows_reduced_list(self) -> bool:
        """Whether the reduced list is shown."""
        is_graded = self.measure is not None and self.measure.declaration.reads.is_graded
        return is_graded and self._has_reduced_list

    @cached_property
    def families(self) -> set[FamilyName]:
        """The kinds of gold that are shown next to the list."""
        families = set(self.opened.readings)
        if not self._has_reduced_list:
            return families
        return {name for name in families if FAMILIES[name].is_graded == self.shows_reduced_list}

    @property
    def _item_column(self) -> str:
        """The column that names items."""
        return (
            "doc_id" if self.shows_reduced_list and self.opened.plan.level == "doc" else "item_id"
        )

    @cached_property
    def _query_and_row(self) -> tuple[Ints, Ints]:
        """The query and the row of each item, ordered by query and rank."""
        run = self.opened.run
        number = query_numbers(self.opened.query_ids, run.segments.query_ids)
        query = np.repeat(number, run.segments.lengths)
        row = np.flatnonzero(query >= 0)
        if self.shows_reduced_list and row.size:
            row = row[self._is_in_reduced_list(query)[row]]
        if np.any(number[1:] < number[:-1]):
            row = row[np.argsort(query[row], kind="stable")]
        return query[row], row

    def _is_in_reduced_list(self, query: Ints) -> Flags:
        """Return, for each row, whether rank measures use it."""
        plan = self.opened.plan
        items = pl.DataFrame({"query": query, "item": self.opened.run.results[self._item_column]})
        is_read = np.ones(query.size, np.bool_)
        if plan.level == "doc":
            is_read &= items.select(pl.struct(pl.all()).is_first_distinct()).to_series().to_numpy()
        if plan.conventions.unjudged == "skip":
            judged = self.opened.session.prepared.table.filter(pl.col("grade") >= 0)
            judged = judged.select("query", pl.col("item_id").alias("item"), judged=True)
            items = items.join(judged, on=["query", "item"], how="left", maintain_order="left")
            is_read &= items["judged"].fill_null(value=False).to_numpy()
        return is_read

    @cached_property
    def length(self) -> Ints:
        """The length of the list of each query."""
        return np.bincount(self._query_and_row[0], minlength=self.opened.query_ids.len())

    @cached_property
    def hits(self) -> pl.DataFrame:
        """The hits: query, rank, grade, characters, evidence and below.

        `grade` is that of a judged item, `characters` the number of gold characters that a rank
        adds to those of the ranks above, `evidence` the numbers of the evidence texts that it
        covers. `below` marks hits below the top of the list that are shown as well.
        """
        hits = pl.DataFrame(schema=_RANK_COLUMNS)
        for family, kind in GOLD_KINDS.items():
            if family in self.families:
                kind_hits = kind.hits(self.opened)
                hits = hits.join(kind_hits, on=["query", "rank"], how="full", coalesce=True)
        missing_columns = [
            pl.lit(None, dtype).alias(name) for name, dtype in HITS.items() if name not in hits
        ]
        hits = hits.with_columns(missing_columns).sort("query", "rank")
        counts = [kind.counts(self.measure).fill_null(value=False) for kind in GOLD_KINDS.values()]
        lower = pl.any_horizontal(counts) & (pl.col("rank") > TOP)
        nth = lower.cast(pl.Int64).cum_sum().over("query")
        return hits.select(*HITS, below=lower & (nth <= MAX_HITS_BELOW))

    @cached_property
    def places(self) -> pl.DataFrame:
        """The shown items: query, rank, row in the results, key and label of the item."""
        query, row = self._query_and_row
        starts = np.cumsum(self.length) - self.length
        rank = np.arange(1, query.size + 1) - starts[query]
        top = np.flatnonzero(rank <= TOP)
        below = self.hits.filter("below").select("query", "rank").to_numpy()
        at = np.sort(np.concatenate((top, starts[below[:, 0]] + below[:, 1] - 1)))
        names = self._item_names(row[at])
        return pl.DataFrame({"query": query[at], "rank": rank[at], "row": row[at]}).hstack(names)

    def _item_names(self, rows: Ints) -> pl.DataFrame:
        """Return key and label of items: the id, else document and offsets, else the text.

        The label of a text is its beginning; the key is the whole text.
        """
        results = self.opened.run.results
        if not rows.size:  # a run that retrieved nothing may lack all of these columns
            return pl.DataFrame(schema={"key": pl.String, "label": pl.String})
        begins = pl.col("text").str.replace_all(r"\s+", " ").str.strip_chars()
        span = pl.format("{}[{}:{}]", "doc_id", "start", "end")
        names_by_columns = {
            (self._item_column,): (pl.col(self._item_column), pl.col(self._item_column)),
            ("doc_id", "start", "end"): (span, span),
            ("text",): (pl.col("text"), begins.str.head(LABEL_LENGTH)),
        }
        used = []
        for columns, key_and_label in names_by_columns.items():
            if set(columns) <= set(results.columns):
                used.append(key_and_label)
                if not any(results[name].null_count() for name in columns):
                    break  # every item has a name; texts need not be read
        keys, labels = zip(*used, strict=True)
        return results[rows].select(key=pl.coalesce(keys), label=pl.coalesce(labels))


MAX_RELEVANT = 50
"""The maximum number of relevant items listed per query."""


class RankedLists(Sequence[QueryLists]):
    """One entry per query: the lists of all runs, their hits, and the relevant items.

    If only the scores of a run are available, its lists are empty.
    """

    def __init__(self, runs: Sequence[ScoredLists | None]) -> None:
        first_run = next(run for run in runs if run is not None)
        self._n = n = first_run.opened.query_ids.len()
        self._items, self._places = _side_by_side(runs, n)
        self._hits = [
            _QueryColumns(pl.DataFrame(schema=HITS) if run is None else run.hits.select(*HITS), n)
            for run in runs
        ]
        self._lengths = [[0] * n if run is None else run.length.tolist() for run in runs]
        self._relevant = _QueryColumns(_relevant_items(first_run), n)
        self._counts = _gold_counts(first_run)

    def __len__(self) -> int:
        return self._n

    @overload
    def __getitem__(self, query: int) -> QueryLists: ...
    @overload
    def __getitem__(self, query: slice) -> list[QueryLists]: ...
    def __getitem__(self, query: int | slice) -> QueryLists | list[QueryLists]:
        numbers = range(self._n)[query]
        if isinstance(numbers, int):
            return self._between(numbers, numbers + 1)[0]
        if numbers.step != 1:
            return [self[number] for number in numbers]
        return self._between(numbers.start, numbers.stop)

    def _between(self, first: int, stop: int) -> list[QueryLists]:
        """Return the entries of consecutive queries; slicing columns once is faster."""
        entries = [
            QueryLists(items, [], [], [], [], _rows(*relevant), self._n_wanted(number))
            for number, ((items,), relevant) in enumerate(
                zip(
                    self._items.between(first, stop),
                    self._relevant.between(first, stop),
                    strict=True,
                ),
                first,
            )
        ]
        for places, hits, lengths in zip(self._places, self._hits, self._lengths, strict=True):
            columns = zip(
                entries,
                places.between(first, stop),
                hits.between(first, stop),
                lengths[first:stop],
                strict=True,
            )
            for entry, (ranks, items), query_hits, length in columns:
                top = min(length, TOP)
                entry.lists.append(items[:top])
                entry.below.append(_rows(ranks[top:], items[top:]))
                entry.n.append(length)
                entry.hits.append(_rows(*query_hits))
        return entries

    def _n_wanted(self, number: int) -> dict[str, int]:
        counts = {kind: counts[number] for kind, counts in self._counts.items()}
        return {kind: count for kind, count in counts.items() if count >= 0}


def _rows(*columns: list[Any]) -> list[Any]:
    """Return the rows of a table that is given by its columns."""
    return list(zip(*columns, strict=True))


class _QueryColumns:
    """A table sorted by query that can be sliced by query."""

    def __init__(self, table: pl.DataFrame, n_queries: int) -> None:
        self._bounds = np.searchsorted(table["query"].to_numpy(), np.arange(n_queries + 1)).tolist()
        self._columns = table.drop("query").get_columns()

    def between(self, first: int, stop: int) -> Iterator[list[list[Any]]]:
        """Yield the columns of each query from `first` up to `stop`."""
        bounds = self._bounds[first : stop + 1]
        begin, end = bounds[0], bounds[-1]
        columns = [column[begin:end].to_list() for column in self._columns]
        for start, end in pairwise(bounds):
            yield [column[start - begin : end - begin] for column in columns]


def _side_by_side(
    runs: Sequence[ScoredLists | None], n_queries: int
) -> tuple[_QueryColumns, list[_QueryColumns]]:
    """Return the distinct items of each query, and the list of each run as item numbers.

    Items are numbered within their query, in the order of their first occurrence.
    """
    parts = [run.places for run in runs if run is not None]
    has_lists = np.array([run is not None for run in runs])
    rows = pl.concat(parts).select("query", "rank", "key", "label")
    run_of_row = np.repeat(np.flatnonzero(has_lists), [part.height for part in parts])
    order = np.argsort(rows["query"].to_numpy(), kind="stable")
    rows, run_of_row = rows[order], run_of_row[order]
    query = rows["query"].to_numpy()
    code = rows["key"].cast(pl.Categorical).to_physical().to_numpy().astype(np.int64)
    pairs = query * (int(code.max(initial=0)) + 1) + code
    _, first, which = np.unique(pairs, return_index=True, return_inverse=True)
    by_first = np.argsort(first)
    number = np.empty_like(by_first)
    number[by_first] = np.arange(first.size)
    first_rows = first[by_first]
    item = number[which] - np.searchsorted(query[first_rows], query)
    items = rows.select("query", "label")[first_rows]
    ranked = rows.select("query", "rank").with_columns(item=item)
    lists = [_QueryColumns(ranked.filter(run_of_row == at), n_queries) for at in range(len(runs))]
    return _QueryColumns(items, n_queries), lists


def _relevant_items(lists: ScoredLists) -> pl.DataFrame:
    """Return the relevant items of each query, the highest grades first."""
    if RANK.name not in lists.families:
        return pl.DataFrame(schema={"query": pl.Int64, "item_id": pl.String, "grade": pl.Int64})
    judged = lists.opened.session.prepared.table.select("query", "item_id", "grade")
    relevant = judged.filter(pl.col("grade") >= min_relevant_grade(lists.measure))
    ordered = relevant.sort("query", "grade", "item_id", descending=[False, True, False])
    return ordered.group_by("query", maintain_order=True).head(MAX_RELEVANT)


def _gold_counts(lists: ScoredLists) -> dict[str, list[int]]:
    """Return the amount of gold per query, by kind; -1 if a query has no gold of that kind."""
    counts = {}
    for family, kind in GOLD_KINDS.items():
        if family in lists.families:
            reading = lists.opened.readings[family]
            total = kind.found(reading, lists.measure).total
            counts[kind.name] = np.where(reading.has_gold, total, -1).tolist()
    return counts
