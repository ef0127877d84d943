"""What the workers of Spark do: cut the rows of a partition into whole queries, and score them.

Rows arrive in batches that end anywhere. If the rows of each query are next to each other, they are
scored in pieces of whole queries while they arrive. The first and the last query of a partition may
continue in another one, so their rows are returned (`Border`), and the driver joins them. Whether a
query in the middle is in another partition, too, only the driver can see: each `TaskResult`
states its queries.
"""

from __future__ import annotations

import hashlib
import pickle
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from karat.arrays import Ints
from karat.data import frames
from karat.data.ranking import QuerySegments
from karat.data.run import NO_RESULTS, Run, run_of_table
from karat.engines.parts import Part
from karat.errors import InputError, KaratError

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from karat.match.gold_index import GoldParts, PreparedGold

ROWS_PER_PIECE = 250_000
"""How many rows are scored at a time, unless a single query has more."""
BYTES_PER_PIECE = 64 << 20
BYTES_PER_BORDER = 256 << 10
"""Rows at the borders of a partition are sent to the driver up to this size."""


@dataclass(frozen=True, eq=False)
class TaskResult:
    """The result for some whole queries, or the error of a wrong row."""

    result: Any = None
    error: KaratError | None = None
    n_rows: int = 0
    n_queries: int = 0
    checksum: int = 0
    """The sum of the checksums of the query ids."""
    in_gold: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    """The numbers of the queries that gold has."""
    unknown: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    """The hashes of the ids of all other queries."""


@dataclass(frozen=True, eq=False)
class Border:
    """The first and the last query of a partition, which may continue in other partitions."""

    query_ids: list[str]
    rows: pl.DataFrame | None
    """None if the rows are too large for the driver."""


@dataclass(frozen=True)
class Interleaved:
    """The rows of a query are not next to each other, so the partition was not scored."""


@dataclass(frozen=True, eq=False)
class PieceScorer:
    """Applies a function to the rows of whole queries."""

    function: bytes
    """Pickled with its code, since measures of a notebook cannot be imported by the workers."""
    query_column: str
    name: str | None

    @cached_property
    def _function(self) -> Callable[[Part], Any]:
        function: Callable[[Part], Any] = pickle.loads(self.function)  # noqa: S301 - by SparkRun
        return function

    def __call__(self, rows: pl.DataFrame, gold: GoldParts) -> TaskResult:
        """Return the result for some rows, with their share of gold."""
        try:
            run = self._run(rows)
            query_ids = run.query_ids
            numbers = gold.numbers(query_ids)
            known = numbers[numbers >= 0]
            unknown = query_ids.filter(numbers < 0).to_list()
            result = self._function(Part(gold.part(known), run))
        except KaratError as error:
            return TaskResult(error=error)
        hashes = np.fromiter(map(_hash, unknown), np.int64, len(unknown))
        return TaskResult(
            result, None, rows.height, query_ids.len(), _checksum(query_ids), known, hashes
        )

    def with_gold(self, rows: pl.DataFrame, gold: PreparedGold) -> TaskResult:
        """Return the result for the rows and the gold of the same share of the queries."""
        try:
            run = self._run(rows) if rows.height else Run(NO_RESULTS, name=self.name)
            result = self._function(Part(gold, run))
        except KaratError as error:
            return TaskResult(error=error)
        query_ids = run.query_ids
        return TaskResult(result, None, rows.height, query_ids.len(), _checksum(query_ids))

    def _run(self, rows: pl.DataFrame) -> Run:
        return run_of_table(rows, name=self.name, locate=Locate(rows))


@dataclass(frozen=True, eq=False)
class PartitionScorer:
    """A function for `mapInArrow`: gold is broadcast, and the partitions stay as they are."""

    score: PieceScorer
    gold: Any
    """The broadcast variable of `GoldParts`."""
    has_whole_queries: bool
    """Whether no query is in two partitions; else the rows of a query are next to each other."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield a row for each piece."""
        results = self._whole(batches) if self.has_whole_queries else self._pieces(batches)
        yield from map(as_row, results)

    def _whole(self, batches: Iterable[pa.RecordBatch]) -> Iterator[TaskResult]:
        collected = list(batches)
        if collected:
            yield self.score(_frame(collected), self.gold.value)

    def _pieces(
        self, batches: Iterable[pa.RecordBatch]
    ) -> Iterator[TaskResult | Border | Interleaved]:
        borders: list[pl.DataFrame] = []
        for rows, is_last_query in _pieces_of_whole_queries(batches, self.score.query_column):
            segments = QuerySegments.of(rows[self.score.query_column])
            if not segments.contiguous:
                yield Interleaved()
                return
            n_border = 0
            if is_last_query or not borders:
                n_border = int(segments.lengths[0])
                borders.append(rows[:n_border])
            if n_border < rows.height:
                yield self.score(rows[n_border:], self.gold.value)
        if borders:
            yield self._border(pl.concat(borders))

    def _border(self, rows: pl.DataFrame) -> Border | TaskResult:
        ids = rows[self.score.query_column].unique()
        if ids.null_count():  # an error, which is raised here
            return self.score(rows, self.gold.value)
        is_small = rows.estimated_size() <= BYTES_PER_BORDER
        return Border(ids.cast(pl.String).to_list(), rows if is_small else None)


def as_row(result: Any) -> pa.RecordBatch:
    """Return a batch of one row, with a pickled object."""
    import pyarrow as pa

    column = pa.array([pickle.dumps(result)], pa.binary())
    return pa.RecordBatch.from_arrays([column], names=["result"])


def score_group(score: PieceScorer, rows: pa.Table, gold: pa.Table) -> TaskResult:
    """Return the result for the queries of one bucket, of the run and of gold."""
    share = pickle.loads(gold["gold"][0].as_py())  # noqa: S301 - written by SparkRun
    return score.with_gold(frames.to_frame(rows), share)


@dataclass(frozen=True, eq=False)
class Locate:
    """Names the query of a wrong row, since the rows of a Spark table have no numbers."""

    rows: pl.DataFrame

    def __call__(self, row: int, field: str, problem: str, hint: str | None) -> InputError:
        """Return the error for a row."""
        query = self.rows[frames.require_query_id_column(self.rows)][row - 1]
        place = "a row without a query id" if query is None else f"query {str(query)!r}"
        return InputError(f"{place}: {problem}", field=field, hint=hint)


def bucket_of(query: str, n_buckets: int) -> int:
    """Return the bucket of a query, as `crc32` of Spark computes it."""
    return zlib.crc32(query.encode()) % n_buckets


def _pieces_of_whole_queries(
    batches: Iterable[pa.RecordBatch], query_column: str
) -> Iterator[tuple[pl.DataFrame, bool]]:
    """Yield the rows in pieces that end where a query ends, and whether it is the last query.

    The last query is a piece of its own. A query that is larger than a piece is collected first.
    """
    rest: list[pl.DataFrame] = []
    pending: list[pa.RecordBatch] = []
    n_rows = n_bytes = 0
    most_rows, most_bytes = ROWS_PER_PIECE, BYTES_PER_PIECE
    for batch in batches:
        if not batch.num_rows:
            continue
        pending.append(batch)
        n_rows, n_bytes = n_rows + batch.num_rows, n_bytes + batch.nbytes
        if n_rows < most_rows and n_bytes < most_bytes:
            continue
        whole, last = _before_last_query(pl.concat([*rest, _frame(pending)]), query_column)
        if whole.height:
            yield whole, False
        rest, pending, n_rows, n_bytes = [last], [], 0, 0
        # A long list is not copied each time that a few rows were added to it.
        most_rows = max(ROWS_PER_PIECE, last.height)
        most_bytes = max(BYTES_PER_PIECE, int(last.estimated_size()))
    if rest or pending:
        frames_left = [*rest, _frame(pending)] if pending else rest
        whole, last = _before_last_query(pl.concat(frames_left), query_column)
        if whole.height:
            yield whole, False
        yield last, True


def _before_last_query(rows: pl.DataFrame, query_column: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the rows of all queries but the last, and those of the last query."""
    last = rows.height - int(QuerySegments.of(rows[query_column]).lengths[-1])
    return rows[:last], rows[last:]


def _frame(batches: list[pa.RecordBatch]) -> pl.DataFrame:
    import pyarrow as pa

    return frames.to_frame(pa.Table.from_batches(batches))


def _checksum(query_ids: pl.Series) -> int:
    return sum(zlib.crc32(query.encode()) for query in query_ids)


def _hash(query: str) -> int:
    digest = hashlib.blake2b(query.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)
