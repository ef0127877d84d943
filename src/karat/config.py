"""Configuration files: karat.toml, or the table [tool.karat] of pyproject.toml."""

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
from karat.files import Source, decode, is_address, too_large

KARAT, PYPROJECT = "karat.toml", "pyproject.toml"
SECTIONS = ("columns", "retriever", "conventions", "gate")
"""The tables of a file. All other settings are values, such as gold = "gold.jsonl"."""
REPORT_TEXTS = 500
"""The default number of queries whose texts and calculations are in an HTML report."""
_TOML_POSITION = re.compile(r" \(at (?:line (?P<line>\d+), column \d+|end of document)\)$")


@dataclass(frozen=True)
class Config:
    """The settings of a configuration file, or no settings if there is no file.

    `conventions` are checked. `gate` contains thresholds as written in the file, because valid
    thresholds depend on the measure.
    """

    path: str | None = None
    conventions: Mapping[str, str] = field(default_factory=dict)
    gate: Mapping[str, Any] = field(default_factory=dict)
    section: str = ""
    """The prefix of the tables in this file: `tool.karat.` in pyproject.toml."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """All other settings as written in the file: defaults of the command line, which checks them.

    `retriever` and `columns` are tables.
    """

    def located(self, path: str) -> str:
        """Return a path that is relative to the file, relative to the current folder.

        Addresses such as "s3://bucket/run" and names of tables are returned unchanged.

        >>> Config("project/karat.toml").located("gold.jsonl")
        'project/gold.jsonl'
        """
        return path if is_address(path) else os.path.join(os.path.dirname(self.path or ""), path)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Config:
        """Read a file; one called pyproject.toml must have [tool.karat]."""
        config = _read_config(path)
        if config is None:
            raise InputError(
                "[tool.karat] not found", path=path, hint="add the table [tool.karat] to the file"
            )
        return config

    @classmethod
    def find(cls, folder: str | os.PathLike[str] = ".") -> Config:
        """Read the nearest file in a folder or one of its parents.

        In the same folder, karat.toml takes precedence over pyproject.toml.
        """
        for path in _config_paths(folder):
            if (config := _read_config(path)) is not None:
                return config
        return cls()


def _config_paths(folder: str | os.PathLike[str]) -> Iterator[str]:
    """Yield the existing configuration files; paths in the folder itself stay relative."""
    for directory in [Path(folder), *Path(folder).resolve().parents]:
        for name in (KARAT, PYPROJECT):
            # Path.is_file would raise an error for a folder without permissions.
            if os.path.isfile(directory / name):
                yield str(directory / name)


def _read_config(path: str | os.PathLike[str]) -> Config | None:
    """Read a file, or return None for a pyproject.toml without [tool.karat]."""
    source = Source(path)
    content = source.read()
    is_pyproject = source.path.name == PYPROJECT
    # Errors in a pyproject.toml without settings for karat must not be reported.
    if is_pyproject and b"karat" not in content:
        return None
    settings = _parse_toml(decode(content, source), source) if content.strip() else {}
    section = ""
    if is_pyproject:
        if "karat" not in _table(settings, "tool", source):
            return None
        settings = _table(settings["tool"], "karat", source, "tool.")
        section = "tool.karat."
    for name, value in settings.items():
        if name not in SECTIONS and isinstance(value, dict):
            similar = did_you_mean(name, SECTIONS, show=lambda word: f"[{section}{word}]")
            available = ", ".join(f"[{section}{word}]" for word in SECTIONS)
            raise source.error(
                "unknown table", field=section + name, hint=similar or f"the tables are {available}"
            )
    tables = {name: _table(settings, name, source, section) for name in SECTIONS}
    conventions, thresholds = tables.pop("conventions"), tables.pop("gate")
    _check_conventions(conventions, source, section)
    values = {name: value for name, value in settings.items() if name not in SECTIONS}
    values |= {name: table for name, table in tables.items() if table}
    return Config(str(path), conventions, thresholds, section, values)


def _table(
    settings: dict[str, Any], name: str, source: Source, section: str = ""
) -> dict[str, Any]:
    """Return a table by name, or an empty table if it does not exist."""
    value = settings.get(name, {})
    if not isinstance(value, dict):
        raise source.error(
            f"expected a table, got {value!r}",
            field=section + name,
            hint=f"write [{section}{name}]",
        )
    return value


def _parse_toml(text: str, source: Source) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        position = _TOML_POSITION.search(str(error))
        line = int(position["line"]) if position and position["line"] else text.count("\n") + 1
        problem = str(error)[: position.start()] if position else str(error)
        raise source.error(
            f"not valid TOML: {problem[:1].lower()}{problem[1:]}",
            line=line,
            hint='put the names of measures in quotes: "nDCG@10" = ">= 0.6"',
        ) from None
    except (ValueError, RecursionError) as error:
        raise too_large(source, text, error) from error


def _check_conventions(conventions: Mapping[str, Any], source: Source, section: str) -> None:
    try:
        Conventions.of(dict(conventions))
    except ConventionError as error:
        error.path = str(source.path)
        error.field = ".".join(filter(None, [f"{section}conventions", error.field]))
        raise
