"""How a report was made: its inputs, the scoring settings, and the software versions."""

from __future__ import annotations

import hashlib
import platform
import shlex
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import msgspec
from msgspec import Struct

from karat.conventions import HELP
from karat.errors import InputError
from karat.evaluation.scores import Scores
from karat.files import Source, expand, is_pipe
from karat.live.redaction import safe_command
from karat.report.cells import format_counts
from karat.report.page.model import Input, Page
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


class InputRow(Struct, frozen=True):
    """An input as the report lists it."""

    role: str
    name: str
    size: str
    sha256: str | None


class ConventionRow(Struct, frozen=True):
    """A scoring convention and its meaning."""

    name: str
    meaning: str
    is_default: bool


class MethodView(Struct, frozen=True):
    """What the section "Method" shows."""

    facts: dict[str, str]
    command: str | None
    created: Created
    inputs: list[InputRow]
    conventions: list[ConventionRow]
    settings: dict[str, str]
    """The settings in the header of each run, as JSON."""


class Created(Struct, frozen=True):
    """A time, for machines and for readers."""

    iso: str
    text: str


def method_view(page: Page) -> MethodView:
    """Return the inputs, the scoring settings, and the software versions."""
    scores = page.sheets[0].scores
    departures = scores.conventions.departures()
    facts = {
        "measures": ", ".join(page.sheets[0].summary["measure"]),
        "unit scored": scores.level,
        "results used": str(scores.settings) or "the whole list of each query",
        "evidence matching": str(scores.matching) if scores.matching else "",
        "clusters": _clusters(scores),
        "seed": _seed(page),
        "versions": _versions(),
    }
    return MethodView(
        facts={name: fact for name, fact in facts.items() if fact},
        command=page.command,
        created=created_time(page.created),
        inputs=_input_rows(page),
        conventions=[
            ConventionRow(f"{name}={value}", HELP[name], name not in departures)
            for name, value in scores.conventions.as_dict().items()
        ],
        settings={
            name: msgspec.json.format(msgspec.json.encode(settings, enc_hook=str)).decode()
            for name, settings in page.run_settings.items()
            if settings
        },
    )


def _seed(page: Page) -> str:
    """Return the seed of the random draws, and how many draws the numbers of the page have."""
    summaries = [sheet.summary for sheet in (*page.sheets, *page.groups)]
    parts = [str(SEED)]
    if any("bca" in summary["method"] for summary in summaries if "method" in summary.columns):
        parts.append(f"{RESAMPLES:,} resamples for bootstrap intervals")
    draws: set[int] = set()
    if page.comparison is not None:
        draws.update(page.comparison.pairs["draws"].drop_nulls())
    if page.verdict is not None:
        draws.update(check.draws for check in page.verdict.checks if check.draws is not None)
    if draws:
        parts.append(f"{format_counts(draws)} draws for tests")
    return ", ".join(parts)


def _clusters(scores: Scores) -> str:
    counts = scores.cluster_counts
    if counts is None:
        return ""
    text = f"{counts.queries:,} queries in {counts.clusters:,} clusters by {counts.field}"
    return f"{text}, {counts.alone:,} of them alone" if counts.alone else text


def created_time(created: str) -> Created:
    """Return a time in a readable form."""
    day, _, time = created.partition("T")
    return Created(created, f"{day} {time[:5]} UTC" if time else day)


def _versions() -> str:
    versions = {"karat": __version__, "Python": platform.python_version()}
    for package in _PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return ", ".join(f"{name} {number}" for name, number in versions.items())


def _input_rows(page: Page) -> list[InputRow]:
    names = [source.name for source in page.inputs]
    shown = names if page.full_paths else base_names(names)
    return [
        InputRow(
            source.role, name, "" if source.size is None else f"{source.size:,}", source.sha256
        )
        for source, name in zip(page.inputs, shown, strict=True)
    ]


def base_names(paths: Sequence[str]) -> list[str]:
    """Return the last part of each path, and as many more parts as tell different paths apart.

    >>> base_names(["/home/me/a/run.jsonl", "/home/me/b/run.jsonl", "/home/me/gold.jsonl"])
    ['a/run.jsonl', 'b/run.jsonl', 'gold.jsonl']
    """
    parts = [path.rstrip("/").replace("\\", "/").split("/") for path in paths]
    names = []
    for path, own in zip(paths, parts, strict=True):
        n = 1
        while n < len(own) and any(other != own and other[-n:] == own[-n:] for other in parts):
            n += 1
        names.append("/".join(own[-n:]) + ("/" if path.endswith("/") else ""))
    return names


def shareable_command(words: Sequence[str]) -> str:
    """Return a command line that can be sent on: base names instead of paths, no secrets.

    >>> shareable_command(["karat", "eval", "/home/me/gold.jsonl", "--config=/etc/karat.toml"])
    'karat eval gold.jsonl --config=karat.toml'
    """
    return shlex.join(_base_name(word) for word in safe_command(words))


def _base_name(word: str) -> str:
    if "://" in word:
        return word
    option, equals, value = word.partition("=") if "=" in word else ("", "", word)
    name = value.replace("\\", "/").rstrip("/").rpartition("/")[2]
    return f"{option}{equals}{name or value}"
