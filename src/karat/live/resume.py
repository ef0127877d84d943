"""Read the file of an unfinished run, and decide whether the run can be continued.

What is in this file:

- `resume_state` reads the file: which queries are finished, which lines are damaged, and where the
  complete lines end.
- `merge_headers` and `changed_settings` compare the settings of the file with those of this run.
  Settings that influence the answers must be the same; others, such as `jobs`, may change.
"""

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
"""Settings that do not influence the answers; if one changes, the header lists all its values."""
FIRST_START_ONLY = ("started",)
"""Settings that keep the value of the first start."""
SOURCE = "source_sha256"
"""The setting for the hash of a retriever's source code."""
_HEADER_START = b'{"karat":1,"kind":"run"'
_MAX_VALUE_LENGTH = 60  # characters of a value in a message


class _FinishedQuery(msgspec.Struct):
    """The fields of a line that are needed to continue a run."""

    query_id: Id
    error: Failure | None = None
    run_id: str | None = None


@dataclass
class ResumeState:
    """The content of an unfinished run, as far as it is needed to continue it."""

    header: Header
    size: int
    """Number of bytes of the complete lines."""
    header_line: int
    """Line number of the header."""
    done: dict[str, Failure | None] = field(default_factory=dict)
    """The failure of each query that has a line; None if it has an answer."""
    failed: dict[int, str] = field(default_factory=dict)
    """Failed queries by line number."""
    damaged: list[int] = field(default_factory=list)
    """Line numbers of lines that end with a line break but are not complete JSON."""
    lacks_newline: bool = False
    """Whether the last line is complete except for its line break."""

    @property
    def is_empty(self) -> bool:
        """Whether the file has neither an answer nor a damaged line that may have been one."""
        return len(self.failed) == len(self.done) and not self.damaged


def resume_state(file: BinaryIO, path: Path) -> ResumeState | None:
    """Read the state of a run, without an incomplete last line; None if it has no header yet.

    A part of a line always lacks its closing bracket. So a line that is complete JSON is complete,
    and a part of a line followed by another line is not JSON.
    """
    lines = enumerate(file, 1)
    state = _read_header(lines, path)
    if state is None:
        return None
    decode = msgspec.json.Decoder(_FinishedQuery).decode
    for number, line in lines:
        if line.strip():
            try:
                finished = decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                if _is_json(line):
                    raise _foreign_line(
                        f"this is not a line of a run ({str(error).lower()})", path, number
                    ) from error
                if not line.endswith(b"\n"):  # the last line, which karat was writing
                    break
                state.damaged.append(number)
                state.lacks_newline = False
            else:
                _add_line(finished, number, state, path)
                state.lacks_newline = not line.endswith(b"\n")
        state.size += len(line)
    return state


def merge_headers(stored: Header, current: Header, path: Path) -> Header:
    """Return the header for both runs; raise an error if settings differ that must be equal.

    The name of the stored run is kept: a file may be renamed.
    """
    current = _as_decoded(current)
    if changes := changed_settings(stored, current):
        raise InputError(
            f"this run was started with other settings: {'; '.join(changes)}",
            path=path,
            hint="use the same settings as before, choose another file with -o, or use "
            "--overwrite to run all queries again",
        )
    merged = {
        name: _merge_values(stored.settings.get(name), current.settings.get(name))
        for name in MAY_CHANGE
        if name in stored.settings or name in current.settings
    }
    return msgspec.structs.replace(stored, settings=stored.settings | merged)


def changed_settings(stored: Header, current: Header) -> list[str]:
    """Return the settings that influence the answers and differ, with both values."""
    before, after = _answer_settings(stored), _answer_settings(_as_decoded(current))
    names = [name for name in before | after if before.get(name) != after.get(name)]
    return [_format_change(name, before, after) for name in names]


def _as_decoded(header: Header) -> Header:
    """Return a header as it is read from a file, where a tuple becomes a list."""
    return msgspec.json.decode(msgspec.json.encode(header), type=Header)


def _answer_settings(header: Header) -> dict[str, Any]:
    """Return the settings that affect the answers; nested settings get dotted names."""
    ignored = (*MAY_CHANGE, *FIRST_START_ONLY)
    settings = {name: value for name, value in header.settings.items() if name not in ignored}
    return {"offsets": header.offsets} | _flatten(settings, "")


def _flatten(settings: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in settings.items():
        if isinstance(value, Mapping) and value:
            flat |= _flatten(value, f"{prefix}{name}.")
        else:
            flat[f"{prefix}{name}"] = value
    return flat


def _format_change(name: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    if name == "queries.sha256":
        return "the ids or texts of the queries changed"
    if name == SOURCE:
        return "the source code of the retriever changed"
    return f"{printable(name)} {_format_value(before.get(name))} → {_format_value(after.get(name))}"


def _format_value(value: Any) -> str:
    if value is None:
        return "none"
    text = printable(msgspec.json.encode(value).decode())
    return text if len(text) <= _MAX_VALUE_LENGTH else f"{text[:_MAX_VALUE_LENGTH]}…"


def _merge_values(stored: Any, current: Any) -> Any:
    """Return all values of a setting in the order of their first use, or the only one."""
    values = stored if isinstance(stored, list) else [stored]
    if current not in values:
        values = [*values, current]
    return values if len(values) > 1 else values[0]


def _is_json(line: bytes) -> bool:
    """Return whether a line is complete JSON.

    The error of the typed decoder does not show this: it may report a wrong type and never reach
    the missing bracket.
    """
    try:
        msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True


def _add_line(finished: _FinishedQuery, number: int, state: ResumeState, path: Path) -> None:
    """Add the query of a line to the state; raise an error if another process wrote the line."""
    if finished.run_id != state.header.run_id and state.header.run_id is not None:
        raise _foreign_line(
            "the line does not belong to this run: another process appended it", path, number
        )
    query_id = str(finished.query_id)
    if query_id in state.done:
        raise InputError(
            f"query {query_id!r} has two lines",
            path=path,
            line=number,
            field="query_id",
            hint="delete one of its two lines",
        )
    state.done[query_id] = finished.error
    if finished.error is not None:
        state.failed[number] = query_id


def _foreign_line(problem: str, path: Path, number: int) -> InputError:
    return InputError(
        problem,
        path=path,
        line=number,
        hint="delete the line, and repeat the `karat run` command; it runs the queries that have "
        "no line",
    )


def _read_header(lines: Iterator[tuple[int, bytes]], path: Path) -> ResumeState | None:
    """Read the header; return None if the file ends before the header is complete."""
    size = 0
    for number, line in lines:
        size += len(line)
        content = line.removeprefix(BYTE_ORDER_MARK).strip()
        if not content:
            continue
        try:
            header = msgspec.json.decode(content, type=Header)
        except msgspec.DecodeError as error:
            is_part = content.startswith(_HEADER_START) or _HEADER_START.startswith(content)
            if is_part and not line.endswith(b"\n"):
                return None
            raise _not_a_run(path, number) from error
        if header.kind != "run":
            raise _not_a_run(path, number)
        if header.karat != 1:
            raise InputError(
                f"version {header.karat} of the file format is not supported",
                path=path,
                line=number,
                field="karat",
                hint="upgrade karat to a version that supports it",
            )
        return ResumeState(header, size, number, lacks_newline=not line.endswith(b"\n"))
    return None


def _not_a_run(path: Path, number: int) -> InputError:
    return InputError(
        "the file is not a run that karat has written; it was not changed",
        path=path,
        line=number,
        hint="choose another file with -o, or use --overwrite to replace this one",
    )
