"""Findings of a validation, and how rows with a problem become a finding with examples."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from functools import partial
from itertools import groupby
from operator import attrgetter
from typing import Any

import numpy as np
import polars as pl

from karat.data.corpus import Corpus
from karat.data.span_checks import (
    LocatedRows,
    describe_fault,
    explain_offsets,
    locate_rows,
    text_lengths,
)
from karat.data.tolerant import TolerantReading
from karat.errors import counted

KINDS = {
    "duplicate-query": ("error", "a query stands on more than one line"),
    "negative": ("error", "a span begins before its document does"),
    "inverted": ("error", "a span ends before it begins"),
    "too-far": ("error", "a span ends further than any document goes"),
    "systematic-offsets": ("error", "all offsets of gold seem to be counted in another way"),
    "past-end": ("error", "a place reaches past the end of its document"),
    "inside-character": ("error", "a place begins or ends inside a character"),
    "unknown-document": ("error", "a place is in a document that there is not"),
    "text-mismatch": ("error", "the text is not what stands in that place"),
    "unknown-item": ("error", "no document, chunk or result has this relevant id"),
    "no-item-retrieved": ("error", "not one relevant id stands in any run"),
    "no-document-retrieved": ("error", "not one document of gold stands in any run"),
    "no-shared-query": ("error", "gold and the run have no query in common"),
    "zero-length": ("warning", "a span holds no characters, and so counts nothing"),
    "blank": ("warning", "a span holds nothing but white space"),
    "overlap": ("warning", "a span overlaps another of the same query; characters count once"),
    "no-gold": ("warning", "nothing is known that should be found for a query"),
    "nothing-relevant": ("warning", "every judgment of a query has a grade of 0 or below"),
    "judged-twice": ("warning", "an item is judged more than once; the highest grade counts"),
    "empty-evidence": ("warning", "a piece of evidence holds no text"),
    "duplicate-evidence": ("warning", "a piece of evidence stands more than once in its query"),
    "item-not-retrieved": ("warning", "a relevant id stands in no run"),
    "document-not-retrieved": ("warning", "a document of gold stands in no run"),
    "missing-query": ("warning", "a query of gold is not in the run"),
    "unknown-query": ("warning", "a query of the run is not in gold"),
}


@dataclass(frozen=True)
class Example:
    """One place where something is wrong."""

    problem: str
    hint: str | None = None
    path: str | None = None
    line: int | None = None
    query_id: str | None = None
    item_id: str | None = None
    doc_id: str | None = None
    start: int | None = None
    end: int | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return what is known, as plain data."""
        values = {part.name: getattr(self, part.name) for part in fields(self)}
        return {name: value for name, value in values.items() if value is not None}


@dataclass(frozen=True)
class Finding:
    """One kind of thing that is wrong, how often, and where for instance."""

    kind: str
    source: str
    """What it was found in: gold, chunks or `run NAME`."""
    count: int
    examples: tuple[Example, ...]
    hint: str | None = None

    @property
    def severity(self) -> str:
        """`error`: numbers would be wrong or refused; `warning`: they may not mean what they seem.

        A validation with errors is not ok.
        """
        return KINDS[self.kind][0]

    @property
    def meaning(self) -> str:
        """What the kind says, in a sentence."""
        return KINDS[self.kind][1]

    def as_dict(self) -> dict[str, Any]:
        """Return the finding as plain data."""
        plain: dict[str, Any] = {
            "severity": self.severity,
            "kind": self.kind,
            "source": self.source,
            "count": self.count,
            "examples": [example.as_dict() for example in self.examples],
        }
        return plain | ({"hint": self.hint} if self.hint else {})


EXAMPLES = 3
_PLACE = ("query_id", "item_id", "doc_id", "start", "end")

Row = dict[str, Any]
Problem = str | tuple[str, str | None]
"""What is wrong with a row, and perhaps a hint."""


@dataclass(frozen=True)
class Finder:
    """Makes the findings of one source; `line` returns the file and line of a query."""

    source: str
    line: Callable[[str], tuple[str, int] | None] = lambda _: None

    def found(
        self, kind: str, rows: pl.DataFrame, say: Callable[[Row], Problem], hint: str | None = None
    ) -> Iterator[Finding]:
        """Yield one finding where there are such rows; its examples do not hang on their order."""
        if not rows.height:
            return
        place = [name for name in _PLACE if name in rows.columns]
        rest = [name for name in rows.columns if name not in place]
        first = rows.sort([*place, *rest], nulls_last=True).head(EXAMPLES)
        examples = [self._example(row, say(row)) for row in first.iter_rows(named=True)]
        yield Finding(kind, self.source, rows.height, tuple(examples), hint)

    def _example(self, row: Row, described: Problem) -> Example:
        problem, hint = (described, None) if isinstance(described, str) else described
        query = row.get("query_id")
        path, line = (None if query is None else self.line(query)) or (None, None)
        place = {name: row.get(name) for name in _PLACE}
        return Example(problem, hint, path, line, **place)


def a_few(names: pl.Series) -> list[str]:
    """Return some of the ids there are."""
    return names.drop_nulls().unique().sort().head(EXAMPLES).to_list()


def note_findings(reading: TolerantReading) -> Iterator[Finding]:
    """Yield what the reader passed over, as it stands in the file."""
    kind = attrgetter("kind")
    for name, notes in groupby(sorted(reading.notes, key=kind), key=kind):
        same = list(notes)
        examples = [
            Example(note.error.problem, path=note.error.path, line=note.error.line, **note.place)
            for note in same[:EXAMPLES]
        ]
        yield Finding(name, "gold", len(same), tuple(examples), same[0].error.hint)


def query_findings(finder: Finder, reading: TolerantReading) -> Iterator[Finding]:
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


class GoldIds:
    """The ids that gold names in a column, crossed off where something has them."""

    def __init__(self, rows: pl.DataFrame, column: str) -> None:
        self._column = column
        self._unseen = rows.group_by(column).agg(pl.col("query_id").min())
        self._all = self._unseen.height
        self._there: list[str] = []
        self._complete = False
        self._retrieved = False

    def see(self, ids: pl.Series) -> None:
        """Cross off ids of the corpus or of its chunks: any that are right must be there."""
        self._complete = True
        self._cross_off(ids)

    def see_results(self, results: pl.DataFrame, *columns: str) -> None:
        """Cross off ids that a run returned; it need not have returned all there are."""
        for name in columns:
            if name in results.columns:
                self._retrieved = True
                self._cross_off(results[name])

    def _cross_off(self, ids: pl.Series) -> None:
        seen = ids.alias(self._column).to_frame()
        self._unseen = self._unseen.join(seen, on=self._column, how="anti")
        self._there = self._there or a_few(ids)

    def findings(self, finder: Finder, unknown: str, word: str) -> Iterator[Finding]:
        """Yield the ids that nothing has: an error if they must be there, or if none of them is."""
        if not self._complete and not self._retrieved:
            return
        none = self._unseen.height == self._all
        kind = f"no-{word}-retrieved" if none else f"{word}-not-retrieved"
        yield from finder.found(
            unknown if self._complete else kind,
            self._unseen,
            lambda _: "nothing that was given has this id",
            f"there are {', '.join(map(repr, self._there))}; are ids spelled differently?"
            if self._there
            else None,
        )


def shared_query_findings(finder: Finder, gold: pl.Series, run: pl.Series) -> Iterator[Finding]:
    """Yield the queries that only gold or only the run has."""
    wanted, asked = (ids.alias("query_id").to_frame() for ids in (gold, run))
    missing = wanted.join(asked, on="query_id", how="anti")
    unknown = asked.join(wanted, on="query_id", how="anti")
    if unknown.height and unknown.height == asked.height:
        hint = f"queries of gold are {', '.join(map(repr, a_few(gold)))}"
        yield from finder.found("no-shared-query", unknown, lambda _: "gold does not have it", hint)
        return
    yield from finder.found("missing-query", missing, lambda _: "it scores as nothing retrieved")
    yield from finder.found("unknown-query", unknown, lambda _: "it is left out")


def span_findings(
    finder: Finder, spans: pl.DataFrame, corpus: Corpus | None, unit: str
) -> Iterator[Finding]:
    """Yield spans of gold that do not hold, hold nothing, or overlap."""
    explained = explain_offsets(spans, unit, corpus)
    if explained is not None:
        yield Finding(
            "systematic-offsets",
            finder.source,
            explained.count,
            (),
            f"{explained}; {explained.hint}",
        )
    if corpus is None:
        yield from _length_findings(finder, spans, unit)
        texts = spans["text"].to_list()
    else:
        found = locate_rows(spans, corpus, unit)
        yield from _fault_findings(finder, spans, found, corpus, unit)
        texts = _texts(found, corpus)
    empty = spans["start"] == spans["end"]
    yield from finder.found("zero-length", spans.filter(empty), lambda _: "it ends where it begins")
    blank = pl.Series([text is not None and not text.strip() for text in texts], dtype=pl.Boolean)
    yield from finder.found(
        "blank", spans.filter(~empty & blank), lambda _: "there is nothing but white space"
    )
    yield from _overlap_findings(finder, spans.filter(~empty))


def place_findings(
    finder: Finder, table: pl.DataFrame, corpus: Corpus, unit: str
) -> Iterator[Finding]:
    """Yield places of chunks or results that do not hold, and documents that there are not."""
    found = locate_rows(table, corpus, unit)
    if "doc_id" in table.columns:
        strange = ~table["doc_id"].is_in(corpus.doc_ids.implode()).fill_null(value=True)
        found.faults["unknown-document"] = strange.to_numpy() | found.faults.get(
            "unknown-document", np.zeros(table.height, np.bool_)
        )
    yield from _fault_findings(finder, table, found, corpus, unit)


def _fault_findings(
    finder: Finder, table: pl.DataFrame, found: LocatedRows, corpus: Corpus, unit: str
) -> Iterator[Finding]:
    for kind, rows in found.faults.items():
        say = partial(describe_fault, kind, corpus=corpus, unit=unit)
        yield from finder.found(kind, table.filter(rows), say)


def _length_findings(finder: Finder, spans: pl.DataFrame, unit: str) -> Iterator[Finding]:
    """Yield texts that cannot stand in their place, which is longer or shorter."""
    length = text_lengths(unit)
    place = pl.col("end") - pl.col("start")
    yield from finder.found(
        "text-mismatch",
        spans.with_columns(length.alias("length")).filter(pl.col("length") != place),
        lambda row: f"the place is {row['end'] - row['start']} long and the text {row['length']}",
    )


def _texts(found: LocatedRows, corpus: Corpus) -> list[str | None]:
    """Return what stands in each place that holds, and else what gold says."""
    held = found.table.select("doc_id", "start", "end", "text").iter_rows()
    return [
        text if at_fault else corpus[doc_id][start:end]
        for (doc_id, start, end, text), at_fault in zip(held, found.faulty, strict=True)
    ]


def _overlap_findings(finder: Finder, spans: pl.DataFrame) -> Iterator[Finding]:
    """Yield each span that shares characters with one that begins no later."""
    text = ["query_id", "doc_id"]
    ordered = spans.select(*text, "start", "end").sort(*text, "start", "end")
    reach = pl.col("end").cum_max().shift(1).over(text)

    def overlapped(row: Row) -> str:
        same = [pl.col(name) == row[name] for name in text]
        others = ordered.filter(*same, pl.col("start") < row["end"], pl.col("end") > row["start"])
        start, end = others.select("start", "end").row(0)
        twin = (start, end) == (row["start"], row["end"])
        return "it is there twice" if twin else f"[{start}, {end}) shares characters with it"

    yield from finder.found("overlap", ordered.filter(pl.col("start") < reach), overlapped)
