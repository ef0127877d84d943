"""How a page was made: enough to do it again."""

from __future__ import annotations

import platform
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version

import msgspec

from karat.conventions import HELP
from karat.markup import Child, Markup, joined, named, table, tag
from karat.report.page.headline import scrolled
from karat.report.page.model import Input, Json, Page
from karat.report.sheet import Sheet
from karat.stats.draws import RESAMPLES, SEED
from karat.version import __version__

_PACKAGES = ("polars", "numpy", "scipy", "rapidfuzz", "altair", "vl-convert-python")
_LONGEST = 20_000


def made(page: Page) -> Markup:
    """Return what went in, how it was scored, and with what."""
    return joined(
        tag("dl", _facts(page)),
        tag("h3", "What went in"),
        scrolled(table(["role", "name", "bytes", "SHA-256"], _inputs(page.inputs), 2), "Inputs")
        if page.inputs
        else tag("p", "Nothing was read from files."),
        tag("h3", "Conventions"),
        scrolled(_conventions(page.sheets[0]), "Conventions"),
        [_settings(name, told) for name, told in page.run_settings.items() if told],
    )


def _facts(page: Page) -> Iterator[Markup]:
    sheet = page.sheets[0]
    facts: dict[str, Child] = {
        "command": tag("code", named(page.command, _LONGEST)) if page.command else None,
        "made": when(page.created),
        "measures": ", ".join(sheet.summary["measure"]),
        "scored at": f"level {sheet.level}",
        "list": str(sheet.settings) or "whole lists",
        "evidence": sheet.matching,
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


def _inputs(inputs: Sequence[Input]) -> list[list[Child]]:
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
    departed = sheet.conventions.departures()
    rows: list[list[Child]] = [
        [
            tag("code", f"{name}={word}"),
            HELP[name],
            tag("strong", "changed") if name in departed else "the same",
        ]
        for name, word in sheet.conventions.as_dict().items()
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
