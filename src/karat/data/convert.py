"""Conversion of gold and runs from one file format into another."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from karat.data.columns import Columns
from karat.data.data_file import DataFile
from karat.data.formats import beir, trec
from karat.data.formats.base import KINDS, Format, Kind, WriteReport
from karat.data.formats.registry import (
    detect,
    format_for_writing,
    format_named,
    gold_from,
    run_from,
    sources,
    write_gold,
    write_run,
)
from karat.data.gold import Gold
from karat.data.run import Run
from karat.errors import SWAPPED, InputError, warn
from karat.files import check_writable, check_writable_folder


@dataclass(frozen=True)
class Conversion:
    """The kind of data, both formats, and a report of what was written and what was lost."""

    kind: Kind
    source_format: str
    target_format: str
    written: WriteReport


def convert(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    kind: str | None = None,
    source_format: str | None = None,
    target_format: str | None = None,
    change: Callable[[Gold], Gold] | None = None,
    columns: Columns | Mapping[str, str] | None = None,
) -> Conversion:
    """Read gold or a run and write it in another format; rankings do not change.

    `change` is applied to gold before it is written. `columns` maps karat's names to the names in
    the source file.
    """
    mapping = Columns.of(columns)
    for path, stream in ((source, "/dev/stdin"), (target, "/dev/stdout")):
        if os.fspath(path) == "-":
            raise InputError(
                "'-' is not supported as a file name here",
                hint=f"use {stream} and specify the format",
            )
    output_format = format_for_writing(target, target_format)
    if output_format.folder:
        check_writable_folder(target)
    else:
        check_writable(target)
    files = sources(source, mapping)
    _check_different_files(files, source, target)
    formats = [
        detect(file) if source_format is None else format_named(source_format) for file in files
    ]
    data_kind = _data_kind(kind, files[0], formats[0])
    if data_kind == "run" and change is not None:
        raise InputError(
            "this is a run, but the options apply only to gold",
            path=source,
            hint="remove --corpus, --chunks, --offsets, --queries and the shift options",
        )
    try:
        if data_kind == "gold":
            gold = gold_from(files, formats, source)
            gold = change(gold) if change else gold
            mapping.check()
            report = write_gold(gold, target, output_format.name)
        else:
            beir.refuse_folder_as_run(Path(source))
            run = run_from(files, formats, source)
            mapping.check()
            report = write_run(_with_tag(run, files, formats), target, output_format.name)
    except InputError as error:
        if error.hint == SWAPPED:
            error.hint = "remove --kind, or specify the other kind"
        raise
    if data_kind == "gold" and all(file_format is trec.FORMAT for file_format in formats):
        report = _report_lost_iterations(report, files)
    names = ", ".join(dict.fromkeys(file_format.name for file_format in formats))
    return Conversion(data_kind, names, output_format.name, report)


def check_run_targets(
    targets: Iterable[str | os.PathLike[str]],
    target_format: str | None,
    inputs: Iterable[str | os.PathLike[str]],
) -> None:
    """Raise an error if a run cannot be written to one of the files, before any long work."""
    input_paths = {Path(file.path).resolve() for path in inputs for file in sources(path)}
    for target in targets:
        if format_for_writing(target, target_format).folder:
            check_writable_folder(target)
        else:
            check_writable(target)
        if Path(target).resolve() in input_paths:
            raise InputError(
                "the file is one of the runs to read", path=target, hint="choose another file"
            )


def _data_kind(kind: str | None, file: DataFile, file_format: Format) -> Kind:
    """Return the specified kind of data, or else the detected kind."""
    if kind is not None and kind not in KINDS:
        raise InputError(
            f"unknown kind {kind!r}", field="kind", hint=f"use {' or '.join(map(repr, KINDS))}"
        )
    data_kind = next((known for known in KINDS if known == kind), None) or file_format.kind(file)
    if data_kind is None and file_format is trec.FORMAT:
        raise trec.neither_kind(file)
    if data_kind is None:
        raise file.error(
            "cannot tell whether the file is gold or a run",
            field="kind",
            hint="add --kind gold or --kind run",
        )
    return data_kind


def _with_tag(run: Run, files: list[DataFile], formats: list[Format]) -> Run:
    """Add the run tag of TREC files to the settings; reading a run for scoring skips the tag."""
    tags = [
        trec.last_tag(file)
        for file, file_format in zip(files, formats, strict=True)
        if file_format is trec.FORMAT
    ]
    return replace(run, settings=run.settings | {"tag": tags[-1]}) if tags else run


def _report_lost_iterations(report: WriteReport, files: list[DataFile]) -> WriteReport:
    """Warn if the second field of qrels, which gold cannot store, was used."""
    if not any(trec.has_iterations(file) for file in files):
        return report
    warn(
        "the iterations (second field) of the qrels are lost: gold cannot store them", stacklevel=3
    )
    return replace(report, lost=(*report.lost, "iterations"))


def _check_different_files(
    files: list[DataFile], source: str | os.PathLike[str], target: str | os.PathLike[str]
) -> None:
    target_path = Path(target).resolve()
    if target_path in (Path(source).resolve(), *(file.path.resolve() for file in files)):
        raise InputError(
            "the source and the target are the same file", path=target, hint="choose another target"
        )
