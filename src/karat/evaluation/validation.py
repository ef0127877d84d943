"""`validate`: check gold, and the corpus, chunks and runs that belong to it."""

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
from karat.evaluation.result import Result, to_pandas
from karat.evaluation.validation_checks import (
    KINDS,
    Finder,
    Finding,
    GoldIds,
    evidence_findings,
    judgment_findings,
    missing_evidence_findings,
    place_findings,
    query_findings,
    shared_query_findings,
    skipped_findings,
    span_findings,
)
from karat.measures.families import FAMILIES
from karat.version import __version__


def validate(gold: Any, *, corpus: Any = None, chunks: Any = None, runs: Any = ()) -> Validation:
    """Check gold for errors; with a corpus, chunks or runs, check that they fit together.

    Parameters
    ----------
    gold : path, table, dict, records or Gold
        What should be found.
    corpus : path, table or dict, default None
        The documents. Spans, evidence texts and ids are checked against them.
    chunks : path or table, default None
        All chunks of the documents. Ids and evidence texts are checked against them, and their
        offsets against `corpus`.
    runs : list of runs or {name: run}, default ()
        Runs. Their queries and ids are compared with gold, and their offsets with `corpus`.

    Returns
    -------
    Validation
        The findings, errors first. `ok` is true if there are no errors.

    Examples
    --------
    >>> validation = validate({"q1": {"a": 1}}, runs=[{"q1": ["A", "B"]}])
    >>> validation.ok, validation.findings[0].kind
    (False, 'no-item-retrieved')
    """
    reading = tolerant.read(gold)
    documents = None if corpus is None else Corpus.open(corpus)
    chunk_table = None if chunks is None else Chunks.open(chunks).frame
    findings = list(_gold_findings(reading, documents, chunk_table))
    if chunk_table is not None and documents is not None:
        findings += place_findings(Finder("chunks"), chunk_table, documents, "codepoint")
    item_ids, doc_ids = _unconfirmed_ids(reading, documents, chunk_table)
    recognised = {"gold": reading.gold.recognised}
    n_runs = n_results = 0
    for name, run in _open_runs(runs):
        finder = Finder(f"run {name}")
        recognised[f"run {name}"] = run.recognised
        findings += shared_query_findings(finder, reading.gold.query_ids, run.query_ids)
        if documents is not None:
            findings += place_findings(finder, run.results, documents, run.offsets)
        item_ids.remove_retrieved(run.results, "item_id", "doc_id")
        doc_ids.remove_retrieved(run.results, "doc_id")
        n_runs, n_results = n_runs + 1, n_results + run.results.height
    finder = _gold_finder(reading)
    findings += item_ids.findings(finder, "unknown-item", "item")
    if documents is None:  # with a corpus, the document of every span was checked above
        findings += doc_ids.findings(finder, "unknown-document", "document")
    checked = _gold_counts(reading)
    if documents is not None:
        checked["documents"] = len(documents)
    if chunk_table is not None:
        checked["chunks"] = chunk_table.height
    if n_runs:
        checked |= {"runs": n_runs, "results": n_results}
    recognised = {
        source: {ours: names[ours] for ours in NAMES if ours in names}
        for source, names in recognised.items()
        if names
    }
    fields = tuple(reading.gold.fields)
    return Validation(tuple(sorted(findings, key=_order)), checked, recognised, fields)


def _gold_findings(
    reading: tolerant.TolerantReading, corpus: Corpus | None, chunks: pl.DataFrame | None
) -> Iterator[Finding]:
    gold, finder = reading.gold, _gold_finder(reading)
    yield from skipped_findings(reading)
    yield from query_findings(finder, reading)
    yield from judgment_findings(finder, gold.judgments)
    if gold.spans is not None:
        yield from span_findings(finder, gold.spans, corpus, gold.offsets)
    if gold.evidence is not None:
        yield from evidence_findings(finder, gold.evidence)
        yield from missing_evidence_findings(finder, gold.evidence, corpus, chunks)


def _unconfirmed_ids(
    reading: tolerant.TolerantReading, documents: Corpus | None, chunks: pl.DataFrame | None
) -> tuple[GoldIds, GoldIds]:
    """Return the relevant ids and the documents of spans that corpus and chunks do not contain."""
    gold = reading.gold
    item_ids = GoldIds(gold.judgments.filter(pl.col("grade") > 0), "item_id")
    doc_ids = GoldIds(NO_SPANS if gold.spans is None else gold.spans, "doc_id")
    if chunks is not None:
        item_ids.remove(chunks["item_id"])
        item_ids.remove(chunks["doc_id"])
        doc_ids.remove(chunks["doc_id"])
    if documents is not None:
        item_ids.remove(documents.doc_ids)
    return item_ids, doc_ids


def _gold_finder(reading: tolerant.TolerantReading) -> Finder:
    return Finder("gold", lambda query: reading.lines.get(query))


def _open_runs(runs: Any) -> Iterator[tuple[str, Run]]:
    """Open runs one after the other, so that only one is in memory at a time."""
    if isinstance(runs, (str, os.PathLike, PathSource, Run)) or frames.is_table(runs):
        runs = [runs]
    if isinstance(runs, Mapping):
        for name, source in runs.items():
            yield str(name), Run.open(source)
        return
    names: list[str] = []
    for source in runs:
        run = Run.open(source)
        name = run.name or "run"
        names.append(name)
        n_same = names.count(name)
        yield name if n_same == 1 else f"{name} ({n_same})", run


def _gold_counts(reading: tolerant.TolerantReading) -> dict[str, int]:
    gold = reading.gold
    checked = {"queries": gold.query_ids.len()}
    for family in FAMILIES.values():
        if family.gold is not None:
            table = family.table(gold)
            checked[family.gold] = 0 if table is None else table.height
    checked["spans"] += sum("start" in note.place for note in reading.notes)  # skipped spans
    return checked


def _order(finding: Finding) -> int:
    return list(KINDS).index(finding.kind)


@dataclass(frozen=True)
class Validation(Result):
    """The result of `validate`: all findings, and how much was checked.

    Parameters
    ----------
    findings : tuple of Finding
        The problems that were found, errors first.
    checked : dict
        How many queries, judgments, spans, evidence texts, documents, chunks, runs and results
        were checked.
    recognised : dict, default {}
        For gold and each run, the columns or keys that were mapped to names of karat:
        {source: {karat name: name in the file}}.
    fields : tuple of str, default ()
        The other fields of the queries in gold.

    Examples
    --------
    >>> validation = validate({"q1": {"a": 1}, "q2": {"b": 0}})
    >>> validation.ok, validation.verdict
    (True, '1 warning: 2 queries, 2 judgments checked')
    """

    findings: tuple[Finding, ...]
    checked: dict[str, int]
    recognised: dict[str, dict[str, str]] = field(default_factory=dict)
    fields: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether there are no errors; there may be warnings."""
        return not self.count("error")

    def count(self, severity: str) -> int:
        """Return the number of occurrences of all findings with a severity.

        Parameters
        ----------
        severity : "error" or "warning"
            The severity to count.
        """
        return sum(finding.count for finding in self.findings if finding.severity == severity)

    def to_pandas(self) -> Any:
        """Return the findings as a pandas DataFrame: severity, kind, source, count, meaning.

        Examples
        --------
        >>> import karat
        >>> len(karat.validate({"q1": {"a": 1}}).to_pandas())
        0

        """
        return to_pandas(self.frame)

    @property
    def frame(self) -> pl.DataFrame:
        """One row per finding: severity, kind, source, count, meaning."""
        names = ("severity", "kind", "source", "count", "meaning")
        rows = [[getattr(finding, name) for name in names] for finding in self.findings]
        schema = {name: pl.Int64 if name == "count" else pl.String for name in names}
        return pl.DataFrame(rows, schema=schema, orient="row")

    def as_dict(self) -> dict[str, Any]:
        """Return what `karat validate --json` prints."""
        return {
            "karat": __version__,
            "ok": self.ok,
            "checked": self.checked,
            "recognised": self.recognised,
            "fields": list(self.fields),
            "findings": [finding.as_dict() for finding in self.findings],
        }

    @property
    def verdict(self) -> str:
        """The result in one line."""
        severities = ("error", "warning")
        numbers = [counted(self.count(word), word) for word in severities if self.count(word)]
        documents = self.checked.get("documents")
        against = "" if documents is None else f" against {counted(documents, 'document')}"
        parts = [counted(n, noun) for noun, n in self._checked_nouns() if n] or ["0 queries"]
        return f"{', '.join(numbers) or 'no findings'}: {', '.join(parts)} checked{against}"

    def _checked_nouns(self) -> Iterator[tuple[str, int]]:
        """Yield a singular noun for each thing that was checked, and its number."""
        yield "query", self.checked["queries"]
        for family in FAMILIES.values():
            if family.gold is not None:
                yield family.noun, self.checked.get(family.gold, 0)
        yield "chunk", self.checked.get("chunks", 0)
        yield "result", self.checked.get("results", 0)
