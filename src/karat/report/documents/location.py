"""The document of a location: how many evidence texts were found, and which were not."""

from __future__ import annotations

from karat.evaluation.location import AMBIGUOUS, NOT_FOUND, Location
from karat.report.document_model import Cell, Column, Document, Headline, Section, Table, Tone

_SHOWN = 5


def location_document(location: Location) -> Document:
    """Return the counts by outcome, then the first evidence texts that have no span."""
    counts = location.counts
    unplaced = counts.get(AMBIGUOUS, 0) + counts.get(NOT_FOUND, 0)
    total = sum(counts.values())
    tone: Tone = "caution" if unplaced else "good"
    headline = Headline(f"{total - unplaced:,} of {total:,} evidence texts located", tone)
    rows = [[Cell(outcome), Cell(f"{count:,}")] for outcome, count in counts.items()]
    table = Table([Column("outcome", "left"), Column("evidence texts")], rows)
    sections = [
        Section([table]),
        *(
            Section([_unplaced(location, outcome)])
            for outcome in (AMBIGUOUS, NOT_FOUND)
            if counts.get(outcome)
        ),
    ]
    return Document("Location", headline, sections)


def _unplaced(location: Location, outcome: str) -> Table:
    frame = location.report.filter(outcome=outcome).select("query_id", "evidence", "places")
    columns = [
        Column("query", "left"),
        Column("evidence text", "left", is_flexible=True),
        Column("candidates"),
    ]
    rows = [
        [Cell(query), Cell(" ".join(text.split())), Cell(f"{places:,}")]
        for query, text, places in frame.head(_SHOWN).iter_rows()
    ]
    more = [f"and {frame.height - _SHOWN:,} more"] if frame.height > _SHOWN else []
    return Table(columns, rows, outcome, more, n_labels=2)
