"""The lists of many queries row by row, with what kernels recorded of each place."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl

from karat.data.run import Run
from karat.match.align import collapse_to_documents, query_numbers, with_chunk_columns
from karat.match.evidence import EvidenceMatches
from karat.match.gold_index import PreparedGold
from karat.measures import Plan
from karat.measures.families import (
    CONTEXT,
    COST,
    EVIDENCE,
    FAMILIES,
    LATENCY,
    RANK,
    SPAN,
    FamilyInput,
    FamilyName,
)
from karat.measures.trace import Trace, TracedOthers, TracedRows

Row = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of all queries one after the other, by the number of the query; `bounds` part them."""

    bounds: list[int]
    columns: dict[str, list[Any]]
    grades: dict[int, dict[str, int]] = field(default_factory=dict)
    """By query, the grades of its judged items, where they are measured by."""

    def length(self, query: int) -> int:
        """Return how many rows a query has."""
        return self.bounds[query + 1] - self.bounds[query]

    def rows(self, query: int, end: int) -> list[Row]:
        """Return the first rows of a query, for others to write into."""
        begin = self.bounds[query]
        stop = min(begin + end, self.bounds[query + 1])
        listed = zip(*(column[begin:stop] for column in self.columns.values()), strict=True)
        return [dict(zip(self.columns, row, strict=True)) for row in listed]

    def first_ranks(self, query: int, cutoff: int | None = None) -> dict[str, int]:
        """Return the first rank of each item of a query."""
        begin, stop = self.bounds[query], self.bounds[query + 1]
        first: dict[str, int] = {}
        for rank, item in enumerate(self.columns["item"][begin:stop][:cutoff], 1):
            first.setdefault(item, rank)
        return first


def lists_of(gold: PreparedGold, run: Run, plan: Plan, reading: FamilyInput) -> Rows:
    """Lay out what the measures of a plan read, which are all of one family."""
    return _LISTS[plan.measures[0].declaration.family](gold, run, plan, reading)


def _ranked(gold: PreparedGold, run: Run, plan: Plan, _: FamilyInput) -> Rows:
    run = collapse_to_documents(run) if plan.level == "doc" else run
    listed = _numbered(gold, run.results.select("query_id", item="item_id"))
    judged = gold.table.select("query", "grade", item="item_id")
    listed = listed.join(judged, on=["query", "item"], how="left", maintain_order="left")
    if plan.conventions.unjudged == "skip":
        listed = listed.filter(pl.col("grade") >= 0)
    grades: dict[int, dict[str, int]] = {}
    for query, item, grade in judged.select("query", "item", "grade").iter_rows():
        grades.setdefault(query, {})[item] = grade
    return replace(_by_query(gold, _with_ranks(listed)), grades=grades)


def _spans(gold: PreparedGold, run: Run, plan: Plan, _: FamilyInput) -> Rows:
    places = with_chunk_columns(run, plan.chunks, "doc_id", "start", "end")
    place = pl.format("{}[{}:{}]", "doc_id", "start", "end") if places.height else pl.lit("")
    return _by_query(gold, _with_ranks(_numbered(gold, places.select("query_id", item=place))))


def _texts(gold: PreparedGold, _: Run, __: Plan, reading: FamilyInput) -> Rows:
    found = reading.data_as(EvidenceMatches)
    ids = found.ids or [None] * len(found.items.text)
    named = [
        " ".join(text.split()) if item is None else item
        for item, text in zip(ids, found.items.text, strict=True)
    ]
    columns = {"query": found.items.query, "rank": found.rank, "item": named}
    return _by_query(gold, pl.DataFrame(columns, schema_overrides={"item": pl.String}))


def _items(gold: PreparedGold, run: Run, _: Plan, __: FamilyInput) -> Rows:
    items = run.results.select("query_id", item=_name(run.results.columns))
    return _by_query(gold, _with_ranks(_numbered(gold, items)))


def _timings(gold: PreparedGold, run: Run, _: Plan, __: FamilyInput) -> Rows:
    assert run.timings is not None
    return _by_query(gold, _numbered(gold, run.timings).select("query", "stage", "ms"))


def _calls(gold: PreparedGold, run: Run, _: Plan, __: FamilyInput) -> Rows:
    assert run.calls is not None
    tokens = {"prompt_tokens": "in", "completion_tokens": "out"}
    calls = _numbered(gold, run.calls).select("query", "stage", "model", *tokens)
    return _by_query(gold, calls.rename(tokens))


_LISTS: dict[FamilyName, Callable[[PreparedGold, Run, Plan, FamilyInput], Rows]] = {
    RANK.name: _ranked,
    SPAN.name: _spans,
    EVIDENCE.name: _texts,
    LATENCY.name: _timings,
    COST.name: _calls,
    CONTEXT.name: _items,
}


def _name(columns: Sequence[str]) -> pl.Expr:
    """Name an item by its id, else by its place, else by its text."""
    ways = {
        ("item_id",): pl.col("item_id"),
        ("doc_id", "start", "end"): pl.format("{}[{}:{}]", "doc_id", "start", "end"),
        ("text",): pl.col("text").str.replace_all(r"\s+", " "),
    }
    return pl.coalesce([way for names, way in ways.items() if {*names} <= {*columns}])


def _numbered(gold: PreparedGold, table: pl.DataFrame) -> pl.DataFrame:
    """Put the number of each row's query in place of its id, and the rows in that order."""
    query = pl.Series("query", query_numbers(gold.query_ids, table["query_id"]))
    return table.drop("query_id").insert_column(0, query).sort("query", maintain_order=True)


def _with_ranks(listed: pl.DataFrame) -> pl.DataFrame:
    """Add the rank to each row; rows are in that order."""
    return listed.select(
        "query",
        pl.int_range(1, pl.len() + 1).over("query").alias("rank"),
        pl.all().exclude("query"),
    )


def _by_query(gold: PreparedGold, table: pl.DataFrame) -> Rows:
    bounds = np.searchsorted(table["query"].to_numpy(), np.arange(gold.query_ids.len() + 1))
    columns = {name: table[name].to_list() for name in table.columns if name != "query"}
    return Rows(bounds.tolist(), columns)


class Notes:
    """What was noted of each query; underscores in names have become spaces."""

    def __init__(self, workings: Trace, n_queries: int, family: FamilyName) -> None:
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
    """What was recorded of places, in the order of their queries."""

    def __init__(
        self, noted: TracedRows | TracedOthers, n_queries: int, family: FamilyName
    ) -> None:
        self.are_others = isinstance(noted, TracedOthers)
        self.ideal = isinstance(noted, TracedRows) and noted.ideal
        places = noted.places
        self._bounds = np.searchsorted(places.query, np.arange(n_queries + 1)).tolist()
        self._ranks: list[int] = places.rank.tolist()
        self._cutoff = noted.cutoff if isinstance(noted, TracedOthers) else None
        self.columns: dict[str, Any] = {
            _words(name): each if self.are_others else _plain(each)
            for name, each in noted.columns.items()
        }
        """Rows of values, or what gives one for a rank."""
        if self.ideal and FAMILIES[family].is_graded:
            self.columns = {"grade": places.grade.tolist()} | self.columns

    def places(self, query: int) -> Iterator[tuple[int, Row]]:
        for at in range(self._bounds[query], self._bounds[query + 1]):
            yield self._ranks[at], {name: each[at] for name, each in self.columns.items()}

    def others(self, query: int, lists: Rows) -> Iterator[tuple[int, Row]]:
        """Yield the ranks of items that are at none of the places, each item once."""
        known = set(self._ranks[self._bounds[query] : self._bounds[query + 1]])
        for rank in lists.first_ranks(query, self._cutoff).values():
            if rank not in known:
                yield rank, {name: worth(rank) for name, worth in self.columns.items()}


def _words(name: str) -> str:
    return name.replace("_", " ")


def _plain(values: Any) -> list[Any]:
    """Return NumPy values as Python values; NaN becomes None."""
    listed: list[Any] = np.asarray(values).tolist()
    return [None if isinstance(one, float) and math.isnan(one) else one for one in listed]
