"""The list of formats: detect the format of a file, and read or write gold and runs in it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import polars as pl

from karat.data.columns import Columns
from karat.data.data_file import DataFile
from karat.data.formats import beir, ir_datasets, native, pytrec_json, ragas, table_files, trec
from karat.data.formats.base import CONVERT, Format, NotInPiecesError, RunPiece, WriteReport
from karat.data.gold import Gold
from karat.data.run import Run
from karat.errors import InputError, warn, without_warnings
from karat.files import (
    expand,
    path_is,
    refuse_unreadable,
    without_compression,
    writing,
    writing_folder,
)

# In the order of detection: formats with the most reliable signs first.
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
NAMES = tuple(fmt.name for fmt in FORMATS)


def format_named(name: str) -> Format:
    """Return the format with this name."""
    for fmt in FORMATS:
        if fmt.name == name:
            return fmt
    raise InputError(
        f"unknown format {name!r}", field="format", hint=f"use one of {', '.join(NAMES)}"
    )


def detect(source: DataFile) -> Format:
    """Detect the format from the content or, if that is not conclusive, from the extension."""
    for fmt in FORMATS:
        if fmt.sniff(source):
            if fmt is trec.FORMAT:
                ir_datasets.warn_if_likely_export(source)
            return fmt
    refuse_unreadable(source.head, source)
    for fmt in FORMATS:
        if source.ending and source.ending in fmt.endings:
            return fmt
    return trec.FORMAT


def format_for_writing(path: str | os.PathLike[str], name: str | None = None) -> Format:
    """Return the format with this name, or by default the format for the file extension."""
    if name is not None:
        return format_named(name)
    ending = without_compression(Path(path)).suffix
    for fmt in FORMATS:
        if ending.lower() in fmt.endings:
            return fmt
    endings = [suffix for fmt in FORMATS for suffix in fmt.endings if suffix]
    raise InputError(
        f"unknown file extension {ending!r}",
        path=path,
        hint=f"use one of {', '.join(endings)}, or specify the format: {', '.join(NAMES)}",
    )


def sources(path: str | os.PathLike[str], columns: Columns | None = None) -> list[DataFile]:
    """Return the files that a path, a glob pattern or a BEIR folder refers to."""
    split = beir.find_split(Path(path))
    paths = expand(path) if split is None else [split]
    return [DataFile(file, columns) for file in paths]


def gold_pieces(file: DataFile, name: str | None) -> Iterator[Gold]:
    """Yield the gold of a file in pieces; the last one has the fields of all queries.

    A `NotInPiecesError` is raised if the file has to be read as a whole.
    """
    fmt = _format_of(file, name)
    if fmt.read_gold_pieces is None:
        raise NotInPiecesError
    yield from fmt.read_gold_pieces(file)


def run_files(
    path: str | os.PathLike[str],
    format: str | None = None,  # noqa: A002
    columns: Columns | None = None,
) -> list[DataFile]:
    """Return the files that a run consists of; all files of a folder are parts of one run."""
    folder = Path(path)
    beir.refuse_folder_as_run(folder)
    if not path_is(Path.is_dir, folder):
        return sources(path, columns)
    paths = sorted(entry for entry in folder.iterdir() if not entry.name.startswith((".", "_")))
    files = [DataFile(entry, columns) for entry in paths if not entry.is_dir()]
    if len(files) < len(paths):
        subfolder = next(entry for entry in paths if entry.is_dir())
        raise InputError(
            f"the folder contains another folder, {subfolder.name}",
            path=path,
            hint="a folder of parts of a run contains only files; give one file, or a pattern such "
            f"as '{folder / '**' / '*'}'",
        )
    if not files:
        raise InputError(
            "the folder contains no files", path=path, hint="give a file, or a folder of parts"
        )
    _refuse_mixed_folder(files, format, path)
    return files


def _refuse_mixed_folder(
    files: list[DataFile], name: str | None, path: str | os.PathLike[str]
) -> None:
    """Raise an error unless all files of a folder may be parts of one run."""
    by_format: dict[str, DataFile] = {}
    for file in files:
        by_format.setdefault(_format_of(file, name).name, file)
    if len(by_format) > 1:
        examples = [f"{file.path.name} ({fmt})" for fmt, file in by_format.items()]
        raise InputError(
            f"the folder contains files of different formats: {', '.join(examples)}",
            path=path,
            hint="give one file, or a pattern for the parts of one run, such as "
            f"'{Path(path) / ('*' + files[0].path.suffix)}'",
        )


def name_of_parts(files: list[DataFile], path: str | os.PathLike[str]) -> str | None:
    """Return the name of a run in several files or in a folder; None for a run in one file."""
    if path_is(Path.is_dir, Path(path)):
        return Path(path).resolve().name
    return os.fspath(path) if len(files) > 1 else None


def read_gold(
    path: str | os.PathLike[str],
    format: str | None = None,  # noqa: A002
    columns: Columns | None = None,
) -> Gold:
    """Read gold from a file, or from all files that match a glob pattern."""
    files = sources(path, columns)
    return gold_from(files, [_format_of(file, format) for file in files], path)


def gold_from(files: list[DataFile], formats: list[Format], path: str | os.PathLike[str]) -> Gold:
    """Read gold from files, each in its format, and combine it."""
    return combined_gold(
        [fmt.read_gold(file) for file, fmt in zip(files, formats, strict=True)], path
    )


def combined_gold(parts: list[Gold], path: str | os.PathLike[str]) -> Gold:
    """Combine the gold of several files."""
    if len(parts) == 1:
        return parts[0]
    judged = set(pl.concat([part.judgments["query_id"] for part in parts]))
    return Gold(
        pl.concat([part.judgments for part in parts]),
        # The first file with a query has its fields.
        query_data=_combine([part.queries for part in parts]).unique(
            "query_id", keep="first", maintain_order=True
        ),
        empty_judgments=sorted({q for part in parts for q in part.query_ids_judged} - judged),
        spans=_combine_existing([part.spans for part in parts]),
        empty_spans=[query for part in parts for query in part.empty_spans],
        evidence=_combine_existing([part.evidence for part in parts]),
        empty_evidence=[query for part in parts for query in part.empty_evidence],
        any_of=_combine_existing([part.any_of for part in parts]),
        offsets=unit_of_offsets(parts, path),
        name=os.fspath(path),
        settings=parts[0].settings,
        recognised={ours: name for part in parts for ours, name in part.recognised.items()},
    )


def read_run(
    path: str | os.PathLike[str],
    format: str | None = None,  # noqa: A002
    columns: Columns | None = None,
) -> Run:
    """Read a run from a file, or from all files in a folder or that match a pattern."""
    files = run_files(path, format, columns)
    return run_from(files, [_format_of(file, format) for file in files], path)


def has_run_pieces(file: DataFile, name: str | None) -> bool:
    """Return whether a run in this file can be read in pieces."""
    fmt = _format_of(file, name)
    if fmt.read_run_pieces is None:
        return False
    if fmt.name not in table_files.READERS:
        return True
    try:
        with without_warnings():  # reading the run shows them
            next(fmt.read_run_pieces(file), None)
    except NotInPiecesError:
        return False
    return True


def run_pieces(file: DataFile, name: str | None) -> Iterator[RunPiece]:
    """Yield the pieces of a file with a run; a file that has to be read as a whole is one piece."""
    fmt = _format_of(file, name)
    if fmt.read_run_pieces is not None:
        with suppress(NotInPiecesError):
            yield from fmt.read_run_pieces(file)
            return
    warn(
        f"{file.path}: this file cannot be read in batches, so the whole run is read into "
        f"memory, which may exceed the memory limit; {CONVERT}",
        stacklevel=2,
    )
    yield RunPiece(fmt.read_run(file), None)


def run_from(files: list[DataFile], formats: list[Format], path: str | os.PathLike[str]) -> Run:
    """Read a run from files, each in its format, and combine it."""
    run = combined_runs(
        [fmt.read_run(file) for file, fmt in zip(files, formats, strict=True)], path
    )
    name = name_of_parts(files, path)
    return run if name is None else run.renamed(name)


def combined_runs(parts: list[Run], path: str | os.PathLike[str]) -> Run:
    """Combine runs of different queries to one run."""
    if len(parts) == 1:
        return parts[0]
    query_ids = pl.concat([part.query_ids for part in parts])
    if query_ids.is_duplicated().any():
        query = query_ids.filter(query_ids.is_duplicated())[0]
        raise InputError(
            f"query {query!r} is in more than one of the files",
            path=path,
            hint="give the files of a single run; all results of a query must be in one file",
        )
    return Run(
        _combine([part.results for part in parts]),
        empty=[query for part in parts for query in part.empty],
        errors=_combine_existing([part.errors for part in parts]),
        timings=_combine_existing([part.timings for part in parts]),
        calls=_combine_existing([part.calls for part in parts]),
        attempts=_combine_existing([part.attempts for part in parts]),
        responses=_combine_existing([part.responses for part in parts]),
        candidates=_combine_candidates(parts),
        offsets=unit_of_offsets(parts, path),
        name=os.fspath(path),
        settings=parts[0].settings,
        recognised={ours: name for part in parts for ours, name in part.recognised.items()},
    )


def _combine_candidates(parts: list[Run]) -> Run | None:
    existing = [part.candidates for part in parts if part.candidates is not None]
    if not existing:
        return None
    return Run(
        _combine([candidates.results for candidates in existing]),
        empty=[query for candidates in existing for query in candidates.empty],
        offsets=existing[0].offsets,
    )


def write_gold(gold: Gold, path: str | os.PathLike[str], format: str | None = None) -> WriteReport:  # noqa: A002
    """Write gold in the given format, or in the format for the file extension."""
    fmt = format_for_writing(path, format)
    with writing_folder(path) if fmt.folder else writing(path) as target:
        return fmt.write_gold(gold, target)


def write_run(run: Run, path: str | os.PathLike[str], format: str | None = None) -> WriteReport:  # noqa: A002
    """Write a run in the given format, or in the format for the file extension."""
    fmt = format_for_writing(path, format)
    with writing_folder(path) if fmt.folder else writing(path) as target:
        return fmt.write_run(run, target)


def unit_of_offsets(parts: Sequence[Gold | Run], path: str | os.PathLike[str]) -> str:
    """Return the unit of the offsets, which must be the same in all parts."""
    units = sorted({part.offsets for part in parts})
    if len(units) > 1:
        raise InputError(
            f"the files use different units of offsets: {' and '.join(units)}",
            path=path,
            field="offsets",
            hint="use the same unit in all files",
        )
    return units[0]


def _format_of(file: DataFile, name: str | None) -> Format:
    return detect(file) if name is None else format_named(name)


def _combine_existing(tables: list[pl.DataFrame | None]) -> pl.DataFrame | None:
    existing = [table for table in tables if table is not None]
    return _combine(existing) if existing else None


def _combine(tables: list[pl.DataFrame]) -> pl.DataFrame:
    try:
        return pl.concat(tables, how="diagonal_relaxed")
    except pl.exceptions.PolarsError as error:
        types: dict[str, set[str]] = {}
        for table in tables:
            for name, dtype in table.schema.items():
                types.setdefault(name, set()).add(str(dtype))
        conflicting = next((name for name in types if len(types[name]) > 1), None)
        raise InputError(
            "the field has different types in the files",
            field=conflicting,
            hint="use the same type in all files",
        ) from error
