"""The session of Spark, the tables that it reads, and its errors as messages of karat."""

from __future__ import annotations

import logging
import os
import re
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePath
from typing import Any

from karat.data.data_file import ENDINGS, PathSource, path_of, plain_name
from karat.errors import InputError
from karat.files import TABLE_PREFIX, is_address, without_compression

_CONNECT_SECONDS = 5
_PYTHON_HINT = (
    "the Python of the workers needs karat and its dependencies; set PYSPARK_PYTHON before the "
    "session is started, or distribute an environment (see docs/spark.md)"
)


def is_spark_table(value: Any) -> bool:
    """Return whether a value is a data frame of Spark."""
    kind = type(value)
    return kind.__name__ == "DataFrame" and kind.__module__.startswith("pyspark.sql")


def is_spark_source(source: Any) -> bool:
    """Return whether Spark reads a source: its data frames, tables, and Parquet.

    Parquet may be a file, a folder, a glob pattern, or an address such as "s3://bucket/run".
    """
    path = path_of(source)
    if path is None:
        return is_spark_table(source)
    if isinstance(source, PathSource) and source.format not in (None, "parquet"):
        return False
    is_parquet = path.rstrip("/").endswith(".parquet")
    return is_parquet or is_address(path) or Path(path).is_dir()


def spark_table(source: Any) -> Any:
    """Return the Spark table of a source, with the names of its columns; None for other sources."""
    if is_spark_table(source) or not is_spark_source(source):
        return source if is_spark_table(source) else None
    path = path_of(source)
    assert path is not None
    with spark_errors(path):
        if path.startswith(TABLE_PREFIX):
            table = session().table(path.removeprefix(TABLE_PREFIX))
        else:
            _require_parquet(path)
            table = session().read.parquet(path)
        if isinstance(source, PathSource) and source.columns:
            with source.columns.checked():
                table = table.toDF(*source.columns.renamed(table.columns))
        return table


def collected_gold(source: Any) -> Any:
    """Return gold that Spark has as a table in memory; other gold is returned unchanged."""
    path = path_of(source)
    if not is_spark_table(source) and (path is None or not is_address(path)):
        return source
    table = spark_table(source)
    with spark_errors(path):
        return table.toArrow()


def name_of(source: Any) -> str | None:
    """Return the name of a run: that of its table, file or folder; a pattern is its own name."""
    path = path_of(source)
    if path is None or set(path) & set("*?["):
        return path
    if path.startswith(TABLE_PREFIX):
        return path.removeprefix(TABLE_PREFIX)
    return plain_name(PurePath(path))


def _require_parquet(path: str) -> None:
    ending = without_compression(Path(path)).suffix.lower()
    if "://" in path and ending in ENDINGS and ending != ".parquet":
        raise InputError(
            f"Spark reads Parquet and tables, and this address ends in {ending}",
            path=path,
            hint="read it in the session, for example with spark.read.json, and pass the data "
            "frame; or copy the file to this computer",
        )


def session(master: str | None = None) -> Any:
    """Return the active session of Spark, or start one on this computer.

    Workers of a new session use the Python that runs now, unless PYSPARK_PYTHON is set.
    """
    try:
        from pyspark.errors import PySparkException
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
    if master is not None:
        _check_master(master)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("karat").master(master or f"local[{os.cpu_count()}]")
    # Failures become messages of karat; the log would print their Java stack traces first.
    builder = builder.config("spark.log.level", "OFF").config("spark.ui.showConsoleProgress", False)
    try:
        return builder.getOrCreate()
    except Exception as error:
        is_java = isinstance(error, PySparkException) and "JAVA_GATEWAY" in (
            error.getCondition() or ""
        )
        raise InputError(
            f"Spark cannot be started: {problem_of(error)}",
            field="engine",
            hint="Spark 4 needs Java 17 or newer; check `java -version` and JAVA_HOME"
            if is_java
            else "check the master and the configuration of Spark",
        ) from None


def _check_master(master: str) -> None:
    """Raise an error for an unknown kind of master, or if nothing listens at its address.

    Spark itself would print a stack trace, or try for a minute.
    """
    if not re.match(r"local|yarn$|spark://|k8s://", master):
        raise InputError(
            f"unknown kind of master: {master!r}",
            field="--master",
            hint="use local[4], spark://host:7077, yarn, or k8s://host:port",
        )
    if not master.startswith("spark://"):
        return
    problems = []
    for address in master.removeprefix("spark://").split(","):
        host, _, port = address.rpartition(":")
        try:
            socket.create_connection((host, int(port)), _CONNECT_SECONDS).close()
        except (OSError, ValueError) as error:
            problems.append(f"{address}: {error}")
        else:
            return
    raise InputError(
        f"the master of Spark cannot be reached: {'; '.join(problems)}",
        field="--master",
        hint="check host and port, for example spark://host:7077",
    )


@contextmanager
def spark_errors(path: str | None = None) -> Iterator[None]:
    """Raise errors of Spark as one message, without the stack traces of Java."""
    try:
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException
    except ImportError:  # `session` states how to install it
        yield
        return
    # pyspark would print the same error, as a line of JSON.
    log = logging.getLogger("SQLQueryContextLogger")
    was_disabled, log.disabled = log.disabled, True
    try:
        yield
    except (PySparkException, Py4JError, AssertionError) as error:
        if isinstance(error, AssertionError) and not _is_of_pyspark(error):
            raise
        problem = problem_of(error)
        if module := re.search(r"No module named '(karat|polars|numpy|pyarrow)\b", problem):
            problem = f"the workers of Spark cannot import {module[1]}"
        raise InputError(
            problem if problem.startswith("the ") else f"Spark failed: {problem}",
            path=path,
            hint=_hint(problem, path),
        ) from None
    finally:
        log.disabled = was_disabled


def _is_of_pyspark(error: AssertionError) -> bool:
    """Return whether an assertion failed in pyspark: a session that was stopped has no other."""
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    return traceback is not None and "pyspark" in traceback.tb_frame.f_code.co_filename


def _hint(problem: str, path: str | None) -> str:
    if "cannot import" in problem:
        return _PYTHON_HINT
    if "has been stopped" in problem:
        return "pass a data frame of the session that runs now"
    if "FileSystem" in problem:
        return (
            "Spark needs the driver of this file system, for example hadoop-aws in "
            "spark.jars.packages and addresses of the form s3a://"
        )
    if "PATH_NOT_FOUND" in problem or "TABLE_OR_VIEW_NOT_FOUND" in problem:
        return "check the path or the name of the table"
    if path is not None and not path.startswith(TABLE_PREFIX):
        return "check that every file of the run is complete and Parquet"
    return "check the data frame: run.count() in the same session shows the same error"


def problem_of(error: BaseException) -> str:
    """Return the class of an error of Spark and the first line that helps."""
    from py4j.protocol import Py4JJavaError

    if isinstance(error, AssertionError):
        return "the session of this data frame has been stopped"
    if isinstance(error, Py4JJavaError):
        cause = error.java_exception
        while cause.getCause() is not None:
            cause = cause.getCause()
        name = cause.getClass().getSimpleName()
        return f"{name}: {_first_line(cause.getMessage() or '')}".removesuffix(": ")
    text = str(error)
    if "Traceback (most recent call last)" in text:
        return _python_error(text)
    return _first_line(text)


def _python_error(text: str) -> str:
    """Return the last line of the traceback of a worker."""
    lines = text.partition("JVM stacktrace")[0].rstrip().splitlines()
    errors = [line for line in lines if re.match(r"[A-Za-z_][\w.]*(Error|Exception)\b", line)]
    return f"a worker failed: {errors[-1]}" if errors else _first_line(text)


def _first_line(text: str) -> str:
    line = next((line for line in text.splitlines() if line.strip()), "")
    return line.partition(" SQLSTATE")[0].strip()
