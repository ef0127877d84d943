"""What stands in the file of a run that is to be gone on with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from karat.data.formats.json_lines import Header, Id
from karat.data.formats.native_run import Failure
from karat.errors import InputError, printable
from karat.files import BYTE_ORDER_MARK

MAY_CHANGE = ("jobs", "rate", "timeout", "retries", "prices", "karat")
"""What decides no answer; if it changed, the header holds the list of what was used."""
IS_KEPT = ("started",)
"""What is told of the first start alone."""
REMEDIES = (
    "use the same settings as before, name another file with -o, or use --overwrite to run again"
)
SOURCE = "source_sha256"
"""The setting that holds the hash of a retriever's source code."""
_SHOWN = 60  # characters of a value, of which a text may have any number


def agreed(there: Header, now: Header, path: Path) -> Header:
    """Return the header that tells of both runs, or say in what they differ.

    The name stays: that of a file may be changed, and decides no answer.
    """
    now = as_written(now)
    if differing := differences(there, now):
        raise InputError(
            f"this run was begun with other settings: {'; '.join(differing)}",
            path=path,
            hint=REMEDIES,
        )
    used = {
        name: _used(there.settings.get(name), now.settings.get(name))
        for name in MAY_CHANGE
        if name in there.settings or name in now.settings
    }
    return msgspec.structs.replace(there, settings=there.settings | used)


def differences(there: Header, now: Header) -> list[str]:
    """Return the settings that decide the answers and differ, with both values."""
    apart = (*MAY_CHANGE, *IS_KEPT)
    before, after = _told(there, apart), _told(as_written(now), apart)
    names = [name for name in before | after if before.get(name) != after.get(name)]
    return [_difference(name, before, after) for name in names]


def as_written(header: Header) -> Header:
    """Return a header as it comes back from a file: a tuple is a list there."""
    return msgspec.json.decode(msgspec.json.encode(header), type=Header)


def _told(header: Header, apart: tuple[str, ...]) -> dict[str, Any]:
    """Return what decides the answers, by dotted names."""
    settings = {name: value for name, value in header.settings.items() if name not in apart}
    return {"offsets": header.offsets} | _flat(settings, "")


def _flat(settings: Mapping[str, Any], within: str) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in settings.items():
        flat |= (
            _flat(value, f"{within}{name}.")
            if isinstance(value, Mapping) and value
            else {f"{within}{name}": value}
        )
    return flat


def _difference(name: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    if name == "queries.sha256":
        return "queries (other ids or other texts)"
    if name == SOURCE:
        return "the source code of the retriever changed"
    return f"{printable(name)} {_shown(name, before)} → {_shown(name, after)}"


def _shown(name: str, told: Mapping[str, Any]) -> str:
    if told.get(name) is None:
        return "none"
    text = printable(msgspec.json.encode(told[name]).decode())
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _used(there: Any, now: Any) -> Any:
    """Return what was used, each once and in the order of its first use; alone if it is one."""
    known = there if isinstance(there, list) else [there]
    every = known if now in known else [*known, now]
    return every if len(every) > 1 else every[0]


_BEGINNING = b'{"karat":1,"kind":"run"'


class _Finished(msgspec.Struct):
    """A line of the run as far as going on needs it: all else stays in the file."""

    query_id: Id
    error: Failure | None = None
    run_id: str | None = None


@dataclass
class ResumeState:
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


def resume_state(file: BinaryIO, path: Path) -> ResumeState | None:
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


def _take(finished: _Finished, number: int, found: ResumeState, path: Path) -> None:
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


def _header(lines: Iterator[tuple[int, bytes]], path: Path) -> ResumeState | None:
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
        return ResumeState(header, size, number, needs_end=not line.endswith(b"\n"))
    return None


def _no_run(path: Path, number: int) -> InputError:
    return InputError(
        "this file does not begin as a run that karat has written, so it is left as it is",
        path=path,
        line=number,
        hint="name another file with -o, or use --overwrite to replace this one",
    )
