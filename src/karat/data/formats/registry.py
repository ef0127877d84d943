"""The formats karat reads and writes, told from content and ending."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from karat.data.columns import Columns
from karat.data.data_file import DataFile
from karat.data.formats import beir, ir_datasets, native, pytrec_json, ragas, table_files, trec
from karat.data.formats.base import Format, WriteReport
from karat.data.gold import Gold
from karat.data.run import Run
from karat.errors import InputError
from karat.files import expand, refuse_unreadable, without_compression, writing, writing_folder

# In the order in which content is asked what it is: the surest sign first.
FORMATS = (
    table_files.PARQUET,
    table_files.ARROW,
    ragas.FORMAT,
    native.FORMAT,
    pytrec_json.FORMAT,
    beir.FORMAT,
    table_files.CSV,
    table_files.TSV,
    ir_datasets.FORMAT,
    trec.FORMAT,
)
NAMES = tuple(known.name for known in FORMATS)


def named(name: str) -> Format:
    """Return the format of this name."""
    for known in FORMATS:
        if known.name == name:
            return known
    raise InputError(
        f"there is no format {name!r}", field="format", hint=f"known: {', '.join(NAMES)}"
    )


def detect(source: DataFile) -> Format:
    """Tell the format from the content; where that says nothing, from the ending."""
    for known in FORMATS:
        if known.sniff(source):
            if known is trec.FORMAT:
                ir_datasets.say_if_likely(source)
            return known
    refuse_unreadable(source.head, source)
    for known in FORMATS:
        if source.ending and source.ending in known.endings:
            return known
    return trec.FORMAT


def for_writing(path: str | os.PathLike[str], name: str | None = None) -> Format:
    """Return the format of this name, or the one that the ending of the path names."""
    if name is not None:
        return named(name)
    bare = without_compression(Path(path))
    for known in FORMATS:
        if bare.suffix.lower() in known.endings:
            return known
    raise InputError(
        f"the ending {bare.suffix!r} names no format",
        path=path,
        hint=f"use one of {', '.join(e for f in FORMATS for e in f.endings if e)}, "
        f"or say which format: {', '.join(NAMES)}",
    )


def sources(path: str | os.PathLike[str], columns: Columns | None = None) -> list[DataFile]:
    """Return the files that a path, a glob or a BEIR folder names."""
    split = beir.split_of(Path(path))
    return [DataFile(name, columns) for name in (expand(path) if split is None else [split])]


def read_gold(
    path: str | os.PathLike[str],
    format: str | None = None,  # noqa: A002
    columns: Columns | None = None,
) -> Gold:
    """Read gold from a file, or from all files that a glob names."""
    opened = sources(path, columns)
    return gold_from(opened, [_format(source, format) for source in opened], path)


def gold_from(opened: list[DataFile], formats: list[Format], path: str | os.PathLike[str]) -> Gold:
    """Read gold from files, each in its format, and join it."""
    parts = [known.read_gold(source) for source, known in zip(opened, formats, strict=True)]
    if len(parts) == 1:
        return parts[0]
    judged = set(pl.concat([part.judgments["query_id"] for part in parts]))
    return Gold(
        pl.concat([part.judgments for part in parts]),
        query_data=_joined([part.queries for part in parts]).unique(
            "query_id", keep="first", maintain_order=True
        ),
        empty_judgments=sorted({q for part in parts for q in part.query_ids_judged} - judged),
        spans=_concat([part.spans for part in parts]),
        empty_spans=[query for part in parts for query in part.empty_spans],
        evidence=_concat([part.evidence for part in parts]),
        empty_evidence=[query for part in parts for query in part.empty_evidence],
        any_of=_concat([part.any_of for part in parts]),
        offsets=_offsets(parts, path),
        name=os.fspath(path),
        settings=parts[0].settings,
        recognised={ours: name for part in parts for ours, name in part.recognised.items()},
    )


def read_run(
    path: str | os.PathLike[str],
    format: str | None = None,  # noqa: A002
    columns: Columns | None = None,
) -> Run:
    """Read a run from a file, or from all files that a glob names."""
    beir.refuse_folder_as_run(Path(path))
    opened = sources(path, columns)
    return run_from(opened, [_format(source, format) for source in opened], path)


def run_from(opened: list[DataFile], formats: list[Format], path: str | os.PathLike[str]) -> Run:
    """Read a run from files, each in its format, and join it."""
    parts = [known.read_run(source) for source, known in zip(opened, formats, strict=True)]
    if len(parts) == 1:
        return parts[0]
    every = pl.concat([part.query_ids for part in parts])
    if every.is_duplicated().any():
        query = every.filter(every.is_duplicated())[0]
        raise InputError(
            f"query {query!r} stands in more than one of the files",
            path=path,
            hint="a query's list must be whole in one file; name a single run",
        )
    return Run(
        _joined([part.results for part in parts]),
        empty=[query for part in parts for query in part.empty],
        errors=_concat([part.errors for part in parts]),
        timings=_concat([part.timings for part in parts]),
        calls=_concat([part.calls for part in parts]),
        attempts=_concat([part.attempts for part in parts]),
        offsets=_offsets(parts, path),
        name=os.fspath(path),
        settings=parts[0].settings,
        recognised={ours: name for part in parts for ours, name in part.recognised.items()},
    )


def write_gold(gold: Gold, path: str | os.PathLike[str], format: str | None = None) -> WriteReport:  # noqa: A002
    """Write gold in the named format, or in the one that the ending names."""
    known = for_writing(path, format)
    with writing_folder(path) if known.folder else writing(path) as place:
        return known.write_gold(gold, place)


def write_run(run: Run, path: str | os.PathLike[str], format: str | None = None) -> WriteReport:  # noqa: A002
    """Write a run in the named format, or in the one that the ending names."""
    known = for_writing(path, format)
    with writing_folder(path) if known.folder else writing(path) as place:
        return known.write_run(run, place)


def _offsets(parts: Sequence[Gold | Run], path: str | os.PathLike[str]) -> str:
    """Return the unit in which all parts count their offsets."""
    offsets = sorted({part.offsets for part in parts})
    if len(offsets) > 1:
        raise InputError(
            f"the files count offsets in {' and '.join(offsets)}",
            path=path,
            field="offsets",
            hint="use one of them in all files",
        )
    return offsets[0]


def _format(source: DataFile, name: str | None) -> Format:
    return detect(source) if name is None else named(name)


def _concat(tables: list[pl.DataFrame | None]) -> pl.DataFrame | None:
    held = [table for table in tables if table is not None]
    return _joined(held) if held else None


def _joined(tables: list[pl.DataFrame]) -> pl.DataFrame:
    try:
        return pl.concat(tables, how="diagonal_relaxed")
    except pl.exceptions.PolarsError as error:
        kinds: dict[str, set[str]] = {}
        for table in tables:
            for name, kind in table.schema.items():
                kinds.setdefault(name, set()).add(str(kind))
        unlike = next((name for name, held in kinds.items() if len(held) > 1), None)
        raise InputError(
            "the files do not agree on its type",
            field=unlike,
            hint="give the same field the same type in all of them",
        ) from error
