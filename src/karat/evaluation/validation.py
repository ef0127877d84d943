"""Validate gold, and the corpus, chunks and runs that belong to it, before a number is trusted."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from karat.data import frames, tolerant
from karat.data.chunks import Chunks
from karat.data.columns import NAMES
from karat.data.corpus import Corpus
from karat.data.data_file import PathSource
from karat.data.gold_tables import NO_SPANS
from karat.data.run import Run
from karat.errors import counted
from karat.evaluation.result import Result
from karat.evaluation.validation_checks import (
    KINDS,
    Finder,
    Finding,
    GoldIds,
    evidence_findings,
    judgment_findings,
    note_findings,
    place_findings,
    query_findings,
    shared_query_findings,
    span_findings,
)
from karat.measures.families import FAMILIES
from karat.version import __version__


def validate(gold: Any, *, corpus: Any = None, chunks: Any = None, runs: Any = ()) -> Validation:
    """Look for all that is wrong with gold; the more is given beside it, the more is checked.

    `runs` is a list of runs, or `{name: run}`.

    >>> found = validate({"q1": {"a": 1}}, runs=[{"q1": ["A", "B"]}])
    >>> found.ok, found.findings[0].kind
    (False, 'no-item-retrieved')
    """
    reading = tolerant.read(gold)
    documents = None if corpus is None else Corpus.open(corpus)
    cut = None if chunks is None else Chunks.open(chunks).frame
    findings = list(_gold_findings(reading, documents))
    if cut is not None and documents is not None:
        findings += place_findings(Finder("chunks"), cut, documents, "codepoint")
    items, sources = _wanted(reading, documents, cut)
    recognised = {"gold": reading.gold.recognised}
    n_runs = n_results = 0
    for name, run in _opened(runs):
        finder = Finder(f"run {name}")
        recognised[f"run {name}"] = run.recognised
        findings += shared_query_findings(finder, reading.gold.query_ids, run.query_ids)
        if documents is not None:
            findings += place_findings(finder, run.results, documents, run.offsets)
        items.see_results(run.results, "item_id", "doc_id")
        sources.see_results(run.results, "doc_id")
        n_runs, n_results = n_runs + 1, n_results + run.results.height
    finder = _finder(reading)
    findings += items.findings(finder, "unknown-item", "item")
    if documents is None:  # else every span has been held against its document
        findings += sources.findings(finder, "unknown-document", "document")
    checked = _checked(reading)
    if documents is not None:
        checked["documents"] = len(documents)
    if cut is not None:
        checked["chunks"] = cut.height
    if n_runs:
        checked |= {"runs": n_runs, "results": n_results}
    recognised = {
        source: {ours: names[ours] for ours in NAMES if ours in names}
        for source, names in recognised.items()
        if names
    }
    fields = tuple(reading.gold.fields)
    return Validation(tuple(sorted(findings, key=_order)), checked, recognised, fields)


def _gold_findings(reading: tolerant.TolerantReading, corpus: Corpus | None) -> Iterator[Finding]:
    gold, finder = reading.gold, _finder(reading)
    yield from note_findings(reading)
    yield from query_findings(finder, reading)
    yield from judgment_findings(finder, gold.judgments)
    if gold.spans is not None:
        yield from span_findings(finder, gold.spans, corpus, gold.offsets)
    if gold.evidence is not None:
        yield from evidence_findings(finder, gold.evidence)


def _wanted(
    reading: tolerant.TolerantReading, documents: Corpus | None, cut: pl.DataFrame | None
) -> tuple[GoldIds, GoldIds]:
    """Return the relevant ids, and the documents of spans, less those that are known to be."""
    gold = reading.gold
    items = GoldIds(gold.judgments.filter(pl.col("grade") > 0), "item_id")
    sources = GoldIds(NO_SPANS if gold.spans is None else gold.spans, "doc_id")
    if cut is not None:
        items.see(cut["item_id"])
        items.see(cut["doc_id"])
        sources.see(cut["doc_id"])
    if documents is not None:
        items.see(documents.doc_ids)
    return items, sources


def _finder(reading: tolerant.TolerantReading) -> Finder:
    return Finder("gold", lambda query: reading.lines.get(query))


def _opened(runs: Any) -> Iterator[tuple[str, Run]]:
    """Open runs one after the other, so that only one is in memory at a time."""
    if isinstance(runs, (str, os.PathLike, PathSource, Run)) or frames.is_table(runs):
        runs = [runs]
    if isinstance(runs, Mapping):
        for name, source in runs.items():
            yield str(name), Run.open(source)
        return
    seen: list[str] = []
    for source in runs:
        run = Run.open(source)
        seen.append(run.name or "run")
        times = seen.count(seen[-1])
        yield seen[-1] if times == 1 else f"{seen[-1]} ({times})", run


def _checked(reading: tolerant.TolerantReading) -> dict[str, int]:
    gold = reading.gold
    passed_over = sum("start" in note.place for note in reading.notes)
    checked = {"queries": gold.query_ids.len()}
    for family in FAMILIES.values():
        if family.gold is not None:
            table = family.table(gold)
            checked[family.gold] = 0 if table is None else table.height
    checked["spans"] += passed_over
    return checked


def _order(found: Finding) -> int:
    return list(KINDS).index(found.kind)


@dataclass(frozen=True)
class Validation(Result):
    """All findings, errors first, and how much was checked."""

    findings: tuple[Finding, ...]
    checked: dict[str, int]
    recognised: dict[str, dict[str, str]] = field(default_factory=dict)
    """For gold and each run, which column or key was read as what: {ours: theirs}."""
    fields: tuple[str, ...] = ()
    """What else gold knows of its queries."""

    @property
    def ok(self) -> bool:
        """Whether there are no errors; there may be warnings."""
        return not self.count("error")

    def count(self, severity: str) -> int:
        """Return how many errors or warnings there are over all findings."""
        return sum(found.count for found in self.findings if found.severity == severity)

    @property
    def frame(self) -> pl.DataFrame:
        """One row per finding: severity, kind, source, count, meaning."""
        names = ("severity", "kind", "source", "count", "meaning")
        rows = [[getattr(found, name) for name in names] for found in self.findings]
        kinds = {name: pl.Int64 if name == "count" else pl.String for name in names}
        return pl.DataFrame(rows, schema=kinds, orient="row")

    def as_dict(self) -> dict[str, Any]:
        """Return what `karat validate --json` prints."""
        return {
            "karat": __version__,
            "ok": self.ok,
            "checked": self.checked,
            "recognised": self.recognised,
            "fields": list(self.fields),
            "findings": [found.as_dict() for found in self.findings],
        }

    @property
    def verdict(self) -> str:
        """Everything in one line."""
        found = [
            counted(self.count(word), word) for word in ("error", "warning") if self.count(word)
        ]
        documents = self.checked.get("documents")
        against = "" if documents is None else f" against {counted(documents, 'document')}"
        parts = [counted(n, noun) for noun, n in self._nouns() if n] or ["0 queries"]
        return f"{', '.join(found) or 'no findings'}: {', '.join(parts)} checked{against}"

    def _nouns(self) -> Iterator[tuple[str, int]]:
        """Yield the word for one of each thing that was checked, and how many there were."""
        yield "query", self.checked["queries"]
        for family in FAMILIES.values():
            if family.gold is not None:
                yield family.noun, self.checked.get(family.gold, 0)
        yield "chunk", self.checked.get("chunks", 0)
        yield "result", self.checked.get("results", 0)
