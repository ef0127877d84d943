"""Tables in files: CSV, TSV and Parquet, a row for each judgment or result."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Callable
from typing import IO, TypeVar

import numpy as np
import polars as pl

from karat.data import frames
from karat.data.files import BYTE_ORDER_MARK, Source, decode
from karat.data.format import Format
from karat.data.gold import Gold, gold_of_table
from karat.data.losses import need_ids, say_what_a_run_loses, say_what_gold_loses
from karat.data.run import Run, run_of_table
from karat.errors import InputError

Made = TypeVar("Made", Gold, Run)
Found = tuple[pl.DataFrame, frames.Locate, int | None]
"""A table, the function that says where its rows stand, and the line that names its columns."""


def gold_table(gold: Gold, target: str, *, nested: bool) -> pl.DataFrame:
    """Return judgments with the fields of their query beside them."""
    queries = gold.queries
    taken = [name for name in queries.columns[1:] if name in gold.judgments.columns]
    lists = [] if nested else [c for c in queries.columns if queries[c].dtype.is_nested()]
    if taken or lists:
        raise InputError(
            f"{target} cannot hold the field {(taken + lists)[0]!r}",
            field=(taken + lists)[0],
            hint="write .jsonl, which holds fields of any name and shape",
        )
    say_what_gold_loses(gold, target, fields=True, empty=False)
    return gold.judgments.join(queries, on="query_id", how="left", maintain_order="left")


def run_table(run: Run, target: str) -> pl.DataFrame:
    """Return results with karat's own rank 1…n."""
    need_ids(run.results, target, of_all=False)
    say_what_a_run_loses(run, target, places=True, empty=False)
    rank = pl.int_range(1, pl.len() + 1).over("query_id").alias("rank")
    return run.results.select("query_id", rank, pl.exclude("query_id"))


def _names_columns(head: bytes, separator: str) -> bool:
    """Tell whether the first line names columns that stand apart by this separator."""
    text = head.removeprefix(BYTE_ORDER_MARK).decode("utf-8", "replace")
    first = next((line for line in text.splitlines() if line.strip()), "")
    names = {name.strip(' "').lower() for name in first.split(separator)}
    return len(names) > 1 and not names.isdisjoint(frames.QUERY_ID)


def _read_text(source: Source, separator: str) -> Found:
    text = decode(source.read(), source)
    body = text.lstrip("\r\n")
    top = text[: len(text) - len(body)].count("\n")
    try:
        table = pl.read_csv(
            body.encode(), separator=separator, infer_schema=False, extra_columns="raise"
        )
    except (pl.exceptions.PolarsError, OSError) as error:
        raise _ragged(source, text, separator) or source.error(
            f"this is no table: {str(error).splitlines()[0]}",
            hint="the first line names the columns; quote values that hold the separator",
        ) from error
    if table.width and table.to_series(-1).null_count():
        # A row that was cut off leaves its last values empty, and so does a row that has none.
        ragged = _ragged(source, text, separator)
        if ragged is not None:
            raise ragged
    blank = table.select(pl.all_horizontal(pl.all().is_null())).to_series()

    def locate(row: int, field: str, problem: str, hint: str | None) -> InputError:
        held = np.flatnonzero(~blank.to_numpy())
        before = table.head(int(held[row - 1]))
        # Quoted values may hold newlines, and so may the names of the columns.
        inside = before.select(pl.sum_horizontal(pl.all().str.count_matches("\n").sum())).item()
        names = sum(name.count("\n") for name in table.columns)
        line = top + names + before.height + int(inside or 0) + 2
        return source.error(problem, line=line, field=field, hint=hint)

    return table.filter(~blank), locate, top + 1


def _ragged(source: Source, text: str, separator: str) -> InputError | None:
    """Find the first row that has more or fewer values than there are columns."""
    limit = csv.field_size_limit(sys.maxsize)
    try:
        rows = csv.reader(io.StringIO(text), delimiter=separator)
        names = next((row for row in rows if row), [])
        begins = rows.line_num + 1
        for row in rows:
            if row and len(row) != len(names):
                return source.error(
                    f"{len(row)} values under {len(names)} column names",
                    line=begins,
                    hint="quote values that hold the separator or a quote",
                )
            begins = rows.line_num + 1
    except csv.Error:  # a stray carriage return: Polars reads on, so nothing is said here
        pass
    finally:
        csv.field_size_limit(limit)
    return None


def _read_parquet(source: Source) -> Found:
    def locate(row: int, field: str, problem: str, hint: str | None) -> InputError:
        return source.error(f"row {row}: {problem}", field=field, hint=hint)

    try:
        given = source.path if source.on_disk else io.BytesIO(source.read())
        return pl.read_parquet(given, glob=False), locate, None
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        raise source.error(
            f"this is no Parquet file: {str(error).splitlines()[0]}",
            hint="check that it was written to the end",
        ) from error


def _format(
    name: str,
    sniff: Callable[[bytes], bool],
    read: Callable[[Source], Found],
    write: Callable[[pl.DataFrame, IO[bytes]], None],
) -> Format:
    """Make a format from the three things in which kinds of tables differ."""
    target = f"a table in {name.upper() if name != 'parquet' else 'Parquet'}"

    def of_table(make: Callable[..., Made]) -> Callable[[Source], Made]:
        def read_from(source: Source) -> Made:
            table, locate, names = read(source)
            try:
                return make(table, name=source.name, locate=locate)
            except InputError as error:
                if error.path is not None:
                    raise
                raise source.error(
                    error.problem, line=names, field=error.field, hint=error.hint
                ) from error

        return read_from

    return Format(
        name=name,
        endings=(f".{name}",),
        sniff=lambda head, _: sniff(head),
        read_gold=of_table(gold_of_table),
        read_run=of_table(run_of_table),
        write_gold=lambda gold, file: write(
            gold_table(gold, target, nested=name == "parquet"), file
        ),
        write_run=lambda run, file: write(run_table(run, target), file),
    )


def _text_format(name: str, separator: str) -> Format:
    return _format(
        name,
        lambda head: _names_columns(head, separator),
        lambda source: _read_text(source, separator),
        lambda table, file: table.write_csv(file, separator=separator),
    )


CSV = _text_format("csv", ",")
TSV = _text_format("tsv", "\t")
PARQUET = _format(
    "parquet",
    lambda head: head.startswith(b"PAR1"),
    _read_parquet,
    lambda table, file: table.write_parquet(file),
)
