"""What stands in the file of a run that is to be gone on with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import msgspec

from karat.data.native_lines import Header, Id
from karat.data.native_run import Failure
from karat.errors import InputError
from karat.files import BYTE_ORDER_MARK

_BEGINNING = b'{"karat":1,"kind":"run"'


class _Finished(msgspec.Struct):
    """A line of the run as far as going on needs it: all else stays in the file."""

    query_id: Id
    error: Failure | None = None
    run_id: str | None = None


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
    damaged: list[int] = field(default_factory=list)
    """The numbers of lines that have an end and are not complete JSON."""
    needs_end: bool = False
    """Whether the last line is whole but for the mark that ends it."""

    @property
    def is_empty(self) -> bool:
        """Whether there is no answer, and nothing that was one."""
        return len(self.failed) == len(self.done) and not self.damaged


def standing(file: BinaryIO, path: Path) -> Standing | None:
    """Read the state of a run, up to an incomplete last line; None if it has no header yet.

    Any part of a line lacks a bracket at its end, so that complete JSON is a complete line, and
    a part of a line with a complete one after it is not JSON.
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
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                if _is_json(line):
                    raise _not_of_this_run(
                        f"this is not a line of a run ({str(error).lower()})", path, number
                    ) from error
                if not line.endswith(b"\n"):  # the last one, which karat was writing
                    break
                found.damaged.append(number)
                found.needs_end = False
            else:
                _take(finished, number, found, path)
                found.needs_end = not line.endswith(b"\n")
        found.size += len(line)
    return found


def _is_json(line: bytes) -> bool:
    """Whether a line is complete JSON; a wrong type may be found before a missing bracket."""
    try:
        msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True


def _take(finished: _Finished, number: int, found: Standing, path: Path) -> None:
    """Note how the query of a line ended; refuse a line that something else has written."""
    if finished.run_id != found.header.run_id and found.header.run_id is not None:
        raise _not_of_this_run(
            "this run did not write the line: another process has appended it", path, number
        )
    query = str(finished.query_id)
    if query in found.done:
        raise InputError(
            f"query {query!r} has two lines",
            path=path,
            line=number,
            field="query_id",
            hint="delete one of its two lines",
        )
    found.done[query] = finished.error
    if finished.error is not None:
        found.failed[number] = query


def _not_of_this_run(problem: str, path: Path, number: int) -> InputError:
    return InputError(
        problem,
        path=path,
        line=number,
        hint="delete the line; if its query has no other one, the same command runs it again",
    )


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
