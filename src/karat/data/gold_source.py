"""Open gold: as a whole, or partitioned by query if it is large.

The rows of gold that does not fit into the memory limit are written to temporary files; the
queries, with their texts and fields, stay in memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from weakref import finalize

import polars as pl

from karat.data.corpus import Corpus
from karat.data.data_file import DataFile, PathSource, path_of
from karat.data.file_sizes import estimated_bytes
from karat.data.gold import Gold
from karat.data.gold_tables import NO_ALTERNATIVES, NO_EVIDENCE, NO_JUDGMENTS, NO_SPANS
from karat.data.span_checks import fault_error, locate_rows
from karat.data.spill import SpillFolder, part_numbers
from karat.errors import InputError, warn, with_warnings_once
from karat.files import is_pipe

_TEXT_EXPANSION, _TABLE_EXPANSION = 6, 4
"""Memory for reading and preparing gold, as multiples of the sizes of its text and its table."""
_LARGEST_SHARE = 3 / 4
"""Gold that needs more than this share of the limit is partitioned."""
_PART_SHARE = 1 / 8
"""The share of the limit for a part of gold while it is scored; runs get the rest."""
_SMALLEST_PART = 1 << 20
_TABLES = ("judgment_data", "spans", "evidence", "any_of")
_EMPTY_LISTS = ("empty_judgments", "empty_spans", "empty_evidence")
_CONVERTED = "spans in code points"


class PartitionedGold:
    """Gold whose rows are in temporary files, in parts of whole queries."""

    def __init__(
        self, files: list[DataFile], source: PathSource, n_parts: int, pending_bytes: int
    ) -> None:
        """Read the files; raise a `NotInPiecesError` if one cannot be read in pieces.

        Rows are collected up to `pending_bytes` before they are written.
        """
        self.n_parts = n_parts
        self._folder = SpillFolder()
        self.close = finalize(self, self._folder.close)
        self._spans = "spans"
        """The name of the table of spans in the temporary files."""
        with self._closed_after_error():
            self.outline = self._read(files, source, pending_bytes)
            """All queries, and an empty table for each kind of gold that there is."""

    @contextmanager
    def _closed_after_error(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self.close()
            raise

    @property
    def share_in_memory(self) -> float:
        """The approximate share of the gold that fits into the memory limit."""
        return min(1 / (_PART_SHARE * self.n_parts), 1.0)

    def part(self, number: int) -> Gold:
        """Return the gold of a part of the queries."""
        query_data = self.outline.query_data
        assert query_data is not None, "the queries are a table"
        tables = {
            name: self._folder.part(number, self._spans if name == "spans" else name)
            for name in (*_TABLES, *_EMPTY_LISTS)
        }
        rows: dict[str, Any] = {name: table for name, table in tables.items() if table is not None}
        for name in set(_EMPTY_LISTS) & rows.keys():
            rows[name] = rows[name]["query_id"].to_list()
        is_in_part = part_numbers(query_data["query_id"], self.n_parts) == number
        return replace(self.outline, query_data=query_data.filter(is_in_part), **rows)

    def only(self, *query_ids: str) -> Gold:
        """Return the gold of the given queries."""
        numbers = part_numbers(pl.Series("query_id", query_ids, pl.String), self.n_parts)
        gold = self.outline.only(*query_ids)
        for number in numbers.unique().sort():
            gold = _joined(gold, self.part(number).only(*query_ids))
        return gold

    def in_code_points(self, corpus: Corpus) -> PartitionedGold:
        """Convert the spans to code points, and check them against their documents."""
        with self._closed_after_error():
            self._convert_spans(corpus, self.outline.offsets)
        self.outline = replace(self.outline, offsets="codepoint")
        return self

    def _convert_spans(self, corpus: Corpus, unit: str) -> None:
        """Write the converted spans to new files.

        If spans do not fit their documents, raise the error of the query with the smallest id.
        """
        faults = []
        for spans in self._tables_of_spans():
            located = locate_rows(spans, corpus, unit)
            if (fault := located.first_fault) is not None:
                faults.append(fault)
            elif unit != "codepoint":
                numbers = part_numbers(located.table["query_id"], self.n_parts)
                self._folder.add(located.table, numbers, self.n_parts, _CONVERTED)
        if faults:
            first = min(faults, key=lambda fault: str(fault.row["query_id"]))
            raise fault_error(first, self._tables_of_spans(), corpus, unit, "spans")
        if unit != "codepoint":
            self._spans = _CONVERTED

    def _tables_of_spans(self) -> Iterator[pl.DataFrame]:
        for number in range(self.n_parts):
            if (spans := self._folder.part(number, self._spans)) is not None:
                yield spans

    def _read(self, files: list[DataFile], source: PathSource, pending_bytes: int) -> Gold:
        """Write the rows to the temporary files, and return gold without them."""
        from karat.data.formats.registry import combined_gold

        outlines, pending = [], _Pending(self._folder, self.n_parts, pending_bytes)
        for file in files:
            pieces, ids = [], _DistinctIds()
            for piece in file.tracked(with_warnings_once(_pieces(file, source)), "sorting"):
                tables = dict(_tables(piece))
                pending.add(tables)
                for table in tables.values():
                    ids.add(table["query_id"])
                pieces.append(_without_rows(piece))
            outlines.append(_outline(pieces, ids.ids))
        pending.write()
        return combined_gold(outlines, path_of(source) or "")


def _tables(gold: Gold) -> Iterator[tuple[str, pl.DataFrame]]:
    """Yield the name and the table of each kind of rows.

    Ids of queries with empty lists are tables with one column.
    """
    for name in _TABLES:
        table = gold.judgments if name == "judgment_data" else getattr(gold, name)
        if table is not None and table.height:
            yield name, table
    for name in _EMPTY_LISTS:
        if query_ids := getattr(gold, name):
            yield name, pl.DataFrame({"query_id": query_ids}, schema={"query_id": pl.String})


def _without_rows(gold: Gold) -> Gold:
    return replace(
        gold,
        judgment_data=NO_JUDGMENTS,
        spans=None if gold.spans is None else NO_SPANS,
        evidence=None if gold.evidence is None else NO_EVIDENCE,
        any_of=None if gold.any_of is None else NO_ALTERNATIVES,
        empty_judgments=(),
        empty_spans=(),
        empty_evidence=(),
    )


def _outline(pieces: list[Gold], query_ids: pl.Series) -> Gold:
    """Combine the outlines of the pieces of a file. `query_ids` are those of all rows."""
    fields = [piece.query_data for piece in pieces if piece.query_data is not None]
    assert len(fields) <= 1, "the last piece has the fields of all queries"
    queries = pl.concat([query_ids, *(table["query_id"] for table in fields)]).unique().to_frame()
    for table in fields:
        queries = queries.join(table, on="query_id", how="left")

    def first(name: str) -> pl.DataFrame | None:
        return next((t for piece in pieces if (t := getattr(piece, name)) is not None), None)

    return replace(
        pieces[0],
        query_data=queries,
        spans=first("spans"),
        evidence=first("evidence"),
        any_of=first("any_of"),
        recognised={ours: name for piece in pieces for ours, name in piece.recognised.items()},
    )


def _joined(one: Gold, other: Gold) -> Gold:
    """Return the first gold with the rows of both."""
    rows: dict[str, Any] = {
        name: [*getattr(one, name), *getattr(other, name)] for name in _EMPTY_LISTS
    }
    for name in _TABLES:
        if getattr(one, name) is not None:
            rows[name] = pl.concat([getattr(one, name), getattr(other, name)])
    return replace(one, **rows)


class _DistinctIds:
    """The distinct ids of a column that is read in pieces."""

    def __init__(self) -> None:
        self._ids = NO_JUDGMENTS["query_id"]
        self._added: list[pl.Series] = []

    def add(self, ids: pl.Series) -> None:
        self._added.append(ids.unique())
        if sum(map(len, self._added)) > self._ids.len():
            self._ids, self._added = self.ids, []

    @property
    def ids(self) -> pl.Series:
        return pl.concat([self._ids, *self._added]).unique()


class _Pending:
    """Tables that are written to the temporary files when they have `most_bytes`."""

    def __init__(self, folder: SpillFolder, n_parts: int, most_bytes: int) -> None:
        self._folder, self._n_parts, self._most_bytes = folder, n_parts, most_bytes
        self._tables: dict[str, list[pl.DataFrame]] = {}
        self._n_bytes = 0

    def add(self, tables: Mapping[str, pl.DataFrame]) -> None:
        for name, table in tables.items():
            self._tables.setdefault(name, []).append(table)
            self._n_bytes += int(table.estimated_size())
        if self._n_bytes >= self._most_bytes:
            self.write()

    def write(self) -> None:
        for name, tables in self._tables.items():
            table = pl.concat(tables)
            numbers = part_numbers(table["query_id"], self._n_parts)
            self._folder.add(table, numbers, self._n_parts, name)
        self._tables, self._n_bytes = {}, 0


def _pieces(file: DataFile, source: PathSource) -> Iterator[Gold]:
    from karat.data.formats.registry import gold_pieces

    return gold_pieces(file, source.format)


def open_gold(data: Any, memory: int) -> tuple[Gold | PartitionedGold, int]:
    """Return gold from any source, and the number of bytes of the limit that remain for runs.

    Large files are partitioned, and other gold is read as a whole.
    """
    from karat.data.formats.base import CONVERT, NotInPiecesError

    path = path_of(data)
    if path is None or is_pipe(path):
        return Gold.open(data), memory
    source = data if isinstance(data, PathSource) else PathSource(path)
    files, size = _files_and_size(source)
    if size <= _LARGEST_SHARE * memory:
        return Gold.open(data), memory - size
    try:
        return _partitioned(source, files, size, memory), int((1 - _PART_SHARE) * memory)
    except NotInPiecesError:
        warn(
            f"{path}: this gold cannot be read in parts, so all of it is read into memory. It "
            f"needs about {size / (1 << 20):,.0f} MiB, which may exceed the memory limit; "
            f"{CONVERT}, or raise the limit (--memory, memory=)",
            stacklevel=2,
        )
        return Gold.open(data), max(memory - size, int((1 - _LARGEST_SHARE) * memory))


def _files_and_size(source: PathSource) -> tuple[list[DataFile], int]:
    """Return the files, and the estimated memory for reading and preparing gold as a whole."""
    from karat.data.formats.registry import sources

    try:
        files = sources(source.path, source.columns)
        size = estimated_bytes(files, _TEXT_EXPANSION, _TABLE_EXPANSION)
    except InputError:  # reading it raises the error
        return [], 0
    return files, size


def _partitioned(
    source: PathSource, files: list[DataFile], size: int, memory: int
) -> PartitionedGold:
    for file in files:
        file.limit_memory(memory)
    part_size = max(int(_PART_SHARE * memory), _SMALLEST_PART)
    gold = PartitionedGold(files, source, -(-size // part_size), part_size)
    if source.queries is not None:
        gold.outline = gold.outline.with_query_texts(source.queries, columns=source.columns)
    return gold
