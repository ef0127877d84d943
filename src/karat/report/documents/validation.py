"""The document of a validation: what is wrong with gold and the files that belong to it."""

from __future__ import annotations

from karat.evaluation.validation import Validation
from karat.evaluation.validation_checks import Example, Finding
from karat.report.document_model import (
    Cell,
    Column,
    Document,
    Headline,
    Section,
    Table,
    TextLines,
    Tone,
)

_TONES: dict[str, Tone] = {"error": "bad", "warning": "caution"}


def validation_document(validation: Validation) -> Document:
    """Return the findings, most severe first, with examples."""
    if not validation.ok:
        tone: Tone = "bad"
    else:
        tone = "caution" if validation.findings else "good"
    sections = [Section([_table(validation)])] if validation.findings else []
    sections += [_finding(finding) for finding in validation.findings]
    return Document(
        "Validation",
        Headline(validation.verdict, tone),
        sections,
        notes=[
            _recognised(source, names, validation.fields)
            for source, names in validation.recognised.items()
            if any(ours != theirs for ours, theirs in names.items())
        ],
    )


def _table(validation: Validation) -> Table:
    columns = [Column("", "left"), Column("finding", "left"), Column("in", "left"), Column("count")]
    rows = [
        [
            Cell(finding.severity, tone=_TONES.get(finding.severity, "neutral")),
            Cell(finding.kind),
            Cell(finding.source),
            Cell(f"{finding.count:,}"),
        ]
        for finding in validation.findings
    ]
    return Table(columns, rows, n_labels=3)


def _finding(finding: Finding) -> Section:
    where = "" if finding.source == "gold" else f" in {finding.source}"
    lines = [finding.meaning]
    for example in finding.examples:
        lines.append(f"  {_example(example)}")
        if example.hint:
            lines.append(f"    hint: {example.hint}")
    if finding.examples and (more := finding.count - len(finding.examples)):
        lines.append(f"  and {more:,} more")
    if finding.hint:
        lines.append(f"  hint: {finding.hint}")
    return Section([TextLines(lines)], f"{finding.kind}{where}")


def _example(example: Example) -> str:
    names = {"query": example.query_id, "item": example.item_id, "document": example.doc_id}
    words = [f"{word} {name}" for word, name in names.items() if name is not None]
    if example.start is not None:
        words.append(f"[{example.start}, {example.end})")
    file = "" if example.line is None else f"{example.path or 'line'}:{example.line}"
    return ": ".join(part for part in (file, ", ".join(words), example.problem) if part)


def _recognised(source: str, names: dict[str, str], fields: tuple[str, ...]) -> str:
    """Return which column or key was read as what."""
    pairs = [ours if ours == theirs else f"{ours} from {theirs}" for ours, theirs in names.items()]
    others = f"; other fields: {', '.join(fields)}" if fields and source == "gold" else ""
    return f"columns of {source}: {', '.join(pairs)}{others}"
