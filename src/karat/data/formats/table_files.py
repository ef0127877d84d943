"""Tables in files: CSV, TSV, Parquet and Arrow, a row for each judgment or result."""

from __future__ import annotations

import csv
import io
import mmap
import os
import re
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar

import numpy as np
import polars as pl
from polars.datatypes import DataTypeClass

from karat.data import frames
from karat.data.columns import EVIDENCE_LISTS, RELEVANT, RESULTS
from karat.data.data_file import DataFile
from karat.data.formats import arrow_layout, parquet_layout
from karat.data.formats.base import (
    Format,
    Kind,
    WriteReport,
    kind_of_contexts,
    need_ids,
    one_kind,
    warn_of_gold_losses,
    warn_of_run_losses,
)
from karat.data.formats.parquet_layout import Buffer, DamagedLayoutError
from karat.data.frames import RESULT_COLUMNS
from karat.data.gold import Gold, gold_of_table
from karat.data.gold_tables import TEXT_COLUMNS
from karat.data.run import Run, run_of_table
from karat.errors import InputError
from karat.files import BYTE_ORDER_MARK, HEAD_BYTES, Source, decode

if TYPE_CHECKING:
    from numpy.typing import NDArray

_STDERR = 2
Made = TypeVar("Made")
Found = tuple[pl.DataFrame, frames.Locate, int | None]
"""A table, the function that says where its rows stand, and the line that names its columns."""


def has_empty_object(kind: pl.DataType | DataTypeClass) -> bool:
    """Tell whether values of a type contain objects without keys, which Parquet cannot hold."""
    if isinstance(kind, pl.Struct):
        return not kind.fields or any(has_empty_object(field.dtype) for field in kind.fields)
    return isinstance(kind, (pl.List, pl.Array)) and has_empty_object(kind.inner)


def gold_table(gold: Gold, target: str, cannot_hold: Callable[[pl.DataType], bool]) -> pl.DataFrame:
    """Return judgments with the fields of their query beside them."""
    queries = gold.queries
    taken = [name for name in queries.columns[1:] if name in gold.judgments.columns]
    lists = [name for name, kind in queries.schema.items() if cannot_hold(kind)]
    if taken or lists:
        raise InputError(
            f"{target} cannot hold the field {(taken + lists)[0]!r}",
            field=(taken + lists)[0],
            hint="write .jsonl, which holds fields of any name and shape",
        )
    _refuse_second_text(queries, target)
    return gold.judgments.join(queries, on="query_id", how="left", maintain_order="left")


def _refuse_second_text(queries: pl.DataFrame, target: str) -> None:
    """Refuse a field that a reader would take for the text of the query, and is not."""
    name = frames.column(queries, TEXT_COLUMNS)
    if name is None or name == "text":
        return
    is_text = isinstance(queries.schema[name], (pl.String, pl.Categorical, pl.Enum, pl.Null))
    if "text" in queries.columns or not is_text:
        raise InputError(
            f"{target} cannot hold the field {name!r}: it would be read as the text of the query",
            field=name,
            hint="rename it",
        )


def run_table(run: Run, target: str) -> pl.DataFrame:
    """Return results with karat's own rank 1…n."""
    results = run.results.drop(_of_some(run.results))
    need_ids(results, target, of_all="start" not in results.columns)
    rank = pl.int_range(1, pl.len() + 1).over("query_id").alias("rank")
    return results.select("query_id", rank, pl.exclude("query_id"))


def _of_some(results: pl.DataFrame) -> list[str]:
    """Return the columns of numbers that are empty in some rows: no reader takes such a number."""
    numbers = [name for name in ("score", "start", "end", "tokens") if name in results.columns]
    return [name for name in numbers if results[name].null_count()]


def _names_columns(source: DataFile, separator: str) -> bool:
    """Tell whether the first line names columns, with this separator between them."""
    text = source.head.removeprefix(BYTE_ORDER_MARK).decode("utf-8", "replace")
    first = next((line for line in text.splitlines() if line.strip()), "")
    given = {name.strip(' "') for name in first.split(separator)}
    names = {name.lower() for name in source.columns.rename_names(given)}
    ids = (*frames.QUERY_ID, "topic", *frames.CONTEXTS)
    return len(names) > 1 and (_has_questions(names) or not names.isdisjoint(ids))


def _has_questions(names: set[str]) -> bool:
    """Tell whether names of columns are those of questions with what belongs to them."""
    others = {"id", "evidence", *RELEVANT, *RESULTS, frames.OLD_CONTEXTS}
    others |= {*frames.ITEM_ID, *frames.ANSWERS}
    return not names.isdisjoint(frames.QUERY_TEXT) and not names.isdisjoint(others)


def _read_text(source: Source, separator: str) -> Found:
    text = decode(source.read(), source)
    body = text.lstrip("\r\n")
    top = text[: len(text) - len(body)].count("\n")
    _refuse_lone_cr(source, body, top)
    content = body.encode()
    _refuse_stray_quotes(source, content, separator, top)
    _refuse_same_names(source, body, separator, top)
    try:
        table = pl.read_csv(content, separator=separator, infer_schema=False, extra_columns="raise")
    except (pl.exceptions.PolarsError, OSError) as error:
        raise (
            _ragged(source, body, separator, top)
            or _unpaired_quote(source, content, separator, top)
            or source.error(
                f"this is no table: {str(error).splitlines()[0]}",
                hint="the first line names the columns; quote values that hold the separator",
            )
        ) from error
    if table.width and (table.to_series(-1).null_count() or body.endswith(separator)):
        # A row that was cut off leaves its last values empty, and so does a row that has none.
        # A separator too many at the very end is ignored by Polars.
        ragged = _ragged(source, body, separator, top)
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


def _refuse_same_names(source: Source, body: str, separator: str, top: int) -> None:
    """Refuse two columns of the same name: one of them would be ignored silently."""
    try:
        names = next(csv.reader(io.StringIO(body[:HEAD_BYTES]), delimiter=separator), [])
    except csv.Error:
        return
    twice = [name for name in dict.fromkeys(names) if name.strip() and names.count(name) > 1]
    if twice:
        raise source.error(
            f"two columns are called {twice[0]!r}",
            line=top + 1,
            field=twice[0],
            hint="rename one of them",
        )


def _refuse_stray_quotes(source: Source, content: bytes, separator: str, top: int) -> None:
    """Refuse text after a closing quote, and a quote inside an unquoted name of a column.

    Polars reads on to the next quote there, so that rows disappear without an error. Inside other
    unquoted values it takes quotes as they are.
    """
    if b'"' not in content:
        return
    codes = np.frombuffer(content, np.uint8)
    quotes = np.flatnonzero(codes == _QUOTE)
    opening, closing = quotes[::2], quotes[1::2]
    opens_value = _opens_value(codes, opening, separator)
    last = codes.size - 1
    ends_value = _is_edge(separator)[codes[np.minimum(closing + 1, last)]] | (closing == last)
    in_names = opening[~opens_value & (opening < content.find(b"\n"))]
    behind_values = closing[opens_value[: closing.size] & ~ends_value]
    if quotes.size % 2 and opens_value[-1]:
        raise source.error(
            "a quoted value has no end",
            line=top + content.count(b"\n", 0, int(opening[-1])) + 1,
            hint="check that the file was written to the end",
        )
    stray = np.concatenate([in_names, behind_values])
    if stray.size:
        raise source.error(
            "text follows a closing quote"
            if behind_values.size
            else "a quote is inside the name of a column",
            line=top + content.count(b"\n", 0, int(stray.min())) + 1,
            hint='quote the whole value, and write a quote inside it twice: "5"" disk"',
        )


def _opens_value(
    codes: NDArray[np.uint8], opening: NDArray[np.int64], separator: str
) -> NDArray[np.bool_]:
    """Tell which quotes open a value: nothing of it is before them."""
    after_edge: NDArray[np.bool_] = _is_edge(separator)[codes[np.maximum(opening - 1, 0)]]
    after_edge[opening == 0] = True
    return after_edge


def _is_edge(separator: str) -> NDArray[np.bool_]:
    """Tell for each byte whether it may be next to a quote, outside of the quoted value.

    A quote inside a quoted value is doubled: one that closes it, and one that opens it again.
    """
    is_edge = np.zeros(256, np.bool_)
    is_edge[[*separator.encode(), *b'\n\r"']] = True
    return is_edge


def _unpaired_quote(source: Source, content: bytes, separator: str, top: int) -> InputError | None:
    """Find the first quote that is inside an unquoted value and has no other on its line."""
    codes = np.frombuffer(content, np.uint8)
    quotes = np.flatnonzero(codes == _QUOTE)
    opening = quotes[::2]
    lines = top + 1 + np.searchsorted(np.flatnonzero(codes == _NEWLINE), quotes)
    closed_on = np.append(lines[1::2], [0])[: opening.size]  # the last one may not be closed
    is_stray = ~_opens_value(codes, opening, separator) & (closed_on != lines[::2])
    if not is_stray.any():
        return None
    return source.error(
        "a quote is inside a value that is not quoted",
        line=int(lines[::2][is_stray][0]),
        hint='quote the whole value, and write a quote inside it twice: "5"" disk"',
    )


def _refuse_lone_cr(source: Source, body: str, top: int) -> None:
    """Refuse a carriage return that ends no line: readers disagree on what it means."""
    quotes = position = 0
    for match in re.finditer(r"\r(?!\n)", body):
        quotes += body.count('"', position, match.start())
        position = match.start()
        if quotes % 2 == 0:  # outside of quoted values
            raise source.error(
                "a carriage return (CR) without a line feed (LF)",
                line=top + body.count("\n", 0, position) + 1,
                hint="save the file with LF or CRLF line endings",
            )


def _ragged(source: Source, body: str, separator: str, top: int) -> InputError | None:
    """Find the first row that has more or fewer values than there are columns."""
    limit = csv.field_size_limit(sys.maxsize)
    try:
        rows = csv.reader(io.StringIO(body), delimiter=separator)
        names = next((row for row in rows if row), [])
        begins = rows.line_num + 1
        for row in rows:
            if row and len(row) != len(names):
                return source.error(
                    f"{len(row)} values under {len(names)} column names",
                    line=top + begins,
                    hint="quote values that hold the separator or a quote",
                )
            begins = rows.line_num + 1
    except csv.Error:  # a stray carriage return: Polars reads on, so nothing is said here
        pass
    finally:
        csv.field_size_limit(limit)
    return None


def _read_columns(
    name: str, read: Callable[[Path | IO[bytes], bytes], pl.DataFrame]
) -> Callable[[Source], Found]:
    """Make the reader of a format in columns, whose rows have no lines."""

    def read_from(source: Source) -> Found:
        def locate(row: int, field: str, problem: str, hint: str | None) -> InputError:
            return source.error(f"row {row}: {problem}", field=field, hint=hint)

        with refusing_damage(source, name):
            table = read(checked(source), source.head)
        if sum(map(_text_bytes, table)) > source.expanded_limit:
            raise source.too_expanded(source.expanded_limit)
        return table, locate, None

    return read_from


def _mapped(read: Callable[[DataFile], Found]) -> Callable[[DataFile], Found]:
    """Return a reader that gives columns karat's names where a mapping says so."""

    def read_from(source: DataFile) -> Found:
        table, locate, names = read(source)
        columns = source.columns
        if not columns:
            return table, locate, names

        def locate_theirs(row: int, field: str, problem: str, hint: str | None) -> InputError:
            return locate(row, columns.theirs(field), problem, hint)

        return columns.table(table), locate_theirs, names

    return read_from


@contextmanager
def refusing_damage(source: Source, name: str) -> Iterator[None]:
    """Turn failures of Polars to read a Parquet or Arrow file into an error that names it."""
    try:
        with without_panic_texts():
            yield
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        is_panic = isinstance(error, pl.exceptions.PanicException)
        problem = "Polars cannot read its values" if is_panic else str(error).splitlines()[0]
        raise source.error(
            f"this is no {name} file: {problem}", hint="check that it was written to the end"
        ) from error


@contextmanager
def without_panic_texts() -> Iterator[None]:
    """Drop what Polars prints when it panics, which it raises as an error as well.

    Standard error is held back meanwhile, and printed afterwards if there was no panic. With other
    threads it stays as it is, since they may use it.
    """
    if threading.active_count() > 1:
        yield
        return
    with tempfile.TemporaryFile() as held:
        stderr = os.dup(_STDERR)
        os.dup2(held.fileno(), _STDERR)
        panicked = False
        try:
            yield
        except pl.exceptions.PanicException:
            panicked = True
            raise
        finally:
            os.dup2(stderr, _STDERR)
            os.close(stderr)
            held.seek(0)
            os.write(_STDERR, b"" if panicked else held.read())


def checked(source: Source) -> Path | IO[bytes]:
    """Return a Parquet or Arrow file for Polars to read; refuse one that could end the process."""
    content = mapped(source)
    name = "Parquet" if content[:4] == b"PAR1" else "Arrow"
    layout = parquet_layout if name == "Parquet" else arrow_layout
    try:
        size = layout.expanded_size(content)
    except DamagedLayoutError as error:
        raise source.error(
            f"the {name} file is damaged: {error}", hint="check that it was written to the end"
        ) from error
    if size > source.expanded_limit:
        raise source.too_expanded(source.expanded_limit)
    return source.path if source.on_disk else io.BytesIO(content)


def mapped(source: Source) -> Buffer:
    """Return the content of a file, mapped into memory where it is on the disk as it is."""
    if not source.on_disk or not source.path.stat().st_size:
        return source.read()
    with source.path.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def _text_bytes(values: pl.Series) -> int:
    """Return how long all texts of a column are: rows may share one long text in memory."""
    kind = values.dtype
    if kind == pl.String:
        return int(values.str.len_bytes().sum())
    if kind in (pl.Categorical, pl.Enum):
        counts = values.drop_nulls().value_counts()
        return int((counts[values.name].cast(pl.String).str.len_bytes() * counts["count"]).sum())
    if isinstance(kind, (pl.List, pl.Array)):
        return _text_bytes(values.explode())
    if isinstance(kind, pl.Struct):
        return sum(map(_text_bytes, values.struct.unnest()))
    return 0


def _read_arrow(given: Path | IO[bytes], head: bytes) -> pl.DataFrame:
    if head.startswith(_ARROW_STREAM):
        return pl.read_ipc_stream(given)
    return pl.scan_ipc(given, glob=False).collect()


def _kind(table: pl.DataFrame) -> Kind | None:
    """Tell gold from a run by the columns; whole numbers called score, or places, may be either."""
    if frames.has_ragas_columns(table.columns):
        return kind_of_contexts(table.columns)
    score = frames.column(table, ("score",))
    if frames.column(table, ("rank",)) is None and score is not None:
        numbers = table[score].cast(pl.Float64, strict=False)
        graded = frames.column(table, frames.GRADE[:-1]) is not None
        return None if graded or (numbers == numbers.round()).all() else "run"
    listed = (*RELEVANT, *EVIDENCE_LISTS)
    gold = frames.column(table, (*frames.GRADE[:-1], "evidence", *listed)) is not None
    ranked = frames.column(table, ("rank", *RESULTS)) is not None
    items = frames.item_id_column(table) or frames.column(table, ("text",))
    is_run = items is not None and not frames.has_span_columns(table)
    return one_kind(gold=gold, run=ranked or (is_run and not gold))


def _format(
    name: str,
    title: str,
    endings: tuple[str, ...],
    sniff: Callable[[DataFile], bool],
    read: Callable[[DataFile], Found],
    write: Callable[[pl.DataFrame, IO[bytes]], Any],
    *,
    cannot_hold: Callable[[pl.DataType], bool] = lambda kind: kind.is_nested(),
) -> Format:
    """Make a format from the things in which kinds of tables differ."""
    target = f"a table in {title}"

    def read_gold(source: DataFile) -> Gold:
        gold = made(partial(gold_of_table, name=source.name), read(source), source)
        return replace(gold, recognised=source.columns.in_their_names(gold.recognised))

    def read_run(source: DataFile) -> Run:
        run = made(partial(run_of_table, name=source.name), read(source), source)
        return replace(run, recognised=source.columns.in_their_names(run.recognised))

    def write_gold(gold: Gold, file: IO[bytes]) -> WriteReport:
        write(gold_table(gold, target, cannot_hold), file)
        return warn_of_gold_losses(gold, target, fields=True, empty=False)

    def write_run(run: Run, file: IO[bytes]) -> WriteReport:
        write(run_table(run, target), file)
        lost = [f"{column} where only some items have one" for column in _of_some(run.results)]
        return warn_of_run_losses(run, target, holds=RESULT_COLUMNS, empty=False, also=lost)

    return Format(
        name=name,
        endings=endings,
        sniff=sniff,
        kind=lambda source: _kind(read(source)[0]),
        read_gold=read_gold,
        read_run=read_run,
        write_gold=write_gold,
        write_run=write_run,
    )


def made(make: Callable[..., Made], found: Found, source: Source) -> Made:
    """Make something of a table that was found in a file, which is named if that fails."""
    table, locate, names = found
    try:
        return make(table, locate=locate)
    except InputError as error:
        if error.path is not None:
            raise
        raise source.error(error.problem, line=names, field=error.field, hint=error.hint) from error


def _text_format(name: str, separator: str) -> Format:
    return _format(
        name,
        name.upper(),
        (f".{name}",),
        lambda source: _names_columns(source, separator),
        READERS[name],
        WRITERS[name],
    )


_QUOTE, _NEWLINE = b'"\n'
_ARROW_STREAM = b"\xff\xff\xff\xff"
READERS: dict[str, Callable[[DataFile], Found]] = {
    "csv": _mapped(lambda source: _read_text(source, ",")),
    "tsv": _mapped(lambda source: _read_text(source, "\t")),
    "parquet": _mapped(
        _read_columns("Parquet", lambda given, _: pl.read_parquet(given, glob=False))
    ),
    "arrow": _mapped(_read_columns("Arrow", _read_arrow)),
}
WRITERS: dict[str, Callable[[pl.DataFrame, IO[bytes]], Any]] = {
    "csv": lambda table, file: table.write_csv(file, separator=","),
    "tsv": lambda table, file: table.write_csv(file, separator="\t"),
    "parquet": lambda table, file: table.write_parquet(file),
    # The oldest layout of texts, which every reader of Arrow takes.
    "arrow": lambda table, file: table.write_ipc(file, compat_level=pl.CompatLevel.oldest()),
}
CSV = _text_format("csv", ",")
TSV = _text_format("tsv", "\t")
PARQUET = _format(
    "parquet",
    "Parquet",
    (".parquet",),
    lambda source: source.head.startswith(b"PAR1"),
    READERS["parquet"],
    WRITERS["parquet"],
    cannot_hold=has_empty_object,
)
ARROW = _format(
    "arrow",
    "Arrow",
    (".arrow", ".feather", ".ipc"),
    lambda source: source.head.startswith((b"ARROW1", _ARROW_STREAM)),
    READERS["arrow"],
    WRITERS["arrow"],
    cannot_hold=lambda _: False,
)
