"""From one format into another: what was read is written, and what is lost on the way is told."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from karat.data.files import Source, check_writable
from karat.data.folders import check_writable_folder
from karat.data.format import KINDS, Format, Kind
from karat.data.formats import (
    detect,
    for_writing,
    gold_from,
    named,
    run_from,
    sources,
    write_gold,
    write_run,
)
from karat.data.losses import Written
from karat.errors import InputError


@dataclass(frozen=True)
class Conversion:
    """What was converted, from which format into which, and what became of it."""

    kind: Kind
    source_format: str
    target_format: str
    written: Written


def convert(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    kind: str | None = None,
    source_format: str | None = None,
    target_format: str | None = None,
) -> Conversion:
    """Read gold or a run and write it in another format; rankings stay as they are."""
    into = for_writing(target, target_format)
    (check_writable_folder if into.folder else check_writable)(target)
    opened = sources(source)
    _refuse_itself(opened, source, target)
    formats = [detect(part) if source_format is None else named(source_format) for part in opened]
    known = _kind(kind, opened[0], formats[0])
    if known == "gold":
        written = write_gold(gold_from(opened, formats, source), target, into.name)
    else:
        written = write_run(run_from(opened, formats, source), target, into.name)
    names = ", ".join(dict.fromkeys(part.name for part in formats))
    return Conversion(known, names, into.name, written)


def _kind(said: str | None, source: Source, known: Format) -> Kind:
    if said is not None and said not in KINDS:
        raise InputError(
            f"{said!r} is no kind of data", field="kind", hint=f"say {' or '.join(KINDS)}"
        )
    kind = next((kind for kind in KINDS if kind == said), None) or known.kind(source)
    if kind is None:
        raise source.error(
            "this may be gold or a run", field="kind", hint="say --kind gold or --kind run"
        )
    return kind


def _refuse_itself(
    opened: list[Source], source: str | os.PathLike[str], target: str | os.PathLike[str]
) -> None:
    place = Path(target).resolve()
    if place in (Path(source).resolve(), *(part.path.resolve() for part in opened)):
        raise InputError(
            "this file is read and cannot be written as well", path=target, hint="name another file"
        )
