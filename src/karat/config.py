"""Settings in files: karat.toml, or [tool.karat] of pyproject.toml."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from karat.checks import did_you_mean
from karat.conventions import Conventions
from karat.errors import ConventionError, InputError
from karat.files import Source, decode, too_large

KARAT, PYPROJECT = "karat.toml", "pyproject.toml"
SECTIONS = ("conventions", "gate")
REPORT_TEXTS = 500
"""For how many queries an HTML report holds texts and calculations, if nothing else is set."""
_TOML_POSITION = re.compile(r" \(at (?:line (?P<line>\d+), column \d+|end of document)\)$")


@dataclass(frozen=True)
class Config:
    """What a file says; without a file, nothing.

    `conventions` are checked here. `gate` holds thresholds as they were written, since what they
    may say depends on the measure.
    """

    path: str | None = None
    conventions: Mapping[str, str] = field(default_factory=dict)
    gate: Mapping[str, Any] = field(default_factory=dict)
    section: str = ""
    """What stands before the keys of karat.toml in this file: `tool.karat.` in pyproject.toml."""

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Config:
        """Read a file; one called pyproject.toml must have [tool.karat]."""
        found = _read_config(path)
        if found is None:
            raise InputError("there is no [tool.karat] in it", path=path, hint="write it there")
        return found

    @classmethod
    def find(cls, folder: str | os.PathLike[str] = ".") -> Config:
        """Read the nearest file, in a folder or above it; karat.toml goes before pyproject.toml."""
        for path in _config_paths(folder):
            if (found := _read_config(path)) is not None:
                return found
        return cls()


def _config_paths(folder: str | os.PathLike[str]) -> Iterator[str]:
    """Yield the files that may hold settings: those of the folder by their bare name."""
    here = Path(folder).resolve()
    for place in [Path(folder), *here.parents]:
        for name in (KARAT, PYPROJECT):
            if os.path.isfile(place / name):  # unlike Path.is_file, False where nothing may be seen
                yield str(place / name)


def _read_config(path: str | os.PathLike[str]) -> Config | None:
    """Read a file, or return None for a pyproject.toml that does not speak of karat."""
    source = Source(path)
    content = source.read()
    shared = source.path.name == PYPROJECT
    # Another project's pyproject.toml may be anything: it is none of our business.
    if shared and b"karat" not in content:
        return None
    told = _parse_toml(decode(content, source), source) if content.strip() else {}
    if shared and "karat" not in _table(told, "tool", source):
        return None
    section = "tool.karat." if shared else ""
    told = _table(told["tool"], "karat", source, "tool.") if shared else told
    for name in told:
        if name not in SECTIONS:
            hint = did_you_mean(name, SECTIONS, show=lambda word: f"[{section}{word}]")
            known = " and ".join(f"[{section}{each}]" for each in SECTIONS)
            raise source.error(
                "karat has no such setting", field=section + name, hint=hint or f"there are {known}"
            )
    words = _table(told, "conventions", source, section)
    _check_conventions(words, source, section)
    return Config(str(path), words, _table(told, "gate", source, section), section)


def _table(told: dict[str, Any], name: str, source: Source, section: str = "") -> dict[str, Any]:
    """Return a table by its name, an empty one where it is not there."""
    value = told.get(name, {})
    if not isinstance(value, dict):
        raise source.error(
            f"{value!r} is no table", field=section + name, hint=f"write [{section}{name}]"
        )
    return value


def _parse_toml(text: str, source: Source) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        place = _TOML_POSITION.search(str(error))
        line = int(place["line"]) if place and place["line"] else text.count("\n") + 1
        problem = str(error)[: place.start()] if place else str(error)
        raise source.error(
            f"this is no TOML: {problem[:1].lower()}{problem[1:]}",
            line=line,
            hint='names of measures stand in quotes: "nDCG@10" = ">= 0.6"',
        ) from None
    except (ValueError, RecursionError) as error:
        raise too_large(source, text, error) from error


def _check_conventions(words: Mapping[str, Any], source: Source, section: str) -> None:
    try:
        Conventions.of(dict(words))
    except ConventionError as error:
        error.path = str(source.path)
        error.field = ".".join(filter(None, [f"{section}conventions", error.field]))
        raise
