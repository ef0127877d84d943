"""The ranked lists of queries as rows, and what kernels recorded about each rank."""

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
class QueryRows:
    """The rows of all queries; those of query i are `bounds[i]` to `bounds[i + 1]`."""

    bounds: list[int]
    columns: dict[str, list[Any]]
    grades: dict[int, dict[str, int]] = field(default_factory=dict)
    """The grades of the judged items of each query, for measures that use grades."""

    def length(self, query: int) -> int:
        """Return the number of rows of a query."""
        return self.bounds[query + 1] - self.bounds[query]

    def rows(self, query: int, end: int) -> list[Row]:
        """Return the first `end` rows of a query as new dicts."""
        begin = self.bounds[query]
        stop = min(begin + end, self.bounds[query + 1])
        rows = zip(*(column[begin:stop] for column in self.columns.values()), strict=True)
        return [dict(zip(self.columns, row, strict=True)) for row in rows]

    def first_ranks(self, query: int, cutoff: int | None = None) -> dict[str, int]:
        """Return the first rank of each item of a query, up to the cutoff."""
        begin, stop = self.bounds[query], self.bounds[query + 1]
        first: dict[str, int] = {}
        for rank, item in enumerate(self.columns["item"][begin:stop][:cutoff], 1):
            first.setdefault(item, rank)
        return first


def query_rows(gold: PreparedGold, run: Run, plan: Plan, reading: FamilyInput) -> QueryRows:
    """Return the rows that the measures of a plan read; they must be of one family."""
    return _ROWS_BY_FAMILY[plan.measures[0].declaration.family](gold, run, plan, reading)


def _ranked_rows(gold: PreparedGold, run: Run, plan: Plan, _: FamilyInput) -> QueryRows:
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


def _span_rows(gold: PreparedGold, run: Run, plan: Plan, _: FamilyInput) -> QueryRows:
    spans = with_chunk_columns(run, plan.chunks, "doc_id", "start", "end")
    name = pl.format("{}[{}:{}]", "doc_id", "start", "end") if spans.height else pl.lit("")
    return _by_query(gold, _with_ranks(_numbered(gold, spans.select("query_id", item=name))))


def _evidence_rows(gold: PreparedGold, _: Run, __: Plan, reading: FamilyInput) -> QueryRows:
    matches = reading.data_as(EvidenceMatches)
    ids = matches.ids or [None] * len(matches.items.text)
    names = [
        " ".join(text.split()) if item is None else item
        for item, text in zip(ids, matches.items.text, strict=True)
    ]
    columns = {"query": matches.items.query, "rank": matches.rank, "item": names}
    return _by_query(gold, pl.DataFrame(columns, schema_overrides={"item": pl.String}))


def _item_rows(gold: PreparedGold, run: Run, _: Plan, __: FamilyInput) -> QueryRows:
    items = run.results.select("query_id", item=_item_name(run.results.columns))
    return _by_query(gold, _with_ranks(_numbered(gold, items)))


def _timing_rows(gold: PreparedGold, run: Run, _: Plan, __: FamilyInput) -> QueryRows:
    assert run.timings is not None
    return _by_query(gold, _numbered(gold, run.timings).select("query", "stage", "ms"))


def _call_rows(gold: PreparedGold, run: Run, _: Plan, __: FamilyInput) -> QueryRows:
    assert run.calls is not None
    tokens = {"prompt_tokens": "in", "completion_tokens": "out"}
    calls = _numbered(gold, run.calls).select("query", "stage", "model", *tokens)
    return _by_query(gold, calls.rename(tokens))


_ROWS_BY_FAMILY: dict[FamilyName, Callable[[PreparedGold, Run, Plan, FamilyInput], QueryRows]] = {
    RANK.name: _ranked_rows,
    SPAN.name: _span_rows,
    EVIDENCE.name: _evidence_rows,
    LATENCY.name: _timing_rows,
    COST.name: _call_rows,
    CONTEXT.name: _item_rows,
}


def _item_name(columns: Sequence[str]) -> pl.Expr:
    """Name an item by its id; without an id by its span; without a span by its text."""
    names = {
        ("item_id",): pl.col("item_id"),
        ("doc_id", "start", "end"): pl.format("{}[{}:{}]", "doc_id", "start", "end"),
        ("text",): pl.col("text").str.replace_all(r"\s+", " "),
    }
    return pl.coalesce([name for needed, name in names.items() if {*needed} <= {*columns}])


def _numbered(gold: PreparedGold, table: pl.DataFrame) -> pl.DataFrame:
    """Replace query ids by the numbers of the queries, and sort by them."""
    query = pl.Series("query", query_numbers(gold.query_ids, table["query_id"]))
    return table.drop("query_id").insert_column(0, query).sort("query", maintain_order=True)


def _with_ranks(listed: pl.DataFrame) -> pl.DataFrame:
    """Add the rank to each row; the rows of a query are already in that order."""
    return listed.select(
        "query",
        pl.int_range(1, pl.len() + 1).over("query").alias("rank"),
        pl.all().exclude("query"),
    )


def _by_query(gold: PreparedGold, table: pl.DataFrame) -> QueryRows:
    bounds = np.searchsorted(table["query"].to_numpy(), np.arange(gold.query_ids.len() + 1))
    columns = {name: table[name].to_list() for name in table.columns if name != "query"}
    return QueryRows(bounds.tolist(), columns)


class TraceNotes:
    """What a kernel recorded about each query, with spaces instead of underscores in names."""

    def __init__(self, trace: Trace, n_queries: int, family: FamilyName) -> None:
        tables = [_TraceTable(recorded, n_queries, family) for recorded in trace.tables]
        self._ideal_tables = [table for table in tables if table.is_ideal]
        self._list_tables = [table for table in tables if not table.is_ideal]
        names = (name for table in self._list_tables for name in table.columns)
        self.columns = list(dict.fromkeys(names))
        """The columns recorded for ranks, in the order of the kernel."""
        self.numbers = {
            _with_spaces(name): _to_python(values) for name, values in trace.numbers.items()
        }
        """The numbers recorded for whole queries, such as a sum or a denominator."""

    def counted_ranks(self, query: int, lists: QueryRows) -> Iterator[tuple[int, Row]]:
        """Yield the ranks of a query that count, with what was recorded for each."""
        for table in self._list_tables:
            if table.is_for_others:
                yield from table.other_ranks(query, lists)
            else:
                yield from table.ranks(query)

    def ideal(self, query: int) -> list[Row]:
        """Return the ideal list of a query."""
        rows: dict[int, Row] = {}
        for table in self._ideal_tables:
            for rank, values in table.ranks(query):
                rows.setdefault(rank, {"rank": rank}).update(values)
        return [rows[rank] for rank in sorted(rows)]


class _TraceTable:
    """One table that a kernel recorded, sorted by query.

    A `TracedRows` has values for certain ranks; a `TracedOthers` has functions that return the
    value of every other rank.
    """

    def __init__(
        self, recorded: TracedRows | TracedOthers, n_queries: int, family: FamilyName
    ) -> None:
        self.is_for_others = isinstance(recorded, TracedOthers)
        self.is_ideal = isinstance(recorded, TracedRows) and recorded.ideal
        places = recorded.places
        self._bounds = np.searchsorted(places.query, np.arange(n_queries + 1)).tolist()
        self._ranks: list[int] = places.rank.tolist()
        self._cutoff = recorded.cutoff if isinstance(recorded, TracedOthers) else None
        self.columns: dict[str, Any] = {
            _with_spaces(name): column if self.is_for_others else _to_python(column)
            for name, column in recorded.columns.items()
        }
        if self.is_ideal and FAMILIES[family].is_graded:
            self.columns = {"grade": places.grade.tolist()} | self.columns

    def ranks(self, query: int) -> Iterator[tuple[int, Row]]:
        for row in range(self._bounds[query], self._bounds[query + 1]):
            yield self._ranks[row], {name: column[row] for name, column in self.columns.items()}

    def other_ranks(self, query: int, lists: QueryRows) -> Iterator[tuple[int, Row]]:
        """Yield the first rank of each item that has no recorded rank."""
        recorded_ranks = set(self._ranks[self._bounds[query] : self._bounds[query + 1]])
        for rank in lists.first_ranks(query, self._cutoff).values():
            if rank not in recorded_ranks:
                yield rank, {name: value_at(rank) for name, value_at in self.columns.items()}


def _with_spaces(name: str) -> str:
    return name.replace("_", " ")


def _to_python(values: Any) -> list[Any]:
    """Return NumPy values as Python values; NaN becomes None."""
    plain: list[Any] = np.asarray(values).tolist()
    return [None if isinstance(value, float) and math.isnan(value) else value for value in plain]
