"""Gold read past what is wrong: `karat validate` counts it, every other reader stops at once."""

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
from karat.data.formats.json_lines import decoded, opened, with_query_id
from karat.data.formats.native_gold import gold_of_records, known_record, read_gold
from karat.data.formats.registry import detect, gold_from, named, sources
from karat.data.gold import Gold
from karat.errors import InputError


@dataclass(frozen=True)
class ReadingProblem:
    """Something that other readers refuse: its kind, their error, and where it stands in gold."""

    kind: str
    error: InputError
    place: dict[str, Any]


@dataclass(frozen=True)
class TolerantReading:
    """Gold as far as it can be used, and what was passed over."""

    gold: Gold
    notes: Sequence[ReadingProblem] = ()
    files: Sequence[DataFile] = field(default=(), repr=False)

    @cached_property
    def lines(self) -> dict[str, tuple[str, int]]:
        """The file and the line on which each query first stands, where gold is in native files."""
        lines: dict[str, tuple[str, int]] = {}
        decode = msgspec.json.Decoder().decode
        for file in self.files:
            for number, given in decoded(opened(file, "gold")[1], decode, file):
                record = known_record(file.columns.record(given), number, file.error, {})
                with_query_id(record)
                lines.setdefault(str(record["query_id"]), (str(file.path), number))
        return lines


def read(source: Any) -> TolerantReading:
    """Take gold however it is given; only native files and records can be read past a fault."""
    notes: list[ReadingProblem] = []

    def refuse(kind: str, error: InputError, /, **place: Any) -> None:
        notes.append(ReadingProblem(kind, error, place))

    if isinstance(source, (str, os.PathLike)):
        source = PathSource(source)
    if isinstance(source, PathSource):
        files = sources(source.path, source.columns)
        formats = [detect(f) if source.format is None else named(source.format) for f in files]
        lenient = replace(native.FORMAT, read_gold=partial(read_gold, refuse=refuse))
        read_as = [lenient if known is native.FORMAT else known for known in formats]
        gold = gold_from(files, read_as, source.path)
        if source.queries is not None:
            gold = gold.with_query_texts(source.queries, columns=source.columns)
        native_files = [
            f for f, known in zip(files, formats, strict=True) if known is native.FORMAT
        ]
        return TolerantReading(gold, notes, native_files)
    if (
        isinstance(source, Sequence)
        and not isinstance(source, (str, bytes))
        and not frames.are_ragas_rows(source)
    ):
        return TolerantReading(gold_of_records(source, refuse=refuse), notes)
    return TolerantReading(Gold.of(source))
