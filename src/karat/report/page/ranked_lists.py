"""The lists of runs as a page shows them: each the list that was scored, side by side by query."""

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
from karat.report.page.gold_kinds import GOLD_KINDS, min_relevant_grade
from karat.report.page.model import Json

MAX_HITS_BELOW = 40
"""How many hits are shown below them at most."""
LABEL_LENGTH = 60
"""How many characters name an item that has nothing but a text."""

_RANK_COLUMNS = {"query": pl.Int64(), "rank": pl.Int64()}
HITS = pl.Schema(_RANK_COLUMNS | {kind.column: kind.dtype for kind in GOLD_KINDS.values()})


@dataclass(frozen=True, eq=False)
class ScoredLists:
    """The lists of a run, as the first measure that reads gold reads them.

    At the level of documents that is the first chunk of each, and where unjudged items are skipped,
    only what is judged; measures of spans and evidence read every chunk all the same. So what those
    find is shown next to the list only if it is the list that they read, and vice versa.
    """

    opened: LoadedRun
    measure: Measure | None
    """The first measure that reads gold."""

    @cached_property
    def _ranked_anew(self) -> bool:
        """Whether rank measures read another list than came."""
        plan = self.opened.plan
        return plan.level == "doc" or plan.conventions.unjudged == "skip"

    @cached_property
    def is_own(self) -> bool:
        """Whether the list shown is that other list."""
        is_graded = self.measure is not None and self.measure.declaration.reads.is_graded
        return is_graded and self._ranked_anew

    @cached_property
    def families(self) -> set[FamilyName]:
        """The kinds of gold that the list shown was held against."""
        measured = set(self.opened.readings)
        if not self._ranked_anew:
            return measured
        return {name for name in measured if FAMILIES[name].is_graded == self.is_own}

    @property
    def _items(self) -> str:
        """The column that names items."""
        return "doc_id" if self.is_own and self.opened.plan.level == "doc" else "item_id"

    @cached_property
    def _all(self) -> tuple[Ints, Ints]:
        """The query and the row of each item, queries in order and the items of each in rank."""
        run = self.opened.run
        number = query_numbers(self.opened.query_ids, run.segments.query_ids)
        query = np.repeat(number, run.segments.lengths)
        row = np.flatnonzero(query >= 0)
        if self.is_own and row.size:
            row = row[self._read(query)[row]]
        if np.any(number[1:] < number[:-1]):
            row = row[np.argsort(query[row], kind="stable")]
        return query[row], row

    def _read(self, query: Ints) -> Flags:
        """Tell which rows rank measures read."""
        plan = self.opened.plan
        items = pl.DataFrame({"query": query, "item": self.opened.run.results[self._items]})
        read = np.ones(query.size, np.bool_)
        if plan.level == "doc":
            read &= items.select(pl.struct(pl.all()).is_first_distinct()).to_series().to_numpy()
        if plan.conventions.unjudged == "skip":
            judged = self.opened.session.prepared.table.filter(pl.col("grade") >= 0)
            held = judged.select("query", pl.col("item_id").alias("item"), judged=True)
            both = items.join(held, on=["query", "item"], how="left", maintain_order="left")
            read &= both["judged"].fill_null(value=False).to_numpy()
        return read

    @cached_property
    def length(self) -> Ints:
        """How long the list of each query is."""
        return np.bincount(self._all[0], minlength=self.opened.query_ids.len())

    @cached_property
    def hits(self) -> pl.DataFrame:
        """What was found: query, rank, grade, characters, evidence, and whether it is below.

        The grade of what is judged; how many characters of gold a rank brings that none before
        it had; the numbers of the evidences that it covers. `below` is what counts as found and
        stands under what is shown in any case.
        """
        every = pl.DataFrame(schema=_RANK_COLUMNS)
        for family, kind in GOLD_KINDS.items():
            if family in self.families:
                found = kind.hits(self.opened)
                every = every.join(found, on=["query", "rank"], how="full", coalesce=True)
        lacking = [
            pl.lit(None, kind).alias(name) for name, kind in HITS.items() if name not in every
        ]
        every = every.with_columns(lacking).sort("query", "rank")
        counts = [kind.counts(self.measure).fill_null(value=False) for kind in GOLD_KINDS.values()]
        lower = pl.any_horizontal(counts) & (pl.col("rank") > TOP)
        nth = lower.cast(pl.Int64).cum_sum().over("query")
        return every.select(*HITS, below=lower & (nth <= MAX_HITS_BELOW))

    @cached_property
    def places(self) -> pl.DataFrame:
        """What is shown: query, rank, row in the results, and the key and the label of the item."""
        query, row = self._all
        starts = np.cumsum(self.length) - self.length
        rank = np.arange(1, query.size + 1) - starts[query]
        top = np.flatnonzero(rank <= TOP)
        below = self.hits.filter("below").select("query", "rank").to_numpy()
        at = np.sort(np.concatenate((top, starts[below[:, 0]] + below[:, 1] - 1)))
        named = self._named(row[at])
        return pl.DataFrame({"query": query[at], "rank": rank[at], "row": row[at]}).hstack(named)

    def _named(self, rows: Ints) -> pl.DataFrame:
        """Name items by their id, else by their place, else by their text.

        The label of a text is how it begins; the key is all of it.
        """
        results = self.opened.run.results
        if not rows.size:  # a run that retrieved nothing says nothing of documents either
            return pl.DataFrame(schema={"key": pl.String, "label": pl.String})
        begins = pl.col("text").str.replace_all(r"\s+", " ").str.strip_chars()
        place = pl.format("{}[{}:{}]", "doc_id", "start", "end")
        ways = {
            (self._items,): (pl.col(self._items), pl.col(self._items)),
            ("doc_id", "start", "end"): (place, place),
            ("text",): (pl.col("text"), begins.str.head(LABEL_LENGTH)),
        }
        used = []
        for names, way in ways.items():
            if set(names) <= set(results.columns):
                used.append(way)
                if not any(results[name].null_count() for name in names):
                    break  # nobody looks at long texts of items that have a name
        keys, labels = zip(*used, strict=True)
        return results[rows].select(key=pl.coalesce(keys), label=pl.coalesce(labels))


MAX_RELEVANT = 50
"""How many relevant items of a query are named at most."""


class RankedLists(Sequence[Json]):
    """One a query: what each run returned, what of it was found, and what should have been.

    A run that is not at hand has an empty list.
    """

    def __init__(self, runs: Sequence[ScoredLists | None]) -> None:
        shown = next(run for run in runs if run is not None)
        self._n = n = shown.opened.query_ids.len()
        self._items, self._places = _side_by_side(runs, n)
        self._hits = [
            _QueryColumns(pl.DataFrame(schema=HITS) if run is None else run.hits.select(*HITS), n)
            for run in runs
        ]
        self._lengths = [[0] * n if run is None else run.length.tolist() for run in runs]
        self._wanted = _QueryColumns(_relevant_items(shown), n)
        self._counts = _gold_counts(shown)

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


class _QueryColumns:
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


def _side_by_side(
    runs: Sequence[ScoredLists | None], n_queries: int
) -> tuple[_QueryColumns, list[_QueryColumns]]:
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
    places = [_QueryColumns(placed.filter(whose == at), n_queries) for at in range(len(runs))]
    return _QueryColumns(items, n_queries), places


def _relevant_items(shown: ScoredLists) -> pl.DataFrame:
    """Return the relevant items of each query, the highest grades first."""
    if RANK.name not in shown.families:
        return pl.DataFrame(schema={"query": pl.Int64, "item_id": pl.String, "grade": pl.Int64})
    judged = shown.opened.session.prepared.table.select("query", "item_id", "grade")
    relevant = judged.filter(pl.col("grade") >= min_relevant_grade(shown.measure))
    ordered = relevant.sort("query", "grade", "item_id", descending=[False, True, False])
    return ordered.group_by("query", maintain_order=True).head(MAX_RELEVANT)


def _gold_counts(shown: ScoredLists) -> dict[str, list[int]]:
    """Count by kind of gold what should be found in each query; -1 where gold does not say."""
    counts = {}
    for family, kind in GOLD_KINDS.items():
        if family in shown.families:
            reading = shown.opened.readings[family]
            wanted = kind.found(reading, shown.measure).wanted
            counts[kind.name] = np.where(reading.given, wanted, -1).tolist()
    return counts
