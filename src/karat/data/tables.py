"""Tables in files: CSV, TSV and Parquet, a row for each judgment or result."""

from __future__ import annotations

import csv
import io
import warnings
from itertools import islice
from typing import IO, TYPE_CHECKING, TypeVar

import polars as pl

from karat.data import frames
from karat.data.files import Source, decode
from karat.data.format import Format
from karat.data.gold import Gold, gold_of_table
from karat.data.run import Run, run_of_table
from karat.errors import InputError, KaratWarning

if TYPE_CHECKING:
    from collections.abc import Callable

SEPARATORS = {"csv": ",", "tsv": "\t"}
Made = TypeVar("Made", Gold, Run)


def gold_table(gold: Gold) -> pl.DataFrame:
    """Return judgments with the fields of their query beside them."""
    lost = [kind for kind in ("spans", "evidence") if getattr(gold, kind) is not None]
    if gold.queries.height > gold.judgments["query_id"].n_unique():
        lost.append("queries without judgments")
    if lost:
        warnings.warn(
            KaratWarning(f"a table of judgments cannot hold {', '.join(lost)}"), stacklevel=2
        )
    return gold.judgments.join(gold.queries, on="query_id", how="left", maintain_order="left")


def run_table(run: Run) -> pl.DataFrame:
    """Return results with karat's own rank 1…n."""
    lost = [
        kind
        for kind, held in (
            (f"{len(run.empty)} queries without results", run.empty),
            ("timings", run.timings is not None),
            ("calls", run.calls is not None),
        )
        if held
    ]
    if lost:
        warnings.warn(
            KaratWarning(f"a table of results cannot hold {', '.join(lost)}"), stacklevel=2
        )
    rank = pl.int_range(1, pl.len() + 1).over("query_id").alias("rank")
    return run.results.select("query_id", rank, pl.exclude("query_id"))


def _names_columns(head: bytes, separator: str) -> bool:
    """Tell whether the first line names columns that stand apart by this separator."""
    first = next((line for line in head.splitlines() if line.strip()), b"")
    names = {name.strip(b' "\xef\xbb\xbf').decode("utf-8", "replace").lower()
             for name in first.split(separator.encode())}  # fmt: skip
    return len(names) > 1 and not names.isdisjoint(frames.QUERY_ID)


def _read_text(source: Source, separator: str) -> pl.DataFrame:
    text = decode(source.read(), source)
    try:
        return pl.read_csv(
            text.encode(), separator=separator, infer_schema=False, extra_columns="raise"
        )
    except pl.exceptions.PolarsError as error:
        raise _ragged(source, text, separator) or source.error(
            f"this is no table: {str(error).splitlines()[0]}",
            hint="the first line names the columns; quote values that hold the separator",
        ) from error


def _ragged(source: Source, text: str, separator: str) -> InputError | None:
    rows = csv.reader(io.StringIO(text), delimiter=separator)
    names = next(rows)
    for row in rows:
        if row and len(row) != len(names):
            return source.error(
                f"{len(row)} values under {len(names)} column names",
                line=rows.line_num,
                hint="quote values that hold the separator or a quote",
            )
    return None


def _read_parquet(source: Source) -> pl.DataFrame:
    try:
        return pl.read_parquet(io.BytesIO(source.read()) if source.compression else source.path)
    except pl.exceptions.PolarsError as error:
        raise source.error(
            f"this is no Parquet file: {str(error).splitlines()[0]}",
            hint="check that it was written to the end",
        ) from error


def _at(source: Source, error: InputError) -> InputError:
    """Add the file to an error that knew only the table."""
    if error.path is not None:
        return error
    return source.error(error.problem, line=error.line, field=error.field, hint=error.hint)


def _locator(source: Source, separator: str | None) -> Callable[..., InputError]:
    """Make the function that says in which line of the file a row of the table stands."""

    def locate(row: int, field: str, problem: str, hint: str | None) -> InputError:
        if separator is None:
            return source.error(f"row {row}: {problem}", field=field, hint=hint)
        text = io.StringIO(decode(source.read(), source))
        rows = csv.reader(text, delimiter=separator)
        # Quoted values may hold newlines, so the line is counted by a real reader.
        held = (rows.line_num for values in rows if values)
        line = next(islice(held, row, None))
        return source.error(problem, line=line, field=field, hint=hint)

    return locate


def _format(
    name: str,
    sniff: Callable[[bytes], bool],
    read: Callable[[Source], pl.DataFrame],
    write: Callable[[pl.DataFrame, IO[bytes]], None],
) -> Format:
    """Make a format from the three things in which kinds of tables differ."""
    separator = SEPARATORS.get(name)

    def of_table(make: Callable[..., Made]) -> Callable[[Source], Made]:
        def read_from(source: Source) -> Made:
            try:
                return make(read(source), name=source.name, locate=_locator(source, separator))
            except InputError as error:
                raise _at(source, error) from error

        return read_from

    return Format(
        name=name,
        endings=(f".{name}",),
        sniff=sniff,
        read_gold=of_table(gold_of_table),
        read_run=of_table(run_of_table),
        write_gold=lambda gold, file: write(gold_table(gold), file),
        write_run=lambda run, file: write(run_table(run), file),
    )


def _text_format(name: str) -> Format:
    separator = SEPARATORS[name]
    return _format(
        name,
        lambda head: _names_columns(head, separator),
        lambda source: _read_text(source, separator),
        lambda table, file: table.write_csv(file, separator=separator),
    )


CSV = _text_format("csv")
TSV = _text_format("tsv")
PARQUET = _format(
    "parquet",
    lambda head: head.startswith(b"PAR1"),
    _read_parquet,
    lambda table, file: table.write_parquet(file),
)
