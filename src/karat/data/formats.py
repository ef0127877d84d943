"""The formats karat reads and writes, told from content and ending."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from karat.data import native, nested, tables, trec
from karat.data.files import Source, expand, refuse_unreadable, without_compression, writing
from karat.data.gold import Gold
from karat.data.run import Run
from karat.errors import InputError

if TYPE_CHECKING:
    from karat.data.format import Format


# In the order in which content is asked what it is: the surest sign first.
FORMATS = (
    tables.PARQUET,
    native.FORMAT,
    nested.FORMAT,
    tables.CSV,
    tables.TSV,
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


def detect(source: Source) -> Format:
    """Tell the format from the content; where that says nothing, from the ending."""
    for known in FORMATS:
        if known.sniff(source.head, source.ending):
            return known
    refuse_unreadable(source.head, source)
    for known in FORMATS:
        if source.ending and source.ending in known.endings:
            return known
    return named("trec")


def for_writing(path: str | os.PathLike[str]) -> Format:
    """Return the format that the ending of a file to be written names."""
    bare = without_compression(Path(path))
    for known in FORMATS:
        if bare.suffix.lower() in known.endings:
            return known
    raise InputError(
        f"the ending {bare.suffix!r} names no format",
        path=path,
        hint=f"use one of {', '.join(e for f in FORMATS for e in f.endings if e)}, or say --format",
    )


def read_gold(path: str | os.PathLike[str], format: str | None = None) -> Gold:  # noqa: A002
    """Read gold from a file, or from all files that a glob names."""
    parts = [_format(s, format).read_gold(s) for s in expand(path)]
    if len(parts) == 1:
        return parts[0]
    offsets = {part.offsets for part in parts}
    if len(offsets) > 1:
        raise InputError(
            f"the files count offsets in {' and '.join(sorted(offsets))}",
            path=path,
            field="offsets",
            hint="use one of them in all files",
        )
    judged = set(pl.concat([part.judgments["query_id"] for part in parts]))
    return Gold(
        pl.concat([part.judgments for part in parts]),
        queries=_joined([part.queries for part in parts]).unique(
            "query_id", keep="first", maintain_order=True
        ),
        empty_judgments=sorted({q for part in parts for q in part.query_ids_judged} - judged),
        spans=_concat([part.spans for part in parts]),
        evidence=_concat([part.evidence for part in parts]),
        offsets=offsets.pop(),
        name=os.fspath(path),
        settings=parts[0].settings,
    )


def read_run(path: str | os.PathLike[str], format: str | None = None) -> Run:  # noqa: A002
    """Read a run from a file, or from all files that a glob names."""
    sources = expand(path)
    parts = [_format(s, format).read_run(s) for s in sources]
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
        name=os.fspath(path),
        settings=parts[0].settings,
    )


def write_gold(gold: Gold, path: str | os.PathLike[str], format: str | None = None) -> None:  # noqa: A002
    """Write gold in the named format, or in the one that the ending names."""
    known = for_writing(path) if format is None else named(format)
    with writing(path) as file:
        known.write_gold(gold, file)


def write_run(run: Run, path: str | os.PathLike[str], format: str | None = None) -> None:  # noqa: A002
    """Write a run in the named format, or in the one that the ending names."""
    known = for_writing(path) if format is None else named(format)
    with writing(path) as file:
        known.write_run(run, file)


def _format(source: Source, name: str | None) -> Format:
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
