"""Apache Spark: a run that is a Spark table is split into parts of whole queries and scored there.

The rows are grouped by a hash of the query id, so a query is never split. Each group is scored with
its share of gold by the same function as in this process, so the scores have the same digits for
any number of parts. Gold and the scores of all queries are in memory on the driver; the rows of the
run are not.
"""

from __future__ import annotations

import os
import pickle
import sys
import warnings
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePath
from typing import Any, TypeVar

import polars as pl

from karat.data import frames
from karat.data.data_file import PathSource, path_of
from karat.data.gold import Gold
from karat.data.run import NO_RESULTS, Run, columns_of_results, run_of_table
from karat.engines.parts import Part
from karat.errors import InputError, KaratError
from karat.match.gold_index import PreparedGold, prepare

Result = TypeVar("Result")
TABLE_PREFIX = "table:"
"""The prefix of the name of a table in the catalogs of the session."""
_PARTS_PER_TASK = 2


def is_spark_table(value: Any) -> bool:
    """Return whether a value is a data frame of Spark."""
    kind = type(value)
    return kind.__name__ == "DataFrame" and kind.__module__.startswith("pyspark.sql")


def spark_table(source: Any) -> Any:
    """Return the Spark table of a source; None if Spark does not read it.

    Spark reads its own data frames, names of tables ("table:catalog.db.run"), and Parquet: files,
    folders, and addresses such as "s3://bucket/run".
    """
    if is_spark_table(source) or not is_spark_source(source):
        return source if is_spark_table(source) else None
    path = path_of(source)
    assert path is not None
    _require_own_names(source, path)
    if path.startswith(TABLE_PREFIX):
        return _loaded(lambda: session().table(path.removeprefix(TABLE_PREFIX)), path)
    return _loaded(lambda: session().read.parquet(path), path)


def is_spark_source(source: Any) -> bool:
    """Return whether Spark reads a source."""
    path = path_of(source)
    if path is None:
        return is_spark_table(source)
    if isinstance(source, PathSource) and source.format not in (None, "parquet"):
        return False
    is_parquet = path.rstrip("/").endswith(".parquet")
    return is_parquet or path.startswith(TABLE_PREFIX) or "://" in path


def _require_own_names(source: Any, path: str) -> None:
    if isinstance(source, PathSource) and source.columns:
        raise InputError(
            "Spark reads the columns of a table by their own names",
            path=path,
            field="columns",
            hint="rename the columns of the table, for example in a view",
        )


def session(master: str | None = None) -> Any:
    """Return the active session of Spark, or start one on this computer.

    Workers of a new session use the Python that runs now, unless PYSPARK_PYTHON is set.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise InputError(
            "the engine spark needs pyspark",
            field="engine",
            hint="install it with pip install 'karat[spark]'",
        ) from error
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    cores = os.cpu_count() or 1
    builder = SparkSession.builder.appName("karat").master(master or f"local[{cores}]")
    if master is None:
        builder = builder.config("spark.sql.shuffle.partitions", str(2 * cores))
    try:
        return builder.getOrCreate()
    except Exception as error:
        raise InputError(
            f"Spark cannot be started: {str(error).partition(chr(10))[0]}",
            field="engine",
            hint="Spark 4 needs Java 17 or newer",
        ) from error


def _loaded(load: Callable[[], Any], path: str) -> Any:
    from pyspark.errors import AnalysisException

    try:
        return load()
    except AnalysisException as error:
        message = str(error).partition("\n")[0].partition(" SQLSTATE")[0]
        raise InputError(
            f"Spark cannot read the run: {message}",
            path=path,
            hint="check the path or the name of the table",
        ) from error


@dataclass(frozen=True, eq=False)
class SparkRun:
    """The engine of a run that is a Spark table."""

    gold: Gold
    table: Any
    name: str | None = None

    def __post_init__(self) -> None:
        self._check_columns()

    @classmethod
    def of(cls, gold: Gold, source: Any, table: Any) -> SparkRun:
        """Return the engine for a table; a run that was given as a path has the path's name."""
        path = path_of(source)
        name = None if path is None else PurePath(path.removeprefix(TABLE_PREFIX)).name
        return cls(gold, table, None if name is None else name.removesuffix(".parquet"))

    def map(self, function: Callable[[Part], Result]) -> Iterator[Result]:
        """Yield the result for each part: first those with results, then those with only gold."""
        from pyspark import cloudpickle
        from pyspark.sql import functions as f

        query_id = f.col(_quoted(self._query_id)).cast("string")
        parts = f.lit(len(self._gold_parts))
        numbered = self.table.select(
            *(f.col(_quoted(name)) for name in self._columns),
            f.coalesce(f.pmod(f.crc32(query_id.cast("binary")), parts), f.lit(0)).alias(_PART),
        )
        # Measures of a notebook cannot be imported by the workers, so their code is sent.
        scorer = _GroupScorer(cloudpickle.dumps(function), self._gold_parts, self.name)

        def score(key: Any, rows: Any) -> Any:  # Spark looks at the number of parameters
            return scorer.score(key, rows)

        with warnings.catch_warnings():
            # Spark warns of new versions of pandas, which is not used.
            warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas")
            rows = numbered.groupBy(_PART).applyInArrow(score, f"{_PART} bigint, result binary")
        scored, errors = set(), []
        for row in rows.collect():
            scored.add(row[_PART])
            result = pickle.loads(row["result"])  # noqa: S301 - written by _GroupScorer
            if isinstance(result, KaratError):
                errors.append(result)
            else:
                yield result
        if errors:
            raise min(errors, key=str)
        for number, gold in enumerate(self._gold_parts):
            if number not in scored:
                yield function(Part(pickle.loads(gold), Run(NO_RESULTS, name=self.name)))  # noqa: S301

    @cached_property
    def _empty(self) -> pl.DataFrame:
        """The columns of the table, without rows."""
        from pyspark.sql.pandas.types import to_arrow_schema

        return frames.to_frame(to_arrow_schema(self.table.schema).empty_table())

    @cached_property
    def _query_id(self) -> str:
        return frames.require_query_id_column(self._empty)

    @cached_property
    def _columns(self) -> list[str]:
        """The columns that are read."""
        return columns_of_results(self._empty)

    def _check_columns(self) -> None:
        """Raise an error for missing columns and wrong types, before a job starts."""
        run_of_table(self._empty.select(self._columns), locate=_wrong_type, may_be_empty=True)
        if not any(frames.column(self._empty, (name,)) for name in ("rank", "score")):
            raise InputError(
                "the rows of a Spark table have no order",
                field="rank",
                hint="add a column rank or score, with one row per result",
            )

    @cached_property
    def _gold_parts(self) -> list[bytes]:
        """The gold of each part, pickled."""
        tasks = int(self.table.sparkSession.conf.get("spark.sql.shuffle.partitions"))
        n_parts = max(_PARTS_PER_TASK * tasks, 1)
        ids: list[list[str]] = [[] for _ in range(n_parts)]
        for query in prepare(self.gold).query_ids:
            ids[zlib.crc32(query.encode()) % n_parts].append(query)
        return [pickle.dumps(PreparedGold(self.gold.only(*part))) for part in ids]


_PART = "karat_part"


@dataclass(frozen=True, eq=False)
class _GroupScorer:
    """Scores the rows of one part on a worker."""

    function: bytes
    gold_parts: list[bytes]
    name: str | None

    def score(self, key: Any, table: Any) -> Any:
        """Return one row: the number of the part and the pickled result."""
        import pyarrow as pa

        number = key[0].as_py()
        try:
            result = self._result(number, table)
        except KaratError as error:
            result = error
        columns = [pa.array([number], pa.int64()), pa.array([pickle.dumps(result)], pa.binary())]
        return pa.Table.from_arrays(columns, names=[_PART, "result"])

    def _result(self, number: int, table: Any) -> Any:
        rows = frames.to_frame(table.drop_columns([_PART]))
        gold = pickle.loads(self.gold_parts[number])  # noqa: S301 - written by SparkRun
        run = run_of_table(rows, name=self.name, locate=_Locate(rows))
        return pickle.loads(self.function)(Part(gold, run))  # noqa: S301 - written by SparkRun


@dataclass(frozen=True, eq=False)
class _Locate:
    """Names the query of a wrong row, since the rows of a Spark table have no numbers."""

    rows: pl.DataFrame

    def __call__(self, row: int, field: str, problem: str, hint: str | None) -> InputError:
        """Return the error for a row."""
        query = self.rows[frames.require_query_id_column(self.rows)][row - 1]
        place = "a row without a query id" if query is None else f"query {str(query)!r}"
        return InputError(f"{place}: {problem}", field=field, hint=hint)


def _wrong_type(_row: int, field: str, problem: str, hint: str | None) -> InputError:
    return InputError(problem, field=field, hint=hint)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
