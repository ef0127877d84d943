"""Whether a run may be gone on with: it was begun with the settings that it is to go on with."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from karat.data.native_lines import Header
from karat.errors import InputError, printable

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
