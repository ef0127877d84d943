"""The source of a run, which reads the run on demand: as a whole, or in batches of whole queries.

This is the only place that reads a run; `karat.engines.batches` chooses between these ways:

- A small run is read as a whole, and cached if there is room.
- A run that exceeds the memory limit is read in batches. So is a run that fits but is too large for
  the cache, unless facts about the whole run are needed first. A format reads a file in pieces,
  which are cut into batches of whole queries.
- If the rows of a query are not next to each other, the pieces are first partitioned by query, in
  memory or into temporary files. Then each part is a batch.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import cached_property
from itertools import chain, islice, pairwise
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, finalize

import numpy as np
import polars as pl

from karat.data.data_file import DataFile, PathSource, path_of
from karat.data.file_sizes import estimated_bytes, estimated_table_bytes
from karat.data.ranking import QuerySegments
from karat.data.run import NO_RESULTS, Run
from karat.data.spill import PartsInMemory, SpillFolder, divided, part_numbers
from karat.errors import InputError, warnings_once, with_warnings_once
from karat.files import is_pipe
from karat.memory_limit import default_memory
from karat.read_ahead import map_ahead
from karat.steps import tracked

if TYPE_CHECKING:
    from karat.data.formats.base import RunPiece

CACHE_BYTES = 256 * 2**20
"""The maximum total size of all cached runs in this process, in bytes; less with a low limit.

A run is scored first, and its lists are needed again later, by a report or an explanation. Small
runs are cached until then. Other runs are read again, so that memory does not grow with the number
and the size of the runs.
"""
_CACHE_SHARE = 1 / 4
"""The share of the memory limit that cached runs may take."""
TABLE_EXPANSION = 3
"""Memory for reading and scoring a run, as a multiple of the size of its table."""
_TEXT_EXPANSION = 5
"""The same, as a multiple of the size of its text."""
_BATCH_EXPANSION = 24
"""Peak memory while a batch is scored, as a multiple of the size of its table."""
_SMALLEST_BATCH, _LARGEST_BATCH = 1 << 20, 1 << 24
_LARGEST_WHOLE = _TEXT_EXPANSION * CACHE_BYTES
"""A run that needs more memory is read in batches even if it fits into the memory limit."""
_PENDING_SHARE = 1 / 32
"""The share of the memory limit for rows that are collected before they are divided into parts."""
_PARTS_AHEAD = 2
"""How many parts are sorted ahead, while another is scored."""
_FIRST_ROWS = 10_000
_BYTES_PER_DICT_RESULT = 64
"""The size of a row of the table that is built from a dict."""
_TABLES = ("errors", "timings", "calls", "attempts", "responses")
"""The tables of a run with a column of query ids, besides the results."""

_cached_runs: WeakKeyDictionary[RunSource, Run] = WeakKeyDictionary()
_cache_lock = Lock()


class RunSource:
    """The source of a run: a path, a glob pattern, a table, a dict, records or a `Run`.

    `memory` is how many bytes the run may take. The default is `default_memory()`.

    >>> RunSource({"q1": ["a", "b"], "q2": ["c"]}).read().results.height
    3
    """

    def __init__(self, data: Any, memory: int | None = None) -> None:
        self.data = data
        self.memory = default_memory() if memory is None else memory
        self._parts: SpillFolder | PartsInMemory | None = None
        self._n_parts = 0
        self._headers: dict[int, RunPiece] = {}
        """For each partitioned file, by its number: its first piece, without results."""
        self._first_header: Run | None = None
        """The first file's header, which is used for a run in several files."""
        self._shown_warnings: set[str] = set()
        """A run in batches may be read several times, but each warning is shown only once."""

    @property
    def path(self) -> str | None:
        """The path of the run, or None if the source is not a path."""
        return path_of(self.data)

    @property
    def is_in_memory(self) -> bool:
        """Whether the run is in memory, so that `read` is fast."""
        return isinstance(self.data, Run) or self in _cached_runs

    @cached_property
    def is_large(self) -> bool:
        """Whether the run probably exceeds the memory limit and is therefore read in batches."""
        from karat.data.formats.table_files import is_table

        if self.path is None or self.is_in_memory or is_pipe(self.path):
            return False
        try:
            return self._estimated_size > self.memory or any(
                # Reading such a table as a whole may raise an error; reading it in pieces does not.
                is_table(file) and estimated_table_bytes(file) > file.expanded_limit
                for file in self._files()
            )
        except InputError:  # no such file, for example; `read` raises the error
            return False

    @cached_property
    def is_faster_in_batches(self) -> bool:
        """Whether a run that fits into the memory limit is faster if it is read in batches.

        This is the case if it is too large for the cache: reading and scoring then overlap, and
        memory is reused.
        """
        from karat.data.formats.registry import has_run_pieces

        if self.path is None or self.is_in_memory or self.is_large or is_pipe(self.path):
            return False
        try:
            if self._estimated_size <= _LARGEST_WHOLE:
                return False
            return all(has_run_pieces(file, self._format) for file in self._files())
        except InputError:  # `read` raises the error
            return False

    @property
    def share_in_memory(self) -> float:
        """The approximate share of the run that fits into the memory limit."""
        return min(self.memory / self._estimated_size, 1.0) if self.is_large else 1.0

    @cached_property
    def _estimated_size(self) -> int:
        """The estimated number of bytes needed to read and score the whole run."""
        return estimated_bytes(self._files(), _TEXT_EXPANSION, TABLE_EXPANSION)

    @cached_property
    def content_bytes(self) -> int:
        """The estimated size of the text or table in the files; 0 if the source is not a path."""
        if self.path is None or is_pipe(self.path):
            return 0
        try:
            return estimated_bytes(self._files(), 1, 1)
        except (InputError, OSError):  # the file was removed after it was read
            return 0

    def _files(self) -> list[DataFile]:
        from karat.data.formats.registry import run_files

        columns = self.data.columns if isinstance(self.data, PathSource) else None
        files = run_files(path_of(self.data) or "", self._format, columns)
        for file in files:
            file.limit_memory(self.memory)
        return files

    @property
    def _format(self) -> str | None:
        return self.data.format if isinstance(self.data, PathSource) else None

    def read(self) -> Run:
        """Return the whole run, from the cache if possible."""
        if isinstance(self.data, Run):
            return self.data
        run = _cached_runs.get(self)
        if run is None:
            with warnings_once(self._shown_warnings):
                run = Run.open(self.data)
            most = min(CACHE_BYTES, int(_CACHE_SHARE * self.memory))
            with _cache_lock:
                if _size(run) + sum(map(_size, _cached_runs.values())) <= most:
                    _cached_runs[self] = run
        return run

    @property
    def _batch_bytes(self) -> int:
        return min(max(self.memory // _BATCH_EXPANSION, _SMALLEST_BATCH), _LARGEST_BATCH)

    def batches(self) -> Iterator[Run]:
        """Yield the run of a path in batches.

        If the rows of a query are not next to each other, it may be in several batches: the caller
        must check for this and call `partition`. If the first rows already show it, the run is
        partitioned at once.
        """
        if self._parts is not None:
            parts = self._runs_by_part(range(self._n_parts))
            for runs in tracked(parts, f"scoring {self._label}", self._n_parts):
                yield from runs
            return
        for number, file in enumerate(self._files()):
            pieces = self._pieces(file)
            first = list(islice(pieces, 1))
            pieces = chain(first, pieces)
            if number == 0 and not all(map(_starts_grouped, first)):
                self.partition(pieces=pieces)
                yield from self.batches()
                return
            yield from _whole_queries(pieces, self._batch_bytes)

    def read_only(self, query_ids: Iterable[str]) -> Run:
        """Return the results of some queries; a large run is not read as a whole."""
        selected = set(query_ids)
        if not self.is_large:
            return self.read().only(selected)
        from karat.data.formats.registry import combined_runs

        runs: list[Run] = []
        for file in self._files():
            pieces = [replace(p, run=p.run.only(selected)) for p in self._pieces(file)]
            runs += _whole_queries(pieces, sys.maxsize)
        return replace(combined_runs(runs, self.path or ""), name=runs[0].name)

    def partitions(self, n_parts: int) -> Iterator[Iterator[Run]]:
        """Yield, for each of the parts of `part_numbers`, an iterator over its runs."""
        if not self.is_large:
            parts = _divided_run(self.read(), n_parts)
            for number in range(n_parts):
                yield iter([parts[number]] if number in parts else [])
            return
        if self._parts is None:
            self.partition(n_parts=n_parts)
        for number in tracked(range(n_parts), f"scoring {self._label}", n_parts):
            yield chain.from_iterable(self._runs_by_part(range(number, self._n_parts, n_parts)))

    @property
    def _label(self) -> str:
        return Path(self.path or "the run").name

    def partition(
        self,
        query: str | None = None,
        n_parts: int = 1,
        pieces: Iterator[RunPiece] | None = None,
    ) -> None:
        """Divide the results by query into parts, whose number is a multiple of `n_parts`.

        They are written to temporary files if the run exceeds the memory limit. `query` is the id
        of a query that was in two batches, if that is the reason. `pieces` are the pieces of the
        first file, if reading it has started.
        """
        self._parts = parts = SpillFolder() if self.is_large else PartsInMemory()
        finalize(self, parts.close)
        self._n_parts = max(-(-self.content_bytes // self._batch_bytes // n_parts), 1) * n_parts
        self._n_parts = max(self._n_parts, 2)
        size = max(2 * self._batch_bytes, int(_PENDING_SHARE * self.memory)) if self.is_large else 0
        for number, file in enumerate(self._files()):
            pending: list[RunPiece] = []
            if number or pieces is None:
                pieces = self._pieces(file, "sorting")
            for piece in pieces:
                if piece.ranked is None and query in piece.run.query_ids:
                    assert query is not None
                    raise self.repeated_query(query)
                pending.append(piece)
                if sum(piece.run.results.estimated_size() for piece in pending) >= size:
                    self._add(pending, number)
                    pending = []
            self._add(pending, number)

    def _add(self, pieces: list[RunPiece], number: int) -> None:
        """Divide pieces of the file with this number into parts."""
        from karat.data.formats.registry import combined_runs

        if not pieces:
            return
        assert self._parts is not None
        if pieces[0].ranked is None:
            # These pieces are whole queries, so timings and other tables are divided, too.
            query_ids = pl.concat([piece.run.query_ids for piece in pieces])
            if query_ids.is_duplicated().any():
                query = query_ids.filter(query_ids.is_duplicated())[0]
                raise self.repeated_query(query)
            run = combined_runs([piece.run for piece in pieces], self.path or "")
            run = replace(run, name=pieces[0].run.name)
            for part, part_of_run in _divided_run(run, self._n_parts).items():
                self._parts.add_object(part_of_run, part)
            return
        self._headers[number] = replace(pieces[0], run=pieces[0].run.with_results(NO_RESULTS))
        table = pl.concat([piece.run.results for piece in pieces])
        table = table.with_columns(file=pl.lit(number, pl.Int32))
        self._parts.add(table, part_numbers(table["query_id"], self._n_parts), self._n_parts)

    def _runs_by_part(self, numbers: Iterable[int]) -> Iterator[list[Run]]:
        """Yield the results of parts, while threads sort those of the next parts."""
        queue = (number for number in numbers)
        with closing(map_ahead(queue, self._runs_of_part, _PARTS_AHEAD)) as parts:
            for _, runs in parts:
                yield runs

    def _runs_of_part(self, number: int) -> list[Run]:
        """Return the results of a part, those of each file separately."""
        assert self._parts is not None
        runs: list[Run] = list(self._parts.objects(number))
        table = self._parts.part(number)
        if table is None:
            return runs
        if len(self._headers) > 1:
            queries = table.select("query_id", "file").unique()["query_id"]
            if queries.is_duplicated().any():
                query = queries.filter(queries.is_duplicated()).sort()[0]
                raise self.repeated_query(query)
        for (file,), part in table.partition_by("file", as_dict=True, include_key=False).items():
            header = self._headers[file]
            assert header.ranked is not None, "pieces of whole queries are stored as objects"
            runs.append(header.run.with_results(header.ranked(part)))
        return runs

    def repeated_query(self, query: str) -> InputError:
        """Return the error for a query that is in two files, or in two rows with lists."""
        files = self._files()
        if len(files) > 1 and sum(self._is_in(query, file) for file in files) > 1:
            return InputError(
                f"query {query!r} is in more than one of the files",
                path=self.path,
                hint="give the files of a single run; all results of a query must be in one file",
            )
        return InputError(
            f"query {query!r} is in more than one row",
            path=self.path,
            field="query_id",
            hint="write all results of a query into one row",
        )

    def _is_in(self, query: str, file: DataFile) -> bool:
        return any(query in piece.run.query_ids for piece in self._quiet_pieces(file))

    def close(self) -> None:
        """Remove the temporary files, if there are any."""
        if self._parts is not None:
            self._parts.close()
            self._parts = None

    def _pieces(self, file: DataFile, activity: str = "reading") -> Iterator[RunPiece]:
        """Yield the pieces of a file; each warning is shown only once."""
        yield from file.tracked(self._quiet_pieces(file), activity)

    def _quiet_pieces(self, file: DataFile) -> Iterator[RunPiece]:
        from karat.data.formats.native_run import warn_of_rises
        from karat.data.formats.registry import run_pieces

        n_rises, name = 0, None
        for piece in with_warnings_once(run_pieces(file, self._format), self._shown_warnings):
            n_rises, name = n_rises + piece.n_rises, piece.run.name
            yield replace(piece, run=self._with_header(piece.run))
        with warnings_once(self._shown_warnings):
            warn_of_rises(n_rises, name)

    def _with_header(self, run: Run) -> Run:
        """Return a piece with the name and the settings of the whole run.

        They differ only for a run in several files, which must use the same unit of offsets.
        """
        from karat.data.formats.registry import unit_of_offsets

        if self._name is None:
            return run
        if self._first_header is None:
            self._first_header = Run(NO_RESULTS, offsets=run.offsets, settings=run.settings)
        unit_of_offsets([self._first_header, run], self.path or "")
        return replace(run, name=self._name, settings=self._first_header.settings)

    @cached_property
    def _name(self) -> str | None:
        """The name of a run in several files or in a folder; None for a run in one file."""
        from karat.data.formats.registry import name_of_parts

        return name_of_parts(self._files(), self.path or "")


def _divided_run(run: Run, n_parts: int) -> dict[int, Run]:
    """Return the run of each part that has queries, by part number."""
    if run.lists is not None:
        numbers = part_numbers(run.query_ids, n_parts)
        return {
            number: run.only(run.query_ids.filter(numbers == number))
            for number in numbers.unique().sort()
        }
    tables = {"result_data": run.results} | {
        name: table for name in _TABLES if (table := getattr(run, name)) is not None
    }
    rows_by_part = {
        name: dict(divided(table, part_numbers(table["query_id"], n_parts), n_parts))
        for name, table in tables.items()
    }
    empty: dict[int, list[str]] = defaultdict(list)
    for query, number in zip(run.empty, _part_numbers_of(run.empty, n_parts), strict=True):
        empty[number].append(query)
    candidates = {} if run.candidates is None else _divided_run(run.candidates, n_parts)
    parts = {}
    for number in sorted({*empty, *candidates, *chain.from_iterable(rows_by_part.values())}):
        rows: dict[str, Any] = {
            name: rows_by_part[name].get(number, table.clear()) for name, table in tables.items()
        }
        if run.candidates is not None:
            rows["candidates"] = candidates.get(number, run.candidates.only([]))
        parts[number] = replace(run, empty=empty[number], **rows)
    return parts


def _part_numbers_of(query_ids: Sequence[str], n_parts: int) -> list[int]:
    return part_numbers(pl.Series(query_ids, dtype=pl.String), n_parts).to_list()


def _starts_grouped(piece: RunPiece) -> bool:
    """Return whether the rows of each query are next to each other in the first rows."""
    if piece.ranked is None:
        return True
    return QuerySegments.of(piece.run.results["query_id"].head(_FIRST_ROWS)).contiguous


def _whole_queries(pieces: Iterable[RunPiece], size: int) -> Iterator[Run]:
    """Yield runs of whole queries, with results of about `size` bytes.

    The last query is held back, because it may continue in the next piece.
    """
    rows: list[pl.DataFrame] = []
    for piece in pieces:
        if piece.ranked is None:
            yield piece.run
            continue
        rows.append(piece.run.results)
        n_bytes = sum(table.estimated_size() for table in rows)
        if n_bytes < size:
            continue
        table = pl.concat(rows)
        starts = QuerySegments.of(table["query_id"]).starts
        # A piece may be much larger than a batch.
        n_batches = max(round(n_bytes / size), 1)
        wanted = np.arange(n_batches) * table.height // n_batches
        cuts = np.searchsorted(starts, wanted).clip(0, starts.size - 1)
        bounds = np.unique(np.append(starts[cuts], starts[-1]))
        for start, stop in pairwise([0, *bounds.tolist()]):
            if start < stop:
                yield piece.run.with_results(piece.ranked(table[start:stop]))
        rows = [table[int(starts[-1]) :]]
    if rows:
        assert piece.ranked is not None, "all pieces of a file are of the same kind"
        yield piece.run.with_results(piece.ranked(pl.concat(rows)))


def _size(run: Run) -> int:
    """Return the memory that a run uses in addition to its source, in bytes."""
    if run.lists is not None:
        return _BYTES_PER_DICT_RESULT * int(run.lists.lengths.sum())
    tables = (run.results, run.timings, run.calls)
    size = sum(int(table.estimated_size()) for table in tables if table is not None)
    return size if run.candidates is None else size + _size(run.candidates)
