"""Tables: CSV, TSV, Parquet and Arrow files with one row per judgment or result.

A text table is checked before Polars reads it, since Polars accepts misplaced quotes and rows with
missing values. Parquet and Arrow files are checked because damaged ones can crash the process.
"""

from __future__ import annotations

import csv
import io
import mmap
import os
import re
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import chain
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
    NotInPiecesError,
    RunPiece,
    WriteReport,
    kind_of_contexts,
    require_ids,
    unambiguous_kind,
    warn_of_gold_losses,
    warn_of_run_losses,
)
from karat.data.formats.json_lines import Header
from karat.data.formats.native_gold import RecordBlock, numbered_records, pieces_of_records
from karat.data.formats.parquet_layout import Buffer, DamagedLayoutError
from karat.data.frames import RESULT_COLUMNS
from karat.data.gold import Gold, checked_gold_columns, gold_of_table, gold_with_fields
from karat.data.gold_tables import TEXT_COLUMNS, FieldsByQuery, are_distinct_queries, list_columns
from karat.data.ranking import ranked_by_rank
from karat.data.run import Run, run_of_table, unranked_run_of_table
from karat.errors import InputError
from karat.files import BYTE_ORDER_MARK, HEAD_BYTES, Source, decode

if TYPE_CHECKING:
    from numpy.typing import NDArray

_STDERR = 2
_QUOTE_HINT = 'quote the whole value, and double each quote inside it: "5"" disk"'
Converted = TypeVar("Converted")
LocatedTable = tuple[pl.DataFrame, frames.Locate, int | None]
"""A table, the function that makes the error for a row, and the line with the column names."""


def has_empty_object(dtype: pl.DataType | DataTypeClass) -> bool:
    """Return whether a type contains objects without keys, which Parquet cannot store."""
    if isinstance(dtype, pl.Struct):
        return not dtype.fields or any(has_empty_object(field.dtype) for field in dtype.fields)
    return isinstance(dtype, (pl.List, pl.Array)) and has_empty_object(dtype.inner)


def gold_table(
    gold: Gold, target: str, is_unsupported: Callable[[pl.DataType], bool]
) -> pl.DataFrame:
    """Return the judgments with the fields of their queries as further columns."""
    queries = gold.queries
    conflicting = [name for name in queries.columns[1:] if name in gold.judgments.columns]
    unsupported = [name for name, dtype in queries.schema.items() if is_unsupported(dtype)]
    if conflicting or unsupported:
        field = (conflicting + unsupported)[0]
        raise InputError(
            f"{target} cannot store the field {field!r}",
            field=field,
            hint="write a .jsonl file, which can store fields with any name and type",
        )
    _refuse_second_text(queries, target)
    # A query without an answer has no judgments, but must not become an unknown query.
    unjudged = gold.unanswerable.filter(
        ~gold.unanswerable.is_in(gold.judgments["query_id"].implode())
    )
    rows = pl.concat([gold.judgments, unjudged.to_frame()], how="diagonal")
    return rows.join(queries, on="query_id", how="left", maintain_order="left")


def _refuse_second_text(queries: pl.DataFrame, target: str) -> None:
    """Raise an InputError for a field that would be read as the text of the query."""
    name = frames.column(queries, TEXT_COLUMNS)
    if name is None or name == "text":
        return
    is_text = isinstance(queries.schema[name], (pl.String, pl.Categorical, pl.Enum, pl.Null))
    if "text" in queries.columns or not is_text:
        raise InputError(
            f"{target} cannot store the field {name!r}: it would be read as the text of the query",
            field=name,
            hint="rename the field",
        )


def run_table(run: Run, target: str) -> pl.DataFrame:
    """Return the results with the ranks 1…n."""
    results = run.results.drop(_incomplete_columns(run.results))
    require_ids(results, target, of_all="start" not in results.columns)
    rank = pl.int_range(1, pl.len() + 1).over("query_id").alias("rank")
    return results.select("query_id", rank, pl.exclude("query_id"))


def _incomplete_columns(results: pl.DataFrame) -> list[str]:
    """Return the number columns with nulls, which the readers of tables do not accept."""
    numbers = [name for name in ("score", "start", "end", "tokens") if name in results.columns]
    return [name for name in numbers if results[name].null_count()]


def _has_column_names(source: DataFile, separator: str) -> bool:
    """Return whether the first line has known column names with this separator between them."""
    text = source.head.removeprefix(BYTE_ORDER_MARK).decode("utf-8", "replace")
    first = next((line for line in text.splitlines() if line.strip()), "")
    original_names = {name.strip(' "') for name in first.split(separator)}
    names = {name.lower() for name in source.columns.rename_names(original_names)}
    ids = (*frames.QUERY_ID, "topic", *frames.CONTEXTS)
    return len(names) > 1 and (_has_query_texts(names) or not names.isdisjoint(ids))


def _has_query_texts(names: set[str]) -> bool:
    """Return whether there is a column with query texts and another one that belongs to queries."""
    related = {"id", "evidence", *RELEVANT, *RESULTS, frames.OLD_CONTEXTS}
    related |= {*frames.ITEM_ID, *frames.ANSWERS}
    return not names.isdisjoint(frames.QUERY_TEXT) and not names.isdisjoint(related)


def _read_text(source: Source, separator: str) -> LocatedTable:
    text = decode(source.read(), source)
    body = text.lstrip("\r\n")
    return _table_of_text(source, body, separator, text[: len(text) - len(body)].count("\n"))


def _read_text_blocks(source: Source, separator: str) -> Iterator[LocatedTable]:
    """Yield a table for each block of lines, each with the column names of the first line."""
    names, before, pending = "", 0, b""
    for block in chain(source.whole_lines(), [b""]):
        pending += block
        # A quoted value may contain newlines, so a block ends where all quotes are closed.
        if block and pending.count(b'"') % 2:
            continue
        text = decode(pending, source, before + 1) if pending else ""
        body = text if names else text.lstrip("\r\n")
        n_blank = text[: len(text) - len(body)].count("\n")
        if body.strip("\r\n"):
            yield _table_of_text(
                source, names + body, separator, before + n_blank - names.count("\n")
            )
            names = names or _first_row(body)
        before += pending.count(b"\n")
        pending = b""


def _first_row(body: str) -> str:
    """Return the first row of a table, with its newline; quoted names may contain newlines."""
    end = body.find("\n")
    while end >= 0 and body.count('"', 0, end) % 2:
        end = body.find("\n", end + 1)
    return body[: end + 1] if end >= 0 else body + "\n"


def _table_of_text(source: Source, body: str, separator: str, skipped: int) -> LocatedTable:
    """Read a table from text that starts with the column names, after `skipped` lines."""
    _refuse_lone_cr(source, body, skipped)
    content = body.encode()
    _refuse_stray_quotes(source, content, separator, skipped)
    _refuse_duplicate_names(source, body, separator, skipped)
    try:
        table = pl.read_csv(content, separator=separator, infer_schema=False, extra_columns="raise")
    except (pl.exceptions.PolarsError, OSError) as error:
        raise (
            _ragged_row_error(source, body, separator, skipped)
            or _unpaired_quote_error(source, content, separator, skipped)
            or source.error(
                f"the file is not a table: {str(error).splitlines()[0]}",
                hint="write the column names on the first line, and quote values that contain "
                "the separator",
            )
        ) from error
    if table.width and (table.to_series(-1).null_count() or body.endswith(separator)):
        # Polars reads a row with too few values as if the last ones were empty, and ignores an
        # additional separator at the end of the file.
        ragged_row_error = _ragged_row_error(source, body, separator, skipped)
        if ragged_row_error is not None:
            raise ragged_row_error
    is_blank = table.select(pl.all_horizontal(pl.all().is_null())).to_series()

    def locate(row: int, field: str, problem: str, hint: str | None) -> InputError:
        rows_with_values = np.flatnonzero(~is_blank.to_numpy())
        before = table.head(int(rows_with_values[row - 1]))
        # Quoted values and column names may contain newlines.
        in_values = before.select(pl.sum_horizontal(pl.all().str.count_matches("\n").sum())).item()
        in_names = sum(name.count("\n") for name in table.columns)
        line = skipped + in_names + before.height + int(in_values or 0) + 2
        return source.error(problem, line=line, field=field, hint=hint)

    return table.filter(~is_blank), locate, skipped + 1


def _refuse_duplicate_names(source: Source, body: str, separator: str, skipped: int) -> None:
    """Raise an InputError for duplicate column names: one of them would be ignored silently."""
    try:
        names = next(csv.reader(io.StringIO(body[:HEAD_BYTES]), delimiter=separator), [])
    except csv.Error:
        return
    duplicates = [name for name in dict.fromkeys(names) if name.strip() and names.count(name) > 1]
    if duplicates:
        raise source.error(
            f"two columns have the name {duplicates[0]!r}",
            line=skipped + 1,
            field=duplicates[0],
            hint="rename one of them",
        )


def _refuse_stray_quotes(source: Source, content: bytes, separator: str, skipped: int) -> None:
    """Raise an InputError for text after a closing quote and for a quote inside a column name.

    Polars reads on to the next quote in these cases, so that rows disappear without an error. In
    other unquoted values it reads quotes as normal characters.
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
    after_values = closing[opens_value[: closing.size] & ~ends_value]
    if quotes.size % 2 and opens_value[-1]:
        raise source.error(
            "a quoted value has no closing quote",
            line=skipped + content.count(b"\n", 0, int(opening[-1])) + 1,
            hint="check that the file was written completely",
        )
    stray = np.concatenate([in_names, after_values])
    if stray.size:
        problem = "a column name contains a quote"
        if after_values.size:
            problem = "text follows a closing quote"
        raise source.error(
            problem,
            line=skipped + content.count(b"\n", 0, int(stray.min())) + 1,
            hint=_QUOTE_HINT,
        )


def _opens_value(
    codes: NDArray[np.uint8], opening: NDArray[np.int64], separator: str
) -> NDArray[np.bool_]:
    """Tell which quotes are at the start of a value."""
    after_edge: NDArray[np.bool_] = _is_edge(separator)[codes[np.maximum(opening - 1, 0)]]
    after_edge[opening == 0] = True
    return after_edge


def _is_edge(separator: str) -> NDArray[np.bool_]:
    """Tell for each byte whether it may be next to a quote, outside of the quoted value.

    A doubled quote inside a quoted value counts as one that closes it and one that opens it again.
    """
    is_edge = np.zeros(256, np.bool_)
    is_edge[[*separator.encode(), *b'\n\r"']] = True
    return is_edge


def _unpaired_quote_error(
    source: Source, content: bytes, separator: str, skipped: int
) -> InputError | None:
    """Make the error for the first unpaired quote inside an unquoted value, if there is one."""
    codes = np.frombuffer(content, np.uint8)
    quotes = np.flatnonzero(codes == _QUOTE)
    opening = quotes[::2]
    lines = skipped + 1 + np.searchsorted(np.flatnonzero(codes == _NEWLINE), quotes)
    closing_lines = np.append(lines[1::2], [0])[: opening.size]  # the last may not be closed
    is_stray = ~_opens_value(codes, opening, separator) & (closing_lines != lines[::2])
    if not is_stray.any():
        return None
    return source.error(
        "an unquoted value contains a quote",
        line=int(lines[::2][is_stray][0]),
        hint=_QUOTE_HINT,
    )


def _refuse_lone_cr(source: Source, body: str, skipped: int) -> None:
    """Raise an InputError for a carriage return inside a line: readers disagree on its meaning."""
    quotes = position = 0
    for match in re.finditer(r"\r(?!\n)", body):
        quotes += body.count('"', position, match.start())
        position = match.start()
        if quotes % 2 == 0:  # outside of quoted values
            raise source.error(
                "the line contains a carriage return (CR) without a line feed (LF)",
                line=skipped + body.count("\n", 0, position) + 1,
                hint="save the file with LF or CRLF line endings",
            )


def _ragged_row_error(source: Source, body: str, separator: str, skipped: int) -> InputError | None:
    """Make the error for the first row with a wrong number of values, if there is one."""
    limit = csv.field_size_limit(sys.maxsize)
    try:
        rows = csv.reader(io.StringIO(body), delimiter=separator)
        names = next((row for row in rows if row), [])
        first_line = rows.line_num + 1
        for row in rows:
            if row and len(row) != len(names):
                return source.error(
                    f"expected {len(names)} values (one per column), got {len(row)} values",
                    line=skipped + first_line,
                    hint="quote values that contain the separator or a quote",
                )
            first_line = rows.line_num + 1
    except csv.Error:  # a stray carriage return, which Polars accepts
        pass
    finally:
        csv.field_size_limit(limit)
    return None


def _binary_reader(
    name: str, read: Callable[[Path | IO[bytes], bytes], pl.DataFrame]
) -> Callable[[Source], LocatedTable]:
    """Return the reader for Parquet or Arrow, where errors name rows instead of lines."""

    def read_from(source: Source) -> LocatedTable:
        def locate(row: int, field: str, problem: str, hint: str | None) -> InputError:
            return source.error(f"row {row}: {problem}", field=field, hint=hint)

        with damage_as_input_error(source, name):
            table = read(polars_source(source), source.head)
        if sum(map(_text_bytes, table)) > source.expanded_limit:
            raise source.too_expanded(source.expanded_limit)
        return table, locate, None

    return read_from


def _with_columns(read: Callable[[DataFile], LocatedTable]) -> Callable[[DataFile], LocatedTable]:
    """Return a reader that applies the user's column mapping; errors use the original names."""
    return lambda source: _in_our_names(source, read(source))


def _in_our_names(source: DataFile, located: LocatedTable) -> LocatedTable:
    table, locate, names_line = located
    columns = source.columns
    if not columns:
        return located

    def locate_theirs(row: int, field: str, problem: str, hint: str | None) -> InputError:
        return locate(row, columns.theirs(field), problem, hint)

    return columns.table(table), locate_theirs, names_line


@contextmanager
def damage_as_input_error(source: Source, name: str) -> Iterator[None]:
    """Raise an InputError that names the file if Polars fails to read a Parquet or Arrow file."""
    try:
        with suppress_panic_output():
            yield
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        reason = str(error).splitlines()[0]
        if isinstance(error, pl.exceptions.PanicException):
            reason = "Polars cannot read its values"
        raise source.error(
            f"not a valid {name} file: {reason}", hint="check that the file was written completely"
        ) from error


@contextmanager
def suppress_panic_output() -> Iterator[None]:
    """Suppress what Polars prints when it panics; it raises an exception as well.

    Standard error is redirected to a file and printed afterwards, unless there was a panic. It is
    not redirected if there are other threads, since they may use it.
    """
    if threading.active_count() > 1:
        yield
        return
    with tempfile.TemporaryFile() as captured:
        stderr = os.dup(_STDERR)
        os.dup2(captured.fileno(), _STDERR)
        panicked = False
        try:
            yield
        except pl.exceptions.PanicException:
            panicked = True
            raise
        finally:
            os.dup2(stderr, _STDERR)
            os.close(stderr)
            captured.seek(0)
            os.write(_STDERR, b"" if panicked else captured.read())


def polars_source(source: Source) -> Path | IO[bytes]:
    """Return a Parquet or Arrow file for Polars, after checking it for damage."""
    content = memory_map(source)
    if _expanded_size(source, content) > source.expanded_limit:
        raise source.too_expanded(source.expanded_limit)
    return source.path if source.on_disk else io.BytesIO(content)


def _expanded_size(source: Source, content: Buffer) -> int:
    """Return the approximate size of the content in memory, after checking it for damage."""
    name = "Parquet" if content[:4] == _PARQUET else "Arrow"
    layout = parquet_layout if name == "Parquet" else arrow_layout
    try:
        size: int = layout.expanded_size(content)
    except DamagedLayoutError as error:
        raise source.error(
            f"the {name} file is damaged: {error}",
            hint="check that the file was written completely",
        ) from error
    return size


def size_in_memory(source: Source) -> int:
    """Return about how many bytes the content of a Parquet or Arrow file takes as a table.

    Rows with lists are read as Python objects, which take many times as much.
    """
    size = _expanded_size(source, memory_map(source))
    with damage_as_input_error(source, "Parquet or Arrow"):
        if source.head.startswith(_ARROW_STREAM):
            schema = pl.read_ipc_stream(source.path, n_rows=0).schema
        else:
            scan = pl.scan_parquet if source.head.startswith(_PARQUET) else pl.scan_ipc
            schema = scan(source.path, glob=False).collect_schema()
    return size * (_OBJECT_EXPANSION if any(map(_is_nested, schema.dtypes())) else 1)


def _is_nested(dtype: pl.DataType) -> bool:
    return dtype.is_nested()


def memory_map(source: Source) -> Buffer:
    """Return the content of a file; an uncompressed file on disk is mapped into memory."""
    if not source.on_disk or not source.path.stat().st_size:
        return source.read()
    with source.path.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def _text_bytes(values: pl.Series) -> int:
    """Return the total length of the texts in a column; a text that rows share counts for each."""
    dtype = values.dtype
    if dtype == pl.String:
        return int(values.str.len_bytes().sum())
    if dtype in (pl.Categorical, pl.Enum):
        counts = values.drop_nulls().value_counts()
        return int((counts[values.name].cast(pl.String).str.len_bytes() * counts["count"]).sum())
    if isinstance(dtype, (pl.List, pl.Array)):
        return _text_bytes(values.explode())
    if isinstance(dtype, pl.Struct):
        return sum(map(_text_bytes, values.struct.unnest()))
    return 0


def _binary_blocks(
    name: str, scan: Callable[[Path], pl.LazyFrame]
) -> Callable[[DataFile], Iterator[LocatedTable]]:
    """Return the function that reads a Parquet or Arrow file in blocks of rows.

    It raises a `NotInPiecesError` for a file that is compressed, and for an Arrow stream.
    """

    def blocks_of(source: DataFile) -> Iterator[LocatedTable]:
        if not source.on_disk or source.head.startswith(_ARROW_STREAM):
            raise NotInPiecesError
        with damage_as_input_error(source, name):
            table = scan(source.path)
            n_rows = table.select(pl.len()).collect().item()
        bytes_per_row = max(size_in_memory(source) // max(n_rows, 1), 1)
        size = max(min(source.largest_block // bytes_per_row, _MOST_ROWS), 1)
        for start in range(0, n_rows, size):

            def locate(
                row: int, field: str, problem: str, hint: str | None, *, start: int = start
            ) -> InputError:
                return source.error(f"row {start + row}: {problem}", field=field, hint=hint)

            with damage_as_input_error(source, name):
                block = table.slice(start, size).collect()
            if sum(map(_text_bytes, block)) > source.expanded_limit:
                raise source.too_expanded(source.expanded_limit)
            source.n_read = source.path.stat().st_size * min(start + size, n_rows) // n_rows
            yield block, locate, None

    return blocks_of


_OBJECT_EXPANSION = 16
"""How many times as large as a column of lists its Python objects are."""
_MOST_ROWS = 1 << 20


def is_table(source: Source) -> bool:
    """Return whether the content is that of a Parquet or Arrow file."""
    return source.head.startswith((_PARQUET, *_ARROW))


def _read_arrow(file: Path | IO[bytes], head: bytes) -> pl.DataFrame:
    if head.startswith(_ARROW_STREAM):
        return pl.read_ipc_stream(file)
    return pl.scan_ipc(file, glob=False).collect()


def _kind(table: pl.DataFrame) -> Kind | None:
    """Return the kind from the columns; a column of integers named score may be either."""
    if frames.has_ragas_columns(table.columns):
        return kind_of_contexts(table.columns)
    grade_names = frames.GRADE[:-1]  # the last name is score
    score = frames.column(table, ("score",))
    if frames.column(table, ("rank",)) is None and score is not None:
        scores = table[score].cast(pl.Float64, strict=False)
        has_grades = frames.column(table, grade_names) is not None
        return None if has_grades or (scores == scores.round()).all() else "run"
    gold_names = (*grade_names, "evidence", *RELEVANT, *EVIDENCE_LISTS)
    is_gold = frames.column(table, gold_names) is not None
    is_run = frames.column(table, ("rank", *RESULTS)) is not None
    items = frames.item_id_column(table) or frames.column(table, ("text",))
    has_only_items = items is not None and not frames.has_span_columns(table) and not is_gold
    return unambiguous_kind(gold=is_gold, run=is_run or has_only_items)


def _format(
    name: str,
    title: str,
    endings: tuple[str, ...],
    sniff: Callable[[DataFile], bool],
    read: Callable[[DataFile], LocatedTable],
    write: Callable[[pl.DataFrame, IO[bytes]], Any],
    *,
    read_blocks: Callable[[DataFile], Iterator[LocatedTable]],
    is_unsupported: Callable[[pl.DataType], bool] = lambda dtype: dtype.is_nested(),
) -> Format:
    """Make the format for a kind of table; `is_unsupported` tells which types it cannot store."""
    target = f"the {title} format"

    def read_gold(source: DataFile) -> Gold:
        gold = convert_table(partial(gold_of_table, name=source.name), read(source), source)
        return replace(gold, recognised=source.columns.in_their_names(gold.recognised))

    def read_run(source: DataFile) -> Run:
        run = convert_table(partial(run_of_table, name=source.name), read(source), source)
        return replace(run, recognised=source.columns.in_their_names(run.recognised))

    def read_run_pieces(source: DataFile) -> Iterator[RunPiece]:
        n_rows = 0
        for located in map(partial(_in_our_names, source), read_blocks(source)):
            if not located[0].height:
                continue
            if frames.has_ragas_columns(located[0].columns):
                # Whether contexts without ids get hashes as ids depends on all rows.
                raise NotInPiecesError
            convert = partial(unranked_run_of_table, name=source.name)
            run, ranked = convert_table(convert, located, source)
            if "rank" in run.results.columns:
                run = run.with_results(run.results.with_row_index("row", n_rows))
                ranked = partial(ranked_by_rank, locate=partial(_error_at, source, read_blocks))
            n_rows += located[0].height
            yield RunPiece(run, ranked)
        if not n_rows:
            read_run(source)  # raises the error for a table without rows

    def write_gold(gold: Gold, file: IO[bytes]) -> WriteReport:
        table = gold_table(gold, target, is_unsupported)
        write(table, file)
        return warn_of_gold_losses(
            gold, target, fields=True, empty=False, queries=table["query_id"].n_unique()
        )

    def write_run(run: Run, file: IO[bytes]) -> WriteReport:
        write(run_table(run, target), file)
        lost = [
            f"{column}, which only some items have" for column in _incomplete_columns(run.results)
        ]
        return warn_of_run_losses(run, target, stored=RESULT_COLUMNS, empty=False, also=lost)

    return Format(
        name=name,
        endings=endings,
        sniff=sniff,
        kind=lambda source: _kind(read(source)[0]),
        read_gold=read_gold,
        read_run=read_run,
        write_gold=write_gold,
        write_run=write_run,
        read_run_pieces=read_run_pieces,
        read_gold_pieces=partial(_gold_pieces, read_blocks=read_blocks),
    )


def _gold_pieces(
    source: DataFile, read_blocks: Callable[[DataFile], Iterator[LocatedTable]]
) -> Iterator[Gold]:
    """Yield the gold of each block, and then the texts and fields of all queries."""

    def blocks_with_rows() -> Iterator[LocatedTable]:
        names_line = None
        for block, locate, line in map(partial(_in_our_names, source), read_blocks(source)):
            names_line = line if names_line is None else names_line
            located = block, locate, names_line
            if block.height:
                yield convert_table(checked_gold_columns, located, source), *located[1:]

    blocks = blocks_with_rows()
    first = next(blocks, None)
    # Reading it as a whole raises the error for a table without rows.
    if first is None or frames.has_ragas_columns(first[0].columns):
        raise NotInPiecesError
    tables = (table for table, *_ in blocks_with_rows())
    if lists := list_columns(first[0], lambda: are_distinct_queries(tables)):
        pieces = _pieces_of_lists(source, blocks_with_rows, lists)
    else:
        pieces = _pieces_of_rows(source, chain([first], blocks))
    for piece in pieces:
        yield replace(piece, recognised=source.columns.in_their_names(piece.recognised))


def _pieces_of_rows(source: DataFile, blocks: Iterable[LocatedTable]) -> Iterator[Gold]:
    """Yield the judgments, spans or evidence texts of each block, and then the fields."""
    fields = FieldsByQuery()
    for located in blocks:
        convert = partial(gold_with_fields, name=source.name)
        piece, fields_of_block = convert_table(convert, located, source)
        fields.add(fields_of_block, frames.query_id_column(located[0]))
        yield piece
    with _located_errors(source, located[2]):
        yield Gold(query_data=fields.table(), name=source.name)


def _pieces_of_lists(
    source: DataFile, read_blocks: Callable[[], Iterator[LocatedTable]], lists: Mapping[str, str]
) -> Iterator[Gold]:
    """Yield the gold of each block, in which every row is a query, and then the fields."""
    table, _, names_line = next(read_blocks())
    recognised = frames.recognised_columns(table, **lists)

    def read_records() -> Iterator[RecordBlock]:
        for block, locate, _ in read_blocks():
            records, error = frames.query_records(block, lists, ("relevant",), locate)
            yield numbered_records(records), error

    with _located_errors(source, names_line):
        for piece in pieces_of_records(read_records, Header(1, "gold", source.name)):
            yield replace(piece, recognised=recognised)


def _error_at(
    source: DataFile,
    read_blocks: Callable[[DataFile], Iterator[LocatedTable]],
    row: int,
    field: str,
    problem: str,
    hint: str | None,
) -> InputError:
    """Make the error for a row of a table that was read in blocks."""
    for located in read_blocks(source):
        table, locate, _ = _in_our_names(source, located)
        if row <= table.height:
            return locate(row, field, problem, hint)
        row -= table.height
    raise AssertionError("the row is in the file")


def convert_table(
    convert: Callable[..., Converted], located: LocatedTable, source: Source
) -> Converted:
    """Convert the table of a file; errors name the file, and the line of the column names."""
    table, locate, names_line = located
    with _located_errors(source, names_line):
        return convert(table, locate=locate)


@contextmanager
def _located_errors(source: Source, names_line: int | None) -> Iterator[None]:
    """Add the file, and the line of the column names, to errors that do not name a file."""
    try:
        yield
    except InputError as error:
        if error.path is not None:
            raise
        raise source.error(
            error.problem, line=names_line, field=error.field, hint=error.hint
        ) from error


def _text_format(name: str, separator: str) -> Format:
    return _format(
        name,
        name.upper(),
        (f".{name}",),
        lambda source: _has_column_names(source, separator),
        READERS[name],
        WRITERS[name],
        read_blocks=lambda source: _read_text_blocks(source, separator),
    )


_QUOTE, _NEWLINE = b'"\n'
_PARQUET = b"PAR1"
_ARROW_STREAM = b"\xff\xff\xff\xff"
_ARROW = (b"ARROW1", _ARROW_STREAM)
READERS: dict[str, Callable[[DataFile], LocatedTable]] = {
    "csv": _with_columns(lambda source: _read_text(source, ",")),
    "tsv": _with_columns(lambda source: _read_text(source, "\t")),
    "parquet": _with_columns(
        _binary_reader("Parquet", lambda file, _: pl.read_parquet(file, glob=False))
    ),
    "arrow": _with_columns(_binary_reader("Arrow", _read_arrow)),
}
WRITERS: dict[str, Callable[[pl.DataFrame, IO[bytes]], Any]] = {
    "csv": lambda table, file: table.write_csv(file, separator=","),
    "tsv": lambda table, file: table.write_csv(file, separator="\t"),
    "parquet": lambda table, file: table.write_parquet(file),
    # The oldest layout for texts, which every Arrow reader supports.
    "arrow": lambda table, file: table.write_ipc(file, compat_level=pl.CompatLevel.oldest()),
}
CSV = _text_format("csv", ",")
TSV = _text_format("tsv", "\t")
PARQUET = _format(
    "parquet",
    "Parquet",
    (".parquet",),
    lambda source: source.head.startswith(_PARQUET),
    READERS["parquet"],
    WRITERS["parquet"],
    read_blocks=_binary_blocks("Parquet", lambda path: pl.scan_parquet(path, glob=False)),
    is_unsupported=has_empty_object,
)
ARROW = _format(
    "arrow",
    "Arrow",
    (".arrow", ".feather", ".ipc"),
    lambda source: source.head.startswith(_ARROW),
    READERS["arrow"],
    WRITERS["arrow"],
    read_blocks=_binary_blocks("Arrow", lambda path: pl.scan_ipc(path, glob=False)),
    is_unsupported=lambda _: False,
)
