"""Store the score tables of batches until all are scored.

Tables are in memory at first, and move to Parquet files when they take more than a small share of
the memory limit. At the end, they are combined one column at a time, so that peak memory is little
more than the result.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import polars as pl

from karat.data.spill import SpillFolder
from karat.engines.parts import PartResult
from karat.measures import ScoreTable
from karat.measures.score_table import order_of_queries, total_counts

_MEMORY_SHARE = 1 / 32
"""The share of the memory limit for tables that are not written yet."""
_TABLES = ("frame", "weights", "holes")
"""The tables of a `ScoreTable`. In a file, their columns are named "table:column"."""
_BATCH = "batch"


class TableStore:
    """The score tables of batches: in memory, or in files if they are large."""

    def __init__(self, memory: int) -> None:
        self._limit = int(_MEMORY_SHARE * memory)
        self._folder: SpillFolder | None = None
        self._tables: list[ScoreTable] = []
        """The table of each batch; without rows if they were written to a file."""
        self._n_written = 0

    def store(self, result: PartResult) -> PartResult:
        """Store the table of a result, and return the result with the number of the batch."""
        if result.table is None:
            return result
        self._tables.append(result.table)
        if sum(map(_size, self._tables[self._n_written :])) > self._limit:
            self._write()
        return replace(result, table=None, batch=len(self._tables) - 1)

    def combined(self, results: Iterable[PartResult]) -> ScoreTable:
        """Return the combined table of the batches of these results, which share no queries."""
        batches = [result.batch for result in results if result.batch is not None]
        tables = [self._tables[batch] for batch in batches]
        if self._folder is None:
            return tables[0] if len(tables) == 1 else ScoreTable.concat(tables)
        self._write()
        # Ignore the tables of an attempt that was abandoned because the run had to be partitioned.
        stored = self._folder.scan_whole().filter(pl.col(_BATCH).is_in(batches))
        order = order_of_queries(_column(stored, "frame:query_id"))
        frame, weights, holes = (
            pl.DataFrame(
                _column(stored, f"{name}:{column}")[order].alias(column)
                for column in getattr(tables[0], name).columns
            )
            for name in _TABLES
        )
        return ScoreTable(tables[0].measures, frame, total_counts(tables), weights, holes)

    def close(self) -> None:
        """Remove the files."""
        if self._folder is not None:
            self._folder.close()

    def _write(self) -> None:
        recent = range(self._n_written, len(self._tables))
        if not recent:
            return
        if self._folder is None:
            self._folder = SpillFolder()
        self._folder.write_whole(pl.concat([_flat(self._tables[batch], batch) for batch in recent]))
        for batch in recent:
            self._tables[batch] = _without_rows(self._tables[batch])
        self._n_written = len(self._tables)


def _flat(table: ScoreTable, batch: int) -> pl.DataFrame:
    """Return the columns of all tables, and the number of the batch."""
    columns = [
        column.alias(f"{name}:{column.name}") for name in _TABLES for column in getattr(table, name)
    ]
    return pl.DataFrame(columns).with_columns(pl.lit(batch).alias(_BATCH))


def _without_rows(table: ScoreTable) -> ScoreTable:
    return replace(table, **{name: getattr(table, name).clear() for name in _TABLES})


def _size(table: ScoreTable) -> int:
    return sum(int(getattr(table, name).estimated_size()) for name in _TABLES)


def _column(stored: pl.LazyFrame, name: str) -> pl.Series:
    return stored.select(name).collect()[name]
