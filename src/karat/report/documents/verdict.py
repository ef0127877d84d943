"""The document of a verdict: whether a run meets its thresholds, and which queries are to blame."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from karat.evaluation.gate_checks import Check
from karat.evaluation.verdict import GateEntry, Verdict
from karat.report.cells import DASH, format_counts, p_cell
from karat.report.document_model import (
    Cell,
    Column,
    Document,
    Headline,
    Notes,
    Section,
    Table,
    TextLines,
    Tone,
)


def verdict_document(verdict: Verdict) -> Document:
    """Return the document of a verdict."""
    tone: Tone = "bad"
    if verdict.passed:
        tone = "caution" if verdict.doubts else "good"
    texts = query_texts(verdict)
    sections = [Section([checks_table(verdict)])]
    sections += [failure_section(check, texts) for check in verdict.failures]
    return Document("Gate", Headline(verdict.summary, tone), sections, notes=verdict.remarks)


def entry_document(entry: GateEntry) -> Document:
    """Return the document of one gate of a report, also of one that could not be decided."""
    if entry.verdict is None:
        message = (entry.error or "").splitlines()
        headline = Headline(f"{entry.title}: could not be decided", "bad")
        return Document("Gate", headline, [Section([TextLines(message)])])
    document = verdict_document(entry.verdict)
    if entry.title == entry.verdict.run:
        return document
    assert document.headline is not None
    headline = Headline(f"{entry.title}: {document.headline.text}", document.headline.tone)
    return replace(document, headline=headline)


def query_texts(verdict: Verdict) -> dict[str, str]:
    """Return the texts of the queries, where they are known."""
    if verdict.scores is None or "text" not in verdict.scores.queries.columns:
        return {}
    return dict(verdict.scores.queries.select("query_id", "text").drop_nulls().iter_rows())


def checks_table(verdict: Verdict) -> Table:
    """Return one row per threshold: whether it is met, and the numbers."""
    compares = any(check.rule.compares for check in verdict.checks)
    columns = [Column("", "left"), Column("threshold", "left"), Column("value")]
    if compares:
        columns += [Column("baseline"), Column("bound"), Column("p", priority=2)]
    columns.append(Column("queries", priority=1))
    rows = []
    for check in verdict.checks:
        status = Cell("passed", tone="good") if check.passed else Cell("FAILED", tone="bad")
        cells = [status, Cell(check.name), Cell(check.shown(check.value))]
        if compares:
            bound = DASH if check.bound is None else check.shown(check.bound)
            cells += [Cell(check.shown(check.baseline)), Cell(bound), p_cell(check.p)]
        rows.append([*cells, Cell(f"{check.n:,}")])
    return Table(columns, rows, notes=_baseline_notes(verdict), n_labels=2)


def _baseline_notes(verdict: Verdict) -> list[str]:
    """Return how a comparison with a baseline is decided, for each kind that occurs."""
    rules = [check.rule for check in verdict.checks if check.rule.compares]
    notes = []
    if any(not rule.strict for rule in rules):
        notes.append(
            "max_drop and max_rise pass unless a larger change for the worse is shown with the "
            "given confidence; with few queries, little can be shown"
        )
    if any(rule.strict for rule in rules):
        notes.append("strict passes only if a larger change for the worse is ruled out")
    if rules:
        note = "bound: one-sided confidence bound of value − baseline; p: of the same test"
        draws = {check.draws for check in verdict.checks if check.draws is not None}
        if draws:
            note += f", with {format_counts(draws)} random draws"
        notes.append(note)
    return notes


def failure_section(check: Check, texts: dict[str, str]) -> Section:
    """Return why a check failed, and the queries that are to blame."""
    heading = f"failed: {check.name}"
    if not check.blamed:
        return Section([Notes([check.reason])], heading)
    has_baseline = any(query.baseline is not None for query in check.blamed)
    has_texts = any(query.query_id in texts for query in check.blamed)
    columns = [
        Column("query", "left"),
        *([Column("text", "left", is_flexible=True)] if has_texts else []),
        *([Column("baseline")] if has_baseline else []),
        Column("value"),
    ]
    rows = [
        [
            Cell(query.query_id),
            *([Cell(texts.get(query.query_id, ""))] if has_texts else []),
            *([Cell(check.shown(query.baseline))] if has_baseline else []),
            Cell(check.shown(query.value), tone="bad"),
        ]
        for query in check.blamed
    ]
    more = f" ({len(check.blamed):,} of {check.to_blame:,})"
    title = check.guilt + (more if check.to_blame > len(check.blamed) else "")
    return Section([Notes([check.reason]), Table(columns, rows, title)], heading)


def reasons(check: Check, texts: dict[str, str]) -> Sequence[str]:
    """Return why a check failed as sentences, for JUnit."""
    sentences = [check.reason]
    if check.blamed:
        named = []
        for query in check.blamed:
            before = "" if query.baseline is None else f"{check.shown(query.baseline)} → "
            text = f" ({texts[query.query_id]})" if query.query_id in texts else ""
            named.append(f"{query.query_id}{text} {before}{check.shown(query.value)}")
        more = f" ({len(named):,} of {check.to_blame:,})" if check.to_blame > len(named) else ""
        sentences.append(f"{check.guilt}{more}: {', '.join(named)}")
    return sentences
