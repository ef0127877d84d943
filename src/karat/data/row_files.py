"""Files with one row per document or chunk: JSON Lines, CSV, TSV, Parquet and Arrow."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import msgspec
import polars as pl

from karat.data.data_file import DataFile
from karat.data.formats import table_files
from karat.data.formats.json_lines import Id, decoded, numbered
from karat.errors import InputError
from karat.files import BYTE_ORDER_MARK, refuse_unreadable, without_compression, writing

ENDINGS = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
}
NAMES = ("jsonl", *table_files.READERS)
Table = TypeVar("Table")


class RowLine(msgspec.Struct):
    """A line of JSON Lines: its keys, and its conversion to a row of the table."""

    hints: ClassVar[Mapping[str, str]] = {}
    """How to correct an invalid value, by key."""

    def row(self) -> dict[str, Any]:
        """Return the columns of the row."""
        raise NotImplementedError


def first_id(*ids: Id | None) -> str | None:
    """Return the first id that is not None, as a str; files use different keys for the id."""
    return next((str(value) for value in ids if value is not None), None)


def read(
    source: DataFile,
    format: str | None,  # noqa: A002
    line: type[RowLine],
    make: Callable[..., Table],
) -> Table:
    """Read a table. `line` declares the keys of JSON Lines, and `make` checks the table."""
    name = format or _detect_format(source)
    if name not in NAMES:
        raise unknown_format_error(name)
    if name == "jsonl":
        table_rows = _read_json_lines(source, line)
    else:
        table_rows = table_files.READERS[name](source)
    if not table_rows[0].height:
        raise source.error("the table has no rows", hint="check the command that wrote the file")
    return table_files.convert_table(make, table_rows, source)


def write(table: pl.DataFrame, path: str | os.PathLike[str], format: str | None) -> None:  # noqa: A002
    """Write a table in the given format, or in the format for the file extension."""
    ending = without_compression(Path(path)).suffix.lower()
    name = format or ENDINGS.get(ending)
    if name is None:
        raise InputError(
            f"unknown file extension {ending!r}",
            path=path,
            hint=f"use one of {', '.join(ENDINGS)}, or specify the format: {', '.join(NAMES)}",
        )
    if name not in NAMES:
        raise unknown_format_error(name)
    with writing(path) as file:
        if name == "jsonl":
            table.write_ndjson(file)
        else:
            table_files.WRITERS[name](table, file)


def unknown_format_error(name: str, known: tuple[str, ...] = NAMES) -> InputError:
    """Return the error for an unknown format."""
    return InputError(
        f"unknown format {name!r}", field="format", hint=f"choose one of {', '.join(known)}"
    )


def _detect_format(source: DataFile) -> str:
    """Detect the format by the content, or else by the file extension."""
    for binary_format in (table_files.PARQUET, table_files.ARROW):
        if binary_format.sniff(source):
            return binary_format.name
    refuse_unreadable(source.head, source)
    if source.head.removeprefix(BYTE_ORDER_MARK).lstrip().startswith(b"{"):
        return "jsonl"
    if source.ending not in ENDINGS:
        raise source.error(
            "the format cannot be detected",
            field="format",
            hint=f"specify the format: {', '.join(NAMES)}",
        )
    return ENDINGS[source.ending]


def _decode_mapped_line(source: DataFile, line: type[RowLine], content: bytes) -> RowLine:
    record = msgspec.json.decode(content)
    return msgspec.convert(
        source.columns.keys(record) if isinstance(record, dict) else record, line
    )


def _read_json_lines(source: DataFile, line: type[RowLine]) -> table_files.LocatedTable:
    """Read JSON Lines; keys that are not declared are ignored."""
    numbered_lines = numbered(source)
    decode = msgspec.json.Decoder(line).decode
    if source.columns:
        decode = partial(_decode_mapped_line, source, line)
    try:
        rows = [row.row() for _, row in decoded(numbered_lines, decode, source)]
    except InputError as error:
        error.hint = line.hints.get(error.field or "", error.hint)
        raise
    columns = {key: [row[key] for row in rows] for key in rows[0]}

    def locate(row: int, field: str, problem: str, hint: str | None) -> InputError:
        return source.error(problem, line=numbered_lines[row - 1][0], field=field, hint=hint)

    table = pl.DataFrame(columns)
    present = [column for column in columns if table[column].dtype != pl.Null]
    return table.select(present), locate, numbered_lines[0][0]
