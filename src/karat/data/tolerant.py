"""Tolerant reading of gold for `karat validate`: errors are collected instead of raised."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import msgspec

from karat.data import frames
from karat.data.data_file import DataFile, PathSource
from karat.data.formats import native
from karat.data.formats.json_lines import decoded, read_header, with_query_id
from karat.data.formats.native_gold import gold_of_records, normalize_record, read_gold
from karat.data.formats.registry import detect, format_named, gold_from, sources
from karat.data.gold import Gold
from karat.errors import InputError


@dataclass(frozen=True)
class ReadingProblem:
    """A part of gold that other readers reject: its kind, their error, and its location."""

    kind: str
    error: InputError
    place: dict[str, Any]


@dataclass(frozen=True)
class TolerantReading:
    """The usable part of gold, and the problems of the rest."""

    gold: Gold
    notes: Sequence[ReadingProblem] = ()
    files: Sequence[DataFile] = field(default=(), repr=False)

    @cached_property
    def lines(self) -> dict[str, tuple[str, int]]:
        """The file and the line where each query first occurs, for native files."""
        lines: dict[str, tuple[str, int]] = {}
        decode = msgspec.json.Decoder().decode
        for file in self.files:
            for number, line in decoded(read_header(file, "gold")[1], decode, file):
                record = normalize_record(file.columns.record(line), number, file.error, {})
                with_query_id(record)
                lines.setdefault(str(record["query_id"]), (str(file.path), number))
        return lines


def read(source: Any) -> TolerantReading:
    """Read gold from any source. Errors are collected for native files and native records."""
    problems: list[ReadingProblem] = []

    def refuse(kind: str, error: InputError, /, **place: Any) -> None:
        problems.append(ReadingProblem(kind, error, place))

    if isinstance(source, (str, os.PathLike)):
        source = PathSource(source)
    if isinstance(source, PathSource):
        files = sources(source.path, source.columns)
        formats = [
            detect(file) if source.format is None else format_named(source.format) for file in files
        ]
        tolerant_native = replace(native.FORMAT, read_gold=partial(read_gold, refuse=refuse))
        tolerant_formats = [
            tolerant_native if file_format is native.FORMAT else file_format
            for file_format in formats
        ]
        gold = gold_from(files, tolerant_formats, source.path)
        if source.queries is not None:
            gold = gold.with_query_texts(source.queries, columns=source.columns)
        native_files = [
            file
            for file, file_format in zip(files, formats, strict=True)
            if file_format is native.FORMAT
        ]
        return TolerantReading(gold, problems, native_files)
    if (
        isinstance(source, Sequence)
        and not isinstance(source, (str, bytes))
        and not frames.are_ragas_rows(source)
    ):
        return TolerantReading(gold_of_records(source, refuse=refuse), problems)
    return TolerantReading(Gold.of(source))
