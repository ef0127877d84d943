"""The source of gold, which is read as a whole, or partitioned by query if it is large.

The judgments of gold that does not fit into the memory limit are written to temporary files; the
queries, with their texts and fields, stay in memory. Only files with nothing but judgments are
partitioned.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from weakref import finalize

import polars as pl

from karat.data.data_file import DataFile, PathSource, path_of
from karat.data.file_sizes import BINARY, table_bytes, text_bytes
from karat.data.gold import Gold
from karat.data.gold_tables import NO_JUDGMENTS
from karat.data.spill import SpillFolder, part_numbers
from karat.errors import InputError, KaratWarning
from karat.files import is_pipe

_TEXT_EXPANSION, _TABLE_EXPANSION = 8, 4
"""How many times as large as its text or its table gold is while it is read and prepared."""
_PARTS_IN_LIMIT = 8
"""A part of gold takes up to this part of the limit while it is scored."""


_SMALLEST_PART = 1 << 20


class PartitionedGold:
    """Gold whose judgments are in temporary files, in parts of whole queries."""

    def __init__(self, files: list[DataFile], source: PathSource, n_parts: int, size: int) -> None:
        """Read the files; raise a `NotInPiecesError` if they contain more than judgments."""
        self.n_parts = n_parts
        self._folder = SpillFolder()
        self.close = finalize(self, self._folder.close)
        self._query_ids = _DistinctIds()
        self._empty: set[str] = set()
        """The queries with an empty list of judgments."""
        try:
            self.queries = self._read(files, source, size)
        except BaseException:
            self.close()
            raise
        self._empty_ids = pl.Series("query_id", sorted(self._empty), pl.String)

    @property
    def query_ids_judged(self) -> pl.Series:
        """The ids of the queries with a list of judgments, even an empty one."""
        return pl.concat([self._query_ids.ids, self._empty_ids])

    def part(self, number: int) -> Gold:
        """Return the gold of a part of the queries."""
        query_data = self.queries.query_data
        assert query_data is not None, "the queries are a table"
        query_data = query_data.filter(part_numbers(query_data["query_id"], self.n_parts) == number)
        judgments = self._folder.part(number)
        empty = query_data["query_id"].filter(
            query_data["query_id"].is_in(self._empty_ids.implode())
        )
        return replace(
            self.queries,
            judgment_data=NO_JUDGMENTS if judgments is None else judgments,
            query_data=query_data,
            empty_judgments=empty.to_list(),
        )

    def only(self, *query_ids: str) -> Gold:
        """Return the gold of the given queries."""
        numbers = part_numbers(pl.Series("query_id", query_ids, pl.String), self.n_parts)
        parts = [self.part(number).only(*query_ids) for number in numbers.unique().sort()]
        return replace(
            self.queries.only(*query_ids),
            judgment_data=pl.concat([NO_JUDGMENTS, *(part.judgments for part in parts)]),
            empty_judgments=[query for part in parts for query in part.empty_judgments],
        )

    def _read(self, files: list[DataFile], source: PathSource, size: int) -> Gold:
        """Write the judgments to the temporary files, and return gold without them."""
        from karat.data.formats.registry import combined_queries, unit_of_offsets

        parts, pending = [], _Pending(self._folder, self.n_parts, size)
        for file in files:
            pieces, ids = [], _DistinctIds()
            for piece in file.tracked(_pieces(file, source), "sorting"):
                pending.add(piece.judgments)
                ids.add(piece.judgments["query_id"])
                self._empty.update(piece.empty_judgments)
                pieces.append(replace(piece, judgment_data=None))
            parts.append(_gold_of_file(pieces, ids.ids))
            self._query_ids.add(ids.ids)
        pending.write()
        self._empty.difference_update(self._query_ids.ids)
        name = parts[0].name if len(parts) == 1 else path_of(source)
        return Gold(
            query_data=combined_queries(parts),
            offsets=unit_of_offsets(parts, path_of(source) or ""),
            name=name,
            settings=parts[0].settings,
            recognised={ours: name for part in parts for ours, name in part.recognised.items()},
        )


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
    """Rows that are written to the temporary files as soon as they take `size` bytes."""

    def __init__(self, folder: SpillFolder, n_parts: int, size: int) -> None:
        self._folder, self._n_parts, self._size = folder, n_parts, size
        self._tables: list[pl.DataFrame] = []

    def add(self, table: pl.DataFrame) -> None:
        self._tables.append(table)
        if sum(table.estimated_size() for table in self._tables) >= self._size:
            self.write()

    def write(self) -> None:
        if self._tables:
            table, self._tables = pl.concat(self._tables), []
            self._folder.add(table, part_numbers(table["query_id"], self._n_parts), self._n_parts)


def _pieces(file: DataFile, source: PathSource) -> Iterator[Gold]:
    from karat.data.formats.registry import gold_pieces

    return gold_pieces(file, source.format)


def _gold_of_file(pieces: list[Gold], query_ids: pl.Series) -> Gold:
    """Return the gold of a file without its judgments, from its pieces without theirs."""
    fields = [piece.query_data for piece in pieces if piece.query_data is not None]
    assert len(fields) <= 1, "the last piece has the fields of all queries"
    empty = [query for piece in pieces for query in piece.empty_judgments]
    ids = [query_ids, pl.Series("query_id", empty, pl.String), *(t["query_id"] for t in fields)]
    queries = pl.concat(ids).unique().to_frame()
    for table in fields:
        queries = queries.join(table, on="query_id", how="left")
    return Gold(
        query_data=queries,
        offsets=pieces[0].offsets,
        name=pieces[0].name,
        settings=pieces[0].settings,
        recognised={ours: name for piece in pieces for ours, name in piece.recognised.items()},
    )


def open_gold(data: Any, memory: int) -> Gold | PartitionedGold:
    """Return gold from any source: partitioned if it is a large file, otherwise as a whole."""
    from karat.data.formats.base import NotInPiecesError

    path = path_of(data)
    if path is None or is_pipe(path):
        return Gold.open(data)
    source = data if isinstance(data, PathSource) else PathSource(path)
    files, size = _files_and_size(source)
    if size <= memory:
        return Gold.open(data)
    try:
        return _partitioned(source, files, size, memory)
    except NotInPiecesError:
        warnings.warn(
            KaratWarning(
                f"{path}: this gold is held in memory, which takes about {size / (1 << 20):,.0f} "
                f"MiB, more than the limit of {memory / (1 << 20):,.0f} MiB; files with judgments "
                "only, in TREC, CSV, Parquet or JSON Lines, are read in parts"
            ),
            stacklevel=2,
        )
        return Gold.open(data)


def _files_and_size(source: PathSource) -> tuple[list[DataFile], int]:
    """Return the files, and about how many bytes it takes to read and prepare gold as a whole."""
    from karat.data.formats.registry import sources

    try:
        files = sources(source.path, source.columns)
        size = sum(
            _TABLE_EXPANSION * table_bytes(file)
            if file.ending in BINARY
            else _TEXT_EXPANSION * text_bytes(file)
            for file in files
        )
    except InputError:  # reading it raises the error
        return [], 0
    return files, size


def _partitioned(
    source: PathSource, files: list[DataFile], size: int, memory: int
) -> PartitionedGold:
    for file in files:
        file.limit_memory(memory)
    part_size = max(memory // _PARTS_IN_LIMIT, _SMALLEST_PART)
    gold = PartitionedGold(files, source, -(-size // part_size), part_size)
    if source.queries is not None:
        gold.queries = gold.queries.with_query_texts(source.queries, columns=source.columns)
    return gold
