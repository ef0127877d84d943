"""How a page was made: its input files, the scoring settings, and the software versions."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import msgspec

from karat.conventions import HELP
from karat.errors import InputError
from karat.evaluation.scores import Scores
from karat.files import Source, expand, is_pipe
from karat.markup import Child, Markup, joined, named, table, tag
from karat.report.page.model import Input, Json, Page
from karat.report.page.value_table import scrollable
from karat.report.sheet import Sheet
from karat.stats.resampling import RESAMPLES, SEED
from karat.version import __version__


def inputs(scores: Sequence[Scores], *, settings: str | None = None) -> list[Input]:
    """Return all inputs, each once: files, and data that was given in memory.

    `settings` is the path of the karat.toml that was used.
    """
    sources: dict[tuple[str, str | None, str], None] = {}
    for run in filter(None, (score.scored_run for score in scores)):
        for role, path in run.session.paths.items():
            sources[role, path, "in memory"] = None
    for score in scores:
        if score.scored_run is None:
            sources["scores", score.path, score.name] = None
        else:
            sources["run", score.scored_run.source.path, score.name] = None
    if settings is not None:
        sources["settings", settings, settings] = None
    return [file for source in sources for file in _inputs(*source)]


def _inputs(role: str, path: str | None, name: str) -> Iterator[Input]:
    """Yield the files of a path or a glob; a file that no longer exists has no digest."""
    if path is None or is_pipe(path):
        yield Input(role, name if path is None else path)
    elif Path(path).is_dir():
        files = sorted(file for file in Path(path).rglob("*") if file.is_file())
        size = sum(file.stat().st_size for file in files)
        yield Input(role, f"{path.rstrip('/')}/", size, _digest_of_all(Path(path), files))
    else:
        try:
            names = [Source(name).path for name in expand(path)]
        except InputError:
            yield Input(role, path)
            return
        for file in names:
            yield Input(role, str(file), file.stat().st_size, _digest(file))


def _digest(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _digest_of_all(folder: Path, files: list[Path]) -> str:
    """Return the digest of a folder: the digest of the `sha256sum` lines of its files, by path."""
    digest = hashlib.sha256()
    for file in files:
        digest.update(f"{_digest(file)}  {file.relative_to(folder).as_posix()}\n".encode())
    return digest.hexdigest()


_PACKAGES = ("polars", "numpy", "scipy", "rapidfuzz", "altair", "vl-convert-python")
_MAX_LENGTH = 20_000


def provenance_section(page: Page) -> Markup:
    """Return the inputs, the scoring settings, and the software versions."""
    return joined(
        tag("dl", _facts(page)),
        tag("h3", "Inputs"),
        scrollable(
            table(["role", "name", "bytes", "SHA-256"], _input_rows(page.inputs), 2), "Inputs"
        )
        if page.inputs
        else tag("p", "No files were read."),
        tag("h3", "Conventions"),
        scrollable(_conventions(page.sheets[0]), "Conventions"),
        [_settings(name, settings) for name, settings in page.run_settings.items() if settings],
    )


def _facts(page: Page) -> Iterator[Markup]:
    sheet = page.sheets[0]
    facts: dict[str, Child] = {
        "command": tag("code", named(page.command, _MAX_LENGTH)) if page.command else None,
        "created": time_tag(page.created),
        "measures": ", ".join(sheet.summary["measure"]),
        "level": sheet.scores.level,
        "lists": str(sheet.scores.settings) or "whole lists",
        "evidence": sheet.scores.matching,
        "seed": f"{SEED}, {RESAMPLES:,} resamples",
        "versions": _versions(),
    }
    for name, fact in facts.items():
        if fact:
            yield tag("dt", name)
            yield tag("dd", fact)


def time_tag(created: str) -> Markup:
    """Return a time in a readable form."""
    day, _, time = created.partition("T")
    return tag("time", f"{day} {time[:5]} UTC" if time else day, datetime=created)


def _versions() -> str:
    versions = {"karat": __version__, "Python": platform.python_version()}
    for package in _PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return ", ".join(f"{name} {number}" for name, number in versions.items())


def _input_rows(inputs: Sequence[Input]) -> list[list[Child]]:
    return [
        [
            source.role,
            named(source.name, 200),
            "–" if source.size is None else f"{source.size:,}",
            tag("code", source.sha256) if source.sha256 else "–",
        ]
        for source in inputs
    ]


def _conventions(sheet: Sheet) -> Markup:
    departures = sheet.scores.conventions.departures()
    rows: list[list[Child]] = [
        [
            tag("code", f"{name}={value}"),
            HELP[name],
            tag("strong", "changed") if name in departures else "default",
        ]
        for name, value in sheet.scores.conventions.as_dict().items()
    ]
    return table(["convention", "meaning", "default or changed"], rows, 3)


def _settings(name: str, settings: Json) -> Markup:
    """Return the settings in the header of a run."""
    content = msgspec.json.format(msgspec.json.encode(settings, enc_hook=str)).decode()
    return tag(
        "details",
        tag("summary", "Settings of ", named(name)),
        tag("pre", named(content, _MAX_LENGTH)),
    )
