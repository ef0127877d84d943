"""Apache Spark: a run that is a Spark table is scored where it is, in parts of whole queries.

There are three ways, which give the same digits:

- Partitions with the rows of each query next to each other stay as they are. Gold is broadcast, and
  only the rows of the queries at the borders of partitions move.
- Otherwise, the rows are shuffled by a hash of the query id, so that each partition has whole
  queries. Gold is broadcast.
- Gold that is too large to be broadcast is split into buckets by a hash of the query id, and each
  bucket meets the rows of its queries (cogroup).

Gold and the scores of all queries are in memory on the driver; the rows of the run are not.
"""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
import polars as pl

from karat.arrays import Ints
from karat.data import frames
from karat.data.data_file import path_of
from karat.data.gold import Gold
from karat.data.run import (
    NO_RESULTS,
    Run,
    columns_of_results,
    has_one_row_per_query,
    run_of_table,
)
from karat.engines.parts import Part, PartScorer
from karat.engines.spark_session import name_of, spark_errors
from karat.engines.spark_tasks import (
    Border,
    Interleaved,
    PartitionScorer,
    PieceScorer,
    TaskResult,
    bucket_of,
    score_group,
)
from karat.errors import InputError
from karat.match.gold_index import GoldParts, PreparedGold
from karat.measures import ScoreTable

Result = TypeVar("Result")
LARGEST_BROADCAST = 64 << 20
"""Gold of at most this size is sent to every worker."""
_BYTES_PER_PART = 16 << 20
"""How much of a run, as it is stored, is in one part after a shuffle: about a million rows."""
_GOLD_BYTES_PER_BUCKET = 4 << 20
_UNKNOWN_SIZE = 1 << 50
_DEFAULT_PARTS = 200
"""The default of spark.sql.shuffle.partitions."""
_MISSING_QUERIES = 50_000
"""How many queries of gold that the run lacks are scored at a time."""
_FIRST_ROWS = 20_000
"""How many rows show whether the rows of a query are next to each other."""
_BUCKET = "karat_bucket"


class SparkRun:
    """The engine of a run that is a Spark table."""

    def __init__(
        self,
        gold: PreparedGold,
        table: Any,
        name: str | None = None,
        path: str | None = None,
    ) -> None:
        self.table = table
        self.name = name
        self._path = path
        self._gold = _gold_of(gold)
        self._is_shuffled = False
        """Whether a reading has found a query in two partitions."""
        self._size_of_reading: tuple[int, int, int] | None = None
        with self._spark_errors():
            self._check_columns()

    @classmethod
    def of(cls, gold: PreparedGold, source: Any, table: Any) -> SparkRun:
        """Return the engine for a table; a run that was given as a path has the path's name."""
        return cls(gold, table, name_of(source), path_of(source))

    def map(self, function: Callable[[Part], Result]) -> Iterator[Result]:
        """Yield the result for each part: first those with results, then those with only gold."""
        with self._spark_errors():
            outcomes = self._outcomes(function)
        errors = [outcome.error for outcome in outcomes if outcome.error is not None]
        if errors:
            raise min(errors, key=str)
        self._check_reading(outcomes)
        for outcome in outcomes:
            yield outcome.result
        if not self._is_by_bucket:
            for gold in self._gold.without([outcome.in_gold for outcome in outcomes]):
                yield function(Part(gold, Run(NO_RESULTS, name=self.name)))

    def frame(self, scorer: PartScorer, scores: ScoreTable) -> Any:
        """Return the scores per query as a Spark data frame, which is computed when it is used."""
        from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

        schema = scores.frame.clear().to_arrow(compat_level=pl.CompatLevel.oldest()).schema
        schema = to_arrow_schema(from_arrow_schema(schema))  # strings as Spark has them
        piece = self._piece_scorer(scorer)

        def score(_key: Any, rows: Any, gold: Any) -> Any:
            outcome = score_group(piece, rows, gold)
            error = outcome.error or getattr(outcome.result.failure, "error", None)
            if error is not None:
                raise error
            table = outcome.result.table.frame.to_arrow(compat_level=pl.CompatLevel.oldest())
            return table.cast(schema)

        with self._spark_errors():
            return self._by_bucket(score, from_arrow_schema(schema))

    def _outcomes(self, function: Callable[[Part], Any]) -> list[TaskResult]:
        piece = self._piece_scorer(function)
        if self._is_by_bucket:

            def score(_key: Any, rows: Any, gold: Any) -> Any:
                import pyarrow as pa

                outcome = pickle.dumps(score_group(piece, rows, gold))
                return pa.table({"result": pa.array([outcome], pa.binary())})

            return _collected(self._by_bucket(score, "result binary"))
        if not self._is_shuffled and self._begins_with_whole_queries:
            outcomes = self._in_place(piece)
            if outcomes is not None:
                return outcomes
        self._is_shuffled = True
        return self._shuffled(piece, self._rows)

    def _in_place(self, piece: PieceScorer) -> list[TaskResult] | None:
        """Return the outcomes of the partitions as they are; None if a query is in two of them."""
        results = _collected(self._mapped(self._rows, piece, has_whole_queries=False))
        outcomes = [result for result in results if isinstance(result, TaskResult)]
        borders = [result for result in results if isinstance(result, Border)]
        if any(isinstance(result, Interleaved) for result in results):
            return None
        if any(outcome.error is not None for outcome in outcomes):
            return outcomes
        outcomes += self._of_borders(piece, borders)
        in_gold = np.concatenate([outcome.in_gold for outcome in (*outcomes, TaskResult())])
        unknown = np.concatenate([outcome.unknown for outcome in (*outcomes, TaskResult())])
        is_split = any(np.unique(numbers).size < numbers.size for numbers in (in_gold, unknown))
        return None if is_split else outcomes

    def _of_borders(self, piece: PieceScorer, borders: Sequence[Border]) -> list[TaskResult]:
        """Return the outcomes of queries at the borders of partitions: short lists are scored here.

        The rows of long lists are read again, and shuffled.
        """
        long = {query for border in borders if border.rows is None for query in border.query_ids}
        outcomes: list[TaskResult] = []
        rows = [border.rows for border in borders if border.rows is not None]
        if rows:
            short = pl.concat(rows)
            short = short.filter(~short[self._query_id].cast(pl.String).is_in(list(long)))
            if short.height:
                outcomes.append(piece(short, self._gold.parts))
        if long:
            query_id = _text_column(self._query_id)
            outcomes += self._shuffled(piece, self._rows.where(query_id.isin(sorted(long))))
        return outcomes

    def _shuffled(self, piece: PieceScorer, rows: Any) -> list[TaskResult]:
        """Return the outcomes of partitions with whole queries, which a shuffle makes."""
        moved = rows.repartition(self._n_parts, _text_column(self._query_id))
        return _collected(self._mapped(moved, piece, has_whole_queries=True))

    def _mapped(self, rows: Any, piece: PieceScorer, *, has_whole_queries: bool) -> Any:
        gold = self._gold.broadcast(rows.sparkSession.sparkContext)
        scorer = PartitionScorer(piece, gold, has_whole_queries)

        def score(batches: Any) -> Any:  # Spark looks at the annotations of other functions
            return scorer(batches)

        with _quiet():
            return rows.mapInArrow(score, "result binary")

    def _by_bucket(self, score: Callable[[Any, Any, Any], Any], schema: Any) -> Any:
        """Return a plan that scores each bucket of queries with its bucket of gold."""
        from pyspark.sql import functions as f

        n_buckets = max(self._n_parts, self._gold.n_bytes // _GOLD_BYTES_PER_BUCKET + 1)
        buckets = self.table.sparkSession.createDataFrame(
            self._gold.buckets(n_buckets).to_arrow(compat_level=pl.CompatLevel.oldest())
        )
        checksum = f.crc32(_text_column(self._query_id).cast("binary"))
        bucket = f.coalesce(f.pmod(checksum, f.lit(n_buckets)), f.lit(0)).alias(_BUCKET)
        rows = self._rows.select("*", bucket).groupBy(_BUCKET)

        def of_rows(key: Any, rows: Any, gold: Any) -> Any:
            return score(key, rows.drop_columns([_BUCKET]), gold)

        with _quiet():
            return rows.cogroup(buckets.groupBy(_BUCKET)).applyInArrow(of_rows, schema)

    def _piece_scorer(self, function: Callable[[Part], Any]) -> PieceScorer:
        from pyspark import cloudpickle

        return PieceScorer(cloudpickle.dumps(function), self._query_id, self.name)

    def _check_reading(self, outcomes: Sequence[TaskResult]) -> None:
        """Raise an error for a table without rows, or one that was different when last read."""
        size = (
            sum(outcome.n_rows for outcome in outcomes),
            sum(outcome.n_queries for outcome in outcomes),
            sum(outcome.checksum for outcome in outcomes),
        )
        if not size[0]:
            raise InputError(
                "the table has no rows", path=self._path, hint="add at least one result"
            )
        before = self._size_of_reading
        if before is not None and before != size:
            raise InputError(
                f"the run changed while it was scored: it had {before[0]:,} rows, and then "
                f"{size[0]:,} rows{'' if size[0] != before[0] else ' of other queries'}",
                path=self._path,
                hint="write the data frame to a table first, or cache() it, so that random "
                "functions and changing sources give the same rows each time",
            )
        self._size_of_reading = size

    @cached_property
    def _rows(self) -> Any:
        """The columns that are read."""
        from pyspark.sql import functions as f

        return self.table.select(*(f.col(_quoted(name)) for name in self._columns))

    @cached_property
    def _empty(self) -> pl.DataFrame:
        """The columns of the table, without rows and without columns of types that Arrow lacks."""
        import pyarrow as pa
        from pyspark.errors import PySparkException
        from pyspark.sql.pandas.types import to_arrow_type

        columns = {}
        for field in self.table.schema.fields:
            try:
                columns[field.name] = to_arrow_type(field.dataType)
            except PySparkException:
                continue
        return frames.to_frame(pa.schema(columns.items()).empty_table())

    @cached_property
    def _query_id(self) -> str:
        return frames.require_query_id_column(self._empty)

    @cached_property
    def _columns(self) -> list[str]:
        if has_one_row_per_query(self._empty):
            return self._empty.columns
        return columns_of_results(self._empty)

    def _check_columns(self) -> None:
        """Raise an error for missing columns and wrong types, before a job starts."""
        frames.ids(self._empty[self._query_id], "query_id", _wrong_type)
        if has_one_row_per_query(self._empty):
            return
        run_of_table(self._empty.select(self._columns), locate=_wrong_type, may_be_empty=True)
        if not any(frames.column(self._empty, (name,)) for name in ("rank", "score")):
            raise InputError(
                "the rows of a Spark table have no order",
                field="rank",
                hint="add a column rank or score, with one row per result",
            )

    @cached_property
    def _first_ids(self) -> list[tuple[int, str | None]]:
        """The partition and the query of the first rows."""
        from pyspark.sql import functions as f

        ids = self._rows.select(f.spark_partition_id(), _text_column(self._query_id))
        return [tuple(row) for row in ids.limit(_FIRST_ROWS).collect()]

    @property
    def _begins_with_whole_queries(self) -> bool:
        """Whether the rows of each query are next to each other, as far as the first rows show."""
        ids = self._first_ids
        runs = sum(one != two for one, two in pairwise(ids)) + bool(ids)
        return runs == len(set(ids))

    @property
    def _is_by_bucket(self) -> bool:
        """Whether gold is too large for a broadcast, or the session has none (Spark Connect)."""
        return self._gold.n_bytes > LARGEST_BROADCAST or not self._is_classic

    @property
    def _is_classic(self) -> bool:
        return ".connect." not in type(self.table).__module__

    @cached_property
    def _n_parts(self) -> int:
        """How many parts a shuffle makes: the number that was set, or one that fits the size."""
        setting = parts_setting(self.table.sparkSession.conf.get("spark.sql.shuffle.partitions"))
        if setting is not None:
            return setting
        if not self._is_classic:
            return _DEFAULT_PARTS
        least = 2 * int(self.table.sparkSession.sparkContext.defaultParallelism)
        # No public function returns the size that Spark estimates.
        n_bytes = int(self._rows._jdf.queryExecution().optimizedPlan().stats().sizeInBytes())  # noqa: SLF001
        if n_bytes < _UNKNOWN_SIZE:
            return max(n_bytes // _BYTES_PER_PART, least)
        return least if len(self._first_ids) < _FIRST_ROWS else max(_DEFAULT_PARTS, least)

    def _spark_errors(self) -> Any:
        return spark_errors(self._path)


@dataclass(eq=False)
class _SparkGold:
    """Gold as workers need it: without the texts and fields of the queries."""

    parts: GoldParts
    n_bytes: int
    _broadcast: tuple[Any, Any] | None = None

    @classmethod
    def of(cls, prepared: PreparedGold) -> _SparkGold:
        gold = prepared.gold
        queries = gold.query_data
        if queries is not None:
            needed = [name for name in ("query_id", "answerable") if name in queries.columns]
            queries = queries.select(needed)
        small = Gold(
            gold.judgments,
            query_data=queries,
            empty_judgments=gold.empty_judgments,
            spans=gold.spans,
            empty_spans=gold.empty_spans,
            evidence=gold.evidence,
            empty_evidence=gold.empty_evidence,
            any_of=gold.any_of,
            offsets=gold.offsets,
            name=gold.name,
        )
        tables = (small.judgments, queries, small.spans, small.evidence, small.any_of)
        n_bytes = sum(int(table.estimated_size()) for table in tables if table is not None)
        return cls(GoldParts(PreparedGold(small)), n_bytes)

    def broadcast(self, context: Any) -> Any:
        """Return the broadcast variable of this gold, which is sent once per session."""
        if self._broadcast is None or self._broadcast[0] is not context:
            self._broadcast = context, context.broadcast(self.parts)
        return self._broadcast[1]

    def buckets(self, n_buckets: int) -> pl.DataFrame:
        """Return a table of the gold of each bucket, pickled."""
        ids = self.parts.query_ids
        bucket = np.fromiter((bucket_of(query, n_buckets) for query in ids), np.int64, ids.len())
        order = np.argsort(bucket, kind="stable")
        ends = np.searchsorted(bucket[order], np.arange(n_buckets), "right")
        shares = np.split(order, ends[:-1])
        gold = [pickle.dumps(self.parts.part(numbers)) for numbers in shares]
        return pl.DataFrame({_BUCKET: range(n_buckets), "gold": gold}, schema_overrides=_BUCKETS)

    def without(self, in_run: Sequence[Ints]) -> Iterator[PreparedGold]:
        """Yield the gold of the queries that the run lacks."""
        is_missing = np.ones(self.parts.query_ids.len(), np.bool_)
        for numbers in in_run:
            is_missing[numbers] = False
        missing = np.flatnonzero(is_missing)
        for start in range(0, missing.size, _MISSING_QUERIES):
            yield self.parts.part(missing[start : start + _MISSING_QUERIES])


_BUCKETS = {_BUCKET: pl.Int64, "gold": pl.Binary}
_shared: WeakKeyDictionary[PreparedGold, _SparkGold] = WeakKeyDictionary()


def _gold_of(prepared: PreparedGold) -> _SparkGold:
    """Return gold as workers need it; all runs of a comparison share it."""
    gold = _shared.get(prepared)
    if gold is None:
        gold = _shared[prepared] = _SparkGold.of(prepared)
    return gold


def parts_setting(setting: str) -> int | None:
    """Return spark.sql.shuffle.partitions if it was set; None for its default, and for "auto".

    >>> parts_setting("64"), parts_setting("200"), parts_setting("auto")
    (64, None, None)
    """
    is_number = setting.isdecimal() and int(setting) not in (0, _DEFAULT_PARTS)
    return int(setting) if is_number else None


def _collected(results: Any) -> list[Any]:
    return [pickle.loads(row["result"]) for row in results.collect()]  # noqa: S301 - by workers


@contextmanager
def _quiet() -> Iterator[None]:
    """Hide the warning of Spark about new versions of pandas, which is not used."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas")
        yield


def _wrong_type(_row: int, field: str, problem: str, hint: str | None) -> InputError:
    return InputError(problem, field=field, hint=hint)


def _text_column(name: str) -> Any:
    from pyspark.sql import functions as f

    return f.col(_quoted(name)).cast("string")


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
