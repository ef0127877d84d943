"""What can be wrong with gold by itself: its queries, judgments and evidence."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from operator import attrgetter

import polars as pl

from karat.data.lenient import Reading
from karat.errors import counted
from karat.evaluation.findings import EXAMPLES, Example, Finder, Finding


def note_findings(reading: Reading) -> Iterator[Finding]:
    """Yield what the reader passed over, as it stands in the file."""
    kind = attrgetter("kind")
    for name, notes in groupby(sorted(reading.notes, key=kind), key=kind):
        same = list(notes)
        examples = [
            Example(note.error.problem, path=note.error.path, line=note.error.line, **note.place)
            for note in same[:EXAMPLES]
        ]
        yield Finding(name, "gold", len(same), tuple(examples), same[0].error.hint)


def query_findings(finder: Finder, reading: Reading) -> Iterator[Finding]:
    """Yield queries that nothing should be found for."""
    gold = reading.gold
    held = [t["query_id"] for t in (gold.judgments, gold.spans, gold.evidence) if t is not None]
    # A query whose spans were all passed over is no query without gold.
    passed_over = [note.place["query_id"] for note in reading.notes if "start" in note.place]
    held.append(pl.Series("query_id", passed_over, pl.String))
    empty = {*gold.query_ids_judged, *gold.empty_spans}
    yield from finder.found(
        "no-gold",
        gold.query_ids.to_frame().join(pl.concat(held).to_frame(), on="query_id", how="anti"),
        lambda row: (
            "what is given is empty"
            if row["query_id"] in empty
            else "it has neither judgments, nor spans, nor evidence"
        ),
    )
    grades = gold.judgments.group_by("query_id").agg(pl.len(), pl.col("grade").max())
    yield from finder.found(
        "nothing-relevant",
        grades.filter(pl.col("grade") <= 0),
        lambda row: f"{counted(row['len'], 'judgment')}, none above 0",
    )


def judgment_findings(finder: Finder, judgments: pl.DataFrame) -> Iterator[Finding]:
    """Yield items that were judged more than once in a query."""
    graded = judgments.group_by("query_id", "item_id").agg(pl.col("grade").sort())
    yield from finder.found(
        "judged-twice",
        graded.filter(pl.col("grade").list.len() > 1),
        lambda row: f"its grades are {', '.join(map(str, row['grade']))}",
    )


def evidence_findings(finder: Finder, evidence: pl.DataFrame) -> Iterator[Finding]:
    """Yield evidence without text, and evidence that is there twice.

    White space and capitals make no difference, as when evidence is matched.
    """
    plain = [" ".join(text.split()).lower() for text in evidence["text"]]
    texts = evidence.select("query_id", pl.Series("text", plain, pl.String))
    yield from finder.found(
        "empty-evidence", texts.filter(pl.col("text") == ""), lambda _: "there is no text"
    )
    times = texts.filter(pl.col("text") != "").group_by("query_id", "text").len()
    yield from finder.found(
        "duplicate-evidence",
        times.filter(pl.col("len") > 1),
        lambda row: f"{row['text'][:40]!r} stands there {row['len']} times",
    )
