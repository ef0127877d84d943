"""Files of rows: the tables that Corpus and Chunks are read from and written to."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import polars as pl

from karat.data.data_file import DataFile
from karat.data.formats import table_files
from karat.data.formats.json_lines import Id, decoded, numbered
from karat.errors import InputError
from karat.files import refuse_unreadable, without_compression, writing

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
    """A line of JSON Lines: the keys it may have, and the row of the table it stands for."""

    def row(self) -> dict[str, Any]:
        """Return the columns of the row."""
        raise NotImplementedError


def first_id(*given: Id | None) -> str | None:
    """Return the first id there is as text: a file may name it in more than one way."""
    return next((str(name) for name in given if name is not None), None)


def read(
    source: DataFile,
    format: str | None,  # noqa: A002
    line: type[RowLine],
    make: Callable[..., Table],
) -> Table:
    """Read a table, whose lines are declared by `line` where it is JSON Lines."""
    name = format or _detect_format(source)
    if name not in NAMES:
        raise unknown_format_error(name)
    found = _read_json_lines(source, line) if name == "jsonl" else table_files.READERS[name](source)
    if not found[0].height:
        raise source.error("the table has no rows", hint="check the command that wrote it")
    return table_files.made(make, found, source)


def write(table: pl.DataFrame, path: str | os.PathLike[str], format: str | None) -> None:  # noqa: A002
    """Write a table in the named format, or in the one that the ending names."""
    ending = without_compression(Path(path)).suffix.lower()
    name = format or ENDINGS.get(ending)
    if name is None:
        raise InputError(
            f"the ending {ending!r} names no format",
            path=path,
            hint=f"use one of {', '.join(ENDINGS)}, or say which format: {', '.join(NAMES)}",
        )
    if name not in NAMES:
        raise unknown_format_error(name)
    with writing(path) as file:
        if name == "jsonl":
            table.write_ndjson(file)
        else:
            table_files.WRITERS[name](table, file)


def unknown_format_error(name: str, known: tuple[str, ...] = NAMES) -> InputError:
    """Make the error for a format that is none."""
    return InputError(
        f"there is no format {name!r} here", field="format", hint=f"known: {', '.join(known)}"
    )


def _detect_format(source: DataFile) -> str:
    """Tell the format from the content, and where that says nothing, from the ending."""
    for known in (table_files.PARQUET, table_files.ARROW):
        if known.sniff(source):
            return known.name
    refuse_unreadable(source.head, source)
    if source.head.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{"):
        return "jsonl"
    if source.ending not in ENDINGS:
        raise source.error(
            "neither content nor ending tells the format",
            field="format",
            hint=f"say which it is: {', '.join(NAMES)}",
        )
    return ENDINGS[source.ending]


def _decode_mapped_line(source: DataFile, line: type[RowLine], content: bytes) -> RowLine:
    """Decode a line whose keys a mapping names."""
    record = msgspec.json.decode(content)
    return msgspec.convert(
        source.columns.keys(record) if isinstance(record, dict) else record, line
    )


def _read_json_lines(source: DataFile, line: type[RowLine]) -> table_files.Found:
    """Read JSON Lines; keys that are not declared are passed over."""
    held = numbered(source)
    decode = msgspec.json.Decoder(line).decode
    if source.columns:
        decode = partial(_decode_mapped_line, source, line)
    rows = [row.row() for _, row in decoded(held, decode, source)]
    columns = {key: [row[key] for row in rows] for key in rows[0]}

    def locate(row: int, field: str, problem: str, hint: str | None) -> InputError:
        return source.error(problem, line=held[row - 1][0], field=field, hint=hint)

    table = pl.DataFrame(columns)
    return table.select(c for c in columns if table[c].dtype != pl.Null), locate, held[0][0]
