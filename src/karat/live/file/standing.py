"""What stands in the file of a run that is to be gone on with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import msgspec

from karat.data.files import BYTE_ORDER_MARK
from karat.data.native_lines import Header, Id
from karat.data.native_run import Failure
from karat.errors import InputError

_BEGINNING = b'{"karat":1,"kind":"run"'


class _Finished(msgspec.Struct):
    """A line of the run as far as going on needs it: all else stays in the file."""

    query_id: Id
    error: Failure | None = None


@dataclass
class Standing:
    """The header, the queries that are finished, and up to where the file is whole."""

    header: Header
    size: int
    """How many bytes the whole lines take."""
    first: int
    """The number of the header's line."""
    done: dict[str, Failure | None] = field(default_factory=dict)
    """How each query ended that has a line: None where it was answered."""
    failed: dict[int, str] = field(default_factory=dict)
    """The lines of queries that failed, by number."""
    needs_end: bool = False
    """Whether the last line is whole but for the mark that ends it."""


def standing(file: BinaryIO, path: Path) -> Standing | None:
    """Read what a run holds, up to a last line that is torn; None if it has not even a header.

    Any part of a line lacks a bracket at its end, so that what is whole JSON is a whole line.
    """
    lines = enumerate(file, 1)
    found = _header(lines, path)
    if found is None:
        return None
    decode = msgspec.json.Decoder(_Finished).decode
    for number, line in lines:
        if line.strip():
            try:
                finished = decode(line)
            except msgspec.DecodeError as error:
                torn = not isinstance(error, msgspec.ValidationError) and next(lines, None) is None
                if torn:
                    break
                raise InputError(
                    f"this is no line of a run ({str(error).lower()})",
                    path=path,
                    line=number,
                    hint="delete the line, and its query is asked again",
                ) from error
            query = str(finished.query_id)
            if query in found.done:
                raise InputError(
                    f"query {query!r} stands there twice",
                    path=path,
                    line=number,
                    field="query_id",
                    hint="delete one of its two lines",
                )
            found.done[query] = finished.error
            if finished.error is not None:
                found.failed[number] = query
            found.needs_end = not line.endswith(b"\n")
        found.size += len(line)
    return found


def _header(lines: Iterator[tuple[int, bytes]], path: Path) -> Standing | None:
    """Read the header; of a file that ends within it nothing is lost."""
    size = 0
    for number, line in lines:
        size += len(line)
        bare = line.removeprefix(BYTE_ORDER_MARK).strip()
        if not bare:
            continue
        try:
            header = msgspec.json.decode(bare, type=Header)
        except msgspec.DecodeError as error:
            is_part = bare.startswith(_BEGINNING) or _BEGINNING.startswith(bare)
            if is_part and not line.endswith(b"\n"):
                return None
            raise _no_run(path, number) from error
        if header.kind != "run":
            raise _no_run(path, number)
        if header.karat != 1:
            raise InputError(
                f"version {header.karat} of the format is not known",
                path=path,
                line=number,
                field="karat",
                hint="this file needs a newer karat",
            )
        return Standing(header, size, number, needs_end=not line.endswith(b"\n"))
    return None


def _no_run(path: Path, number: int) -> InputError:
    return InputError(
        "this file does not begin as a run that karat has written, so it is left as it is",
        path=path,
        line=number,
        hint="name another file with -o, or use --overwrite to replace this one",
    )
