"""From one format into another: what was read is written, and what is lost on the way is told."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from karat.data.columns import Columns
from karat.data.data_file import DataFile
from karat.data.formats import beir, trec
from karat.data.formats.base import KINDS, Format, Kind, WriteReport
from karat.data.formats.registry import (
    detect,
    for_writing,
    gold_from,
    named,
    run_from,
    sources,
    write_gold,
    write_run,
)
from karat.data.gold import Gold
from karat.data.run import Run
from karat.errors import SWAPPED, InputError, KaratWarning
from karat.files import check_writable, check_writable_folder


@dataclass(frozen=True)
class Conversion:
    """What was converted, from which format into which, and what became of it."""

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
    """Read gold or a run and write it in another format; rankings stay as they are.

    `change` makes other gold of what was read, on the way. `columns` maps karat's names to those
    of the file that is read.
    """
    mapping = Columns.of(columns)
    for name, stream in ((source, "/dev/stdin"), (target, "/dev/stdout")):
        if os.fspath(name) == "-":
            raise InputError("- names no file here", hint=f"write {stream} and say the format")
    into = for_writing(target, target_format)
    (check_writable_folder if into.folder else check_writable)(target)
    opened = sources(source, mapping)
    _check_different_files(opened, source, target)
    formats = [detect(part) if source_format is None else named(source_format) for part in opened]
    known = _kind(kind, opened[0], formats[0])
    if known == "run" and change is not None:
        raise InputError(
            "this is a run, and these options change gold",
            path=source,
            hint="leave out --corpus, --chunks, --offsets, --queries and the shifts for a run",
        )
    try:
        if known == "gold":
            gold = gold_from(opened, formats, source)
            gold = change(gold) if change else gold
            mapping.check()
            written = write_gold(gold, target, into.name)
        else:
            beir.refuse_folder_as_run(Path(source))
            run = run_from(opened, formats, source)
            mapping.check()
            written = write_run(_with_tag(run, opened, formats), target, into.name)
    except InputError as error:
        if error.hint == SWAPPED:
            error.hint = "leave --kind out, or say the other kind"
        raise
    if known == "gold" and all(part is trec.FORMAT for part in formats):
        written = _report_lost_iterations(written, opened)
    names = ", ".join(dict.fromkeys(part.name for part in formats))
    return Conversion(known, names, into.name, written)


def _kind(said: str | None, source: DataFile, known: Format) -> Kind:
    if said is not None and said not in KINDS:
        raise InputError(
            f"{said!r} is no kind of data", field="kind", hint=f"say {' or '.join(KINDS)}"
        )
    kind = next((kind for kind in KINDS if kind == said), None) or known.kind(source)
    if kind is None and known is trec.FORMAT:
        raise trec.neither_kind(source)
    if kind is None:
        raise source.error(
            "this may be gold or a run", field="kind", hint="say --kind gold or --kind run"
        )
    return kind


def _with_tag(run: Run, opened: list[DataFile], formats: list[Format]) -> Run:
    """Keep the tag of TREC files, which scoring has no use for."""
    tags = [
        trec.last_tag(part)
        for part, known in zip(opened, formats, strict=True)
        if known is trec.FORMAT
    ]
    return replace(run, settings=run.settings | {"tag": tags[-1]}) if tags else run


def _report_lost_iterations(written: WriteReport, opened: list[DataFile]) -> WriteReport:
    """Say that the second field of qrels is not kept, where it says anything."""
    if not any(trec.has_iterations(part) for part in opened):
        return written
    warnings.warn(KaratWarning("gold cannot hold the iterations of qrels"), stacklevel=3)
    return replace(written, lost=(*written.lost, "iterations"))


def _check_different_files(
    opened: list[DataFile], source: str | os.PathLike[str], target: str | os.PathLike[str]
) -> None:
    place = Path(target).resolve()
    if place in (Path(source).resolve(), *(part.path.resolve() for part in opened)):
        raise InputError(
            "this file is read and cannot be written as well", path=target, hint="name another file"
        )
