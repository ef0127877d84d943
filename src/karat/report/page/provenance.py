"""How a page was made: which files went in, how they were scored, with what."""

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
from karat.report.page.value_table import scrolled
from karat.report.sheet import Sheet
from karat.stats.resampling import RESAMPLES, SEED
from karat.version import __version__


def inputs(scores: Sequence[Scores], *, settings: str | None = None) -> list[Input]:
    """Return every file that went in, each once, and what was given in memory.

    `settings` is the path of the karat.toml whose settings apply.
    """
    given: dict[tuple[str, str | None, str], None] = {}
    for run in filter(None, (score.scored_run for score in scores)):
        for role, path in run.session.paths.items():
            given[role, path, "in memory"] = None
    for score in scores:
        if score.scored_run is None:
            given["scores", score.path, score.name] = None
        else:
            given["run", score.scored_run.source.path, score.name] = None
    if settings is not None:
        given["settings", settings, settings] = None
    return [each for source in given for each in _inputs(*source)]


def _inputs(role: str, path: str | None, name: str) -> Iterator[Input]:
    """Yield the files that a path or a glob leads to; what changed or went away has no digest."""
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
    """Return one digest of a folder: of what `sha256sum` says of its files, in order of path."""
    whole = hashlib.sha256()
    for file in files:
        whole.update(f"{_digest(file)}  {file.relative_to(folder).as_posix()}\n".encode())
    return whole.hexdigest()


_PACKAGES = ("polars", "numpy", "scipy", "rapidfuzz", "altair", "vl-convert-python")
_LONGEST = 20_000


def made(page: Page) -> Markup:
    """Return what went in, how it was scored, and with what."""
    return joined(
        tag("dl", _facts(page)),
        tag("h3", "What went in"),
        scrolled(table(["role", "name", "bytes", "SHA-256"], _input_rows(page.inputs), 2), "Inputs")
        if page.inputs
        else tag("p", "Nothing was read from files."),
        tag("h3", "Conventions"),
        scrolled(_conventions(page.sheets[0]), "Conventions"),
        [_settings(name, known) for name, known in page.run_settings.items() if known],
    )


def _facts(page: Page) -> Iterator[Markup]:
    sheet = page.sheets[0]
    facts: dict[str, Child] = {
        "command": tag("code", named(page.command, _LONGEST)) if page.command else None,
        "made": when(page.created),
        "measures": ", ".join(sheet.summary["measure"]),
        "scored at": f"level {sheet.scores.level}",
        "list": str(sheet.scores.settings) or "whole lists",
        "evidence": sheet.scores.matching,
        "seed": f"{SEED}, {RESAMPLES:,} resamples",
        "versions": _versions(),
    }
    for name, told in facts.items():
        if told:
            yield tag("dt", name)
            yield tag("dd", told)


def when(created: str) -> Markup:
    """Return a time as people read it."""
    day, _, time = created.partition("T")
    return tag("time", f"{day} {time[:5]} UTC" if time else day, datetime=created)


def _versions() -> str:
    known = {"karat": __version__, "Python": platform.python_version()}
    for package in _PACKAGES:
        try:
            known[package] = version(package)
        except PackageNotFoundError:
            continue
    return ", ".join(f"{name} {number}" for name, number in known.items())


def _input_rows(inputs: Sequence[Input]) -> list[list[Child]]:
    return [
        [
            each.role,
            named(each.name, 200),
            "–" if each.size is None else f"{each.size:,}",
            tag("code", each.sha256) if each.sha256 else "–",
        ]
        for each in inputs
    ]


def _conventions(sheet: Sheet) -> Markup:
    departed = sheet.scores.conventions.departures()
    rows: list[list[Child]] = [
        [
            tag("code", f"{name}={word}"),
            HELP[name],
            tag("strong", "changed") if name in departed else "the same",
        ]
        for name, word in sheet.scores.conventions.as_dict().items()
    ]
    return table(["convention", "answers", "against the default"], rows, 3)


def _settings(name: str, told: Json) -> Markup:
    """Return how a run says it was made."""
    written = msgspec.json.format(msgspec.json.encode(told, enc_hook=str)).decode()
    return tag(
        "details",
        tag("summary", "Settings of ", named(name)),
        tag("pre", named(written, _LONGEST)),
    )
