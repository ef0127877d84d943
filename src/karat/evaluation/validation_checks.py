"""The checks of `validate`: what they look for in gold, chunks and runs, and their findings.

`KINDS` lists all kinds of findings. Each function `…_findings` checks one thing and yields a
`Finding` for each kind of problem that it detects.
"""

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
from karat.evaluation.location import MissingTexts, missing_texts

KINDS = {
    "duplicate-query": ("error", "a query appears on more than one line"),
    "negative": ("error", "a span starts before its document"),
    "inverted": ("error", "a span ends before it starts"),
    "too-far": ("error", "the end of a span is too large for any document"),
    "systematic-offsets": ("error", "all offsets of gold seem to be counted in another unit"),
    "past-end": ("error", "a span ends after the end of its document"),
    "inside-character": ("error", "a span starts or ends inside a character"),
    "unknown-document": ("error", "the document of a span does not exist"),
    "text-mismatch": ("error", "the text differs from the text of the document at that span"),
    "unknown-item": ("error", "no document, chunk or result has this relevant id"),
    "no-item-retrieved": ("error", "no relevant id appears in any run"),
    "no-document-retrieved": ("error", "no document of gold appears in any run"),
    "no-shared-query": ("error", "gold and the run have no query in common"),
    "unanswerable-with-gold": ("error", "a query without an answer has something to find"),
    "zero-length": ("warning", "a span is empty, so it is not counted"),
    "blank": ("warning", "a span contains only white space"),
    "overlap": ("warning", "a span overlaps another of the same query; characters count once"),
    "no-gold": ("warning", "gold lists nothing to find for a query"),
    "nothing-relevant": ("warning", "every judgment of a query has a grade of 0 or below"),
    "judged-twice": ("warning", "an item is judged more than once; the highest grade counts"),
    "empty-evidence": ("warning", "an evidence text is empty"),
    "duplicate-evidence": ("warning", "a query has the same evidence text more than once"),
    "evidence-not-in-corpus": ("warning", "an evidence text is in no document of the corpus"),
    "evidence-not-in-chunks": ("warning", "an evidence text is in no chunk"),
    "item-not-retrieved": ("warning", "a relevant id appears in no run"),
    "document-not-retrieved": ("warning", "a document of gold appears in no run"),
    "missing-query": ("warning", "a query of gold is not in the run"),
    "unknown-query": ("warning", "a query of the run is not in gold"),
}
"""The kinds of findings, the most severe first: severity and meaning."""
MAX_EXAMPLES = 3
_MAX_TEXT_LENGTH = 80
_PLACE = ("query_id", "item_id", "doc_id", "start", "end")

Row = dict[str, Any]
Problem = str | tuple[str, str | None]
"""What is wrong with a row; with a hint if it is a tuple."""


@dataclass(frozen=True)
class Example:
    """One occurrence of a problem."""

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
        """Return the values that are not None as plain data."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in values.items() if value is not None}


@dataclass(frozen=True)
class Finding:
    """One kind of problem that `validate` found, with its number of occurrences and examples.

    Parameters
    ----------
    kind : str
        The kind of problem, such as "unknown-item" or "overlap".
    source : str
        Where it was found: "gold", "chunks" or "run NAME".
    count : int
        The number of occurrences.
    examples : tuple of Example
        Up to three occurrences, with file, line and ids.
    hint : str, default None
        How to fix the problem.

    Examples
    --------
    >>> from karat import validate
    >>> (finding,) = validate({"q1": {"a": 0}}).findings
    >>> finding.kind, finding.severity, finding.count
    ('nothing-relevant', 'warning', 1)
    >>> finding.examples[0].problem
    '1 judgment, none above 0'
    """

    kind: str
    source: str
    count: int
    examples: tuple[Example, ...]
    hint: str | None = None

    @property
    def severity(self) -> str:
        """The severity: "error" or "warning".

        With an error, scores would be wrong or refused. With a warning, they may not mean what
        they seem to.
        """
        return KINDS[self.kind][0]

    @property
    def meaning(self) -> str:
        """The meaning of the kind in a sentence."""
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
        if self.hint:
            plain["hint"] = self.hint
        return plain


@dataclass(frozen=True)
class Finder:
    """Makes the findings of one source; `line` returns the file and line of a query."""

    source: str
    line: Callable[[str], tuple[str, int] | None] = lambda _: None

    def findings(
        self,
        kind: str,
        rows: pl.DataFrame,
        describe: Callable[[Row], Problem],
        hint: str | None = None,
    ) -> Iterator[Finding]:
        """Yield one finding if there are rows; their order does not change the examples."""
        if not rows.height:
            return
        place = [name for name in _PLACE if name in rows.columns]
        other_columns = [name for name in rows.columns if name not in place]
        first = rows.sort([*place, *other_columns], nulls_last=True).head(MAX_EXAMPLES)
        examples = [self._example(row, describe(row)) for row in first.iter_rows(named=True)]
        yield Finding(kind, self.source, rows.height, tuple(examples), hint)

    def _example(self, row: Row, description: Problem) -> Example:
        problem, hint = (description, None) if isinstance(description, str) else description
        query = row.get("query_id")
        path, line = (None if query is None else self.line(query)) or (None, None)
        place = {name: row.get(name) for name in _PLACE}
        return Example(problem, hint, path, line, **place)


def skipped_findings(reading: TolerantReading) -> Iterator[Finding]:
    """Yield the parts of the file that could not be read and were skipped."""
    kind = attrgetter("kind")
    for name, group in groupby(sorted(reading.notes, key=kind), key=kind):
        notes = list(group)
        examples = [
            Example(note.error.problem, path=note.error.path, line=note.error.line, **note.place)
            for note in notes[:MAX_EXAMPLES]
        ]
        yield Finding(name, "gold", len(notes), tuple(examples), notes[0].error.hint)


def query_findings(finder: Finder, reading: TolerantReading) -> Iterator[Finding]:
    """Yield queries without gold, and queries without a relevant item."""
    gold = reading.gold
    tables = (gold.judgments, gold.spans, gold.evidence)
    with_gold = [table["query_id"] for table in tables if table is not None]
    # A query has gold even if all its spans were skipped.
    skipped = [note.place["query_id"] for note in reading.notes if "start" in note.place]
    with_gold.append(pl.Series("query_id", skipped, pl.String))
    empty = {*gold.query_ids_judged, *gold.empty_spans}
    with_gold.append(gold.unanswerable)  # has nothing to find on purpose
    yield from finder.findings(
        "no-gold",
        gold.query_ids.to_frame().join(pl.concat(with_gold).to_frame(), on="query_id", how="anti"),
        lambda row: (
            "its list of judgments or spans is empty"
            if row["query_id"] in empty
            else "it has no judgments, spans or evidence"
        ),
    )
    yield from finder.findings(
        "unanswerable-with-gold",
        gold.unanswerable_with_gold,
        lambda row: f"answerable is false, but it has {counted(row['n'], row['kind'])}",
        "remove answerable, or remove the judgments, spans and evidence texts of the query",
    )
    judgments = gold.judgments.filter(~pl.col("query_id").is_in(gold.unanswerable.implode()))
    grades = judgments.group_by("query_id").agg(pl.len(), pl.col("grade").max())
    yield from finder.findings(
        "nothing-relevant",
        grades.filter(pl.col("grade") <= 0),
        lambda row: f"{counted(row['len'], 'judgment')}, none above 0",
    )


def judgment_findings(finder: Finder, judgments: pl.DataFrame) -> Iterator[Finding]:
    """Yield items that were judged more than once for a query."""
    grades = judgments.group_by("query_id", "item_id").agg(pl.col("grade").sort())
    yield from finder.findings(
        "judged-twice",
        grades.filter(pl.col("grade").list.len() > 1),
        lambda row: f"its grades are {', '.join(map(str, row['grade']))}",
    )


def evidence_findings(finder: Finder, evidence: pl.DataFrame) -> Iterator[Finding]:
    """Yield empty and repeated evidence texts; case and white space are ignored."""
    normalized = [" ".join(text.split()).lower() for text in evidence["text"]]
    texts = evidence.select("query_id", pl.Series("text", normalized, pl.String))
    yield from finder.findings(
        "empty-evidence", texts.filter(pl.col("text") == ""), lambda _: "the text is empty"
    )
    counts = texts.filter(pl.col("text") != "").group_by("query_id", "text").len()
    yield from finder.findings(
        "duplicate-evidence",
        counts.filter(pl.col("len") > 1),
        lambda row: f"{row['text'][:40]!r} appears {row['len']} times",
    )


def missing_evidence_findings(
    finder: Finder, evidence: pl.DataFrame, corpus: Corpus | None, chunks: pl.DataFrame | None
) -> Iterator[Finding]:
    """Yield the evidence texts that `locate` does not find in the corpus, or else in the chunks."""
    if corpus is not None:
        missing = missing_texts(evidence["text"], corpus)
        hint = (
            "compare the text with the documents, and check whether one is absent from the corpus"
        )
        yield from _missing_evidence(
            finder, "evidence-not-in-corpus", evidence, missing, "document", hint
        )
        evidence = evidence.filter(~pl.col("text").is_in(missing.texts.implode()))
    if chunks is None or "text" not in chunks.columns or chunks["text"].null_count():
        return
    # Ids of chunks may be missing or repeated, so the rows are numbered.
    numbers = pl.int_range(chunks.height, eager=True).cast(pl.String)
    chunk_texts = Corpus(pl.DataFrame({"doc_id": numbers, "text": chunks["text"]}))
    missing = missing_texts(evidence["text"], chunk_texts)
    hint = (
        "a text that is split between two chunks is in neither: use larger or overlapping chunks, "
        "or shorter evidence texts"
    )
    yield from _missing_evidence(finder, "evidence-not-in-chunks", evidence, missing, "chunk", hint)


def _missing_evidence(
    finder: Finder,
    kind: str,
    evidence: pl.DataFrame,
    missing: MissingTexts,
    noun: str,
    hint: str,
) -> Iterator[Finding]:
    if not missing.similar:
        hint = (
            f"{hint}; only exact copies were searched for, ignoring white space, because a search "
            "for similar texts would take long"
        )
    or_similar = ", nor a similar text" if missing.similar else ""

    def describe(row: Row) -> str:
        text = " ".join(row["text"].split())
        short = text if len(text) <= _MAX_TEXT_LENGTH else f"{text[:_MAX_TEXT_LENGTH]}…"
        return f"no {noun} contains {short!r}{or_similar}"

    rows = evidence.select("query_id", "text").unique()
    rows = rows.filter(pl.col("text").is_in(missing.texts.implode()))
    yield from finder.findings(kind, rows, describe, hint)


def span_findings(
    finder: Finder, spans: pl.DataFrame, corpus: Corpus | None, unit: str
) -> Iterator[Finding]:
    """Yield spans of gold with wrong offsets, empty or blank spans, and overlaps."""
    explanation = explain_offsets([spans], unit, corpus)
    if explanation is not None:
        yield Finding(
            "systematic-offsets",
            finder.source,
            explanation.count,
            (),
            f"{explanation}; {explanation.hint}",
        )
    if corpus is None:
        yield from _length_findings(finder, spans, unit)
        texts = spans["text"].to_list()
    else:
        located = locate_rows(spans, corpus, unit)
        yield from _fault_findings(finder, spans, located, corpus, unit)
        texts = _texts(located, corpus)
    empty = spans["start"] == spans["end"]
    yield from finder.findings(
        "zero-length", spans.filter(empty), lambda _: "it ends where it starts"
    )
    blank = pl.Series([text is not None and not text.strip() for text in texts], dtype=pl.Boolean)
    yield from finder.findings(
        "blank", spans.filter(~empty & blank), lambda _: "it contains only white space"
    )
    yield from _overlap_findings(finder, spans.filter(~empty))


def _length_findings(finder: Finder, spans: pl.DataFrame, unit: str) -> Iterator[Finding]:
    """Yield the spans that do not have the length of their text."""
    length = text_lengths(unit)
    span_length = pl.col("end") - pl.col("start")
    yield from finder.findings(
        "text-mismatch",
        spans.with_columns(length.alias("length")).filter(pl.col("length") != span_length),
        lambda row: (
            f"the span has a length of {row['end'] - row['start']}, its text of {row['length']}"
        ),
    )


def _texts(located: LocatedRows, corpus: Corpus) -> list[str | None]:
    """Return the text of each span in the corpus; if the span is wrong, its text in gold."""
    rows = located.table.select("doc_id", "start", "end", "text").iter_rows()
    return [
        text if is_faulty else corpus[doc_id][start:end]
        for (doc_id, start, end, text), is_faulty in zip(rows, located.faulty, strict=True)
    ]


def _overlap_findings(finder: Finder, spans: pl.DataFrame) -> Iterator[Finding]:
    """Yield each span that overlaps an earlier one of the same query and document."""
    document = ["query_id", "doc_id"]
    ordered = spans.select(*document, "start", "end").sort(*document, "start", "end")
    latest_end = pl.col("end").cum_max().shift(1).over(document)

    def describe(row: Row) -> str:
        same_document = [pl.col(name) == row[name] for name in document]
        overlapping = ordered.filter(
            *same_document, pl.col("start") < row["end"], pl.col("end") > row["start"]
        )
        start, end = overlapping.select("start", "end").row(0)
        if (start, end) == (row["start"], row["end"]):
            return "the same span appears twice"
        return f"it overlaps [{start}, {end})"

    yield from finder.findings("overlap", ordered.filter(pl.col("start") < latest_end), describe)


def place_findings(
    finder: Finder, table: pl.DataFrame, corpus: Corpus, unit: str
) -> Iterator[Finding]:
    """Yield chunks or results with wrong offsets, or with a document that does not exist."""
    located = locate_rows(table, corpus, unit)
    if "doc_id" in table.columns:
        unknown = ~table["doc_id"].is_in(corpus.doc_ids.implode()).fill_null(value=True)
        located.faults["unknown-document"] = unknown.to_numpy() | located.faults.get(
            "unknown-document", np.zeros(table.height, np.bool_)
        )
    yield from _fault_findings(finder, table, located, corpus, unit)


def _fault_findings(
    finder: Finder, table: pl.DataFrame, located: LocatedRows, corpus: Corpus, unit: str
) -> Iterator[Finding]:
    for kind, rows in located.faults.items():
        describe = partial(describe_fault, kind, corpus=corpus, unit=unit)
        yield from finder.findings(kind, table.filter(rows), describe)


def shared_query_findings(finder: Finder, gold: pl.Series, run: pl.Series) -> Iterator[Finding]:
    """Yield the queries that only gold or only the run contains."""
    gold_ids, run_ids = (ids.alias("query_id").to_frame() for ids in (gold, run))
    missing = gold_ids.join(run_ids, on="query_id", how="anti")
    unknown = run_ids.join(gold_ids, on="query_id", how="anti")
    if unknown.height and unknown.height == run_ids.height:
        hint = f"queries of gold are {', '.join(map(repr, _example_ids(gold)))}"
        yield from finder.findings("no-shared-query", unknown, lambda _: "it is not in gold", hint)
        return
    yield from finder.findings(
        "missing-query", missing, lambda _: "it is scored as if nothing was retrieved"
    )
    yield from finder.findings("unknown-query", unknown, lambda _: "it is left out")


class GoldIds:
    """The ids in a column of gold; those that the corpus, chunks or runs contain are removed."""

    def __init__(self, rows: pl.DataFrame, column: str) -> None:
        self._column = column
        self._missing = rows.group_by(column).agg(pl.col("query_id").min())
        self._total = self._missing.height
        self._examples: list[str] = []
        self._has_collection = False
        self._has_results = False

    def remove(self, ids: pl.Series) -> None:
        """Remove the ids of the corpus or of the chunks, which contain every correct id."""
        self._has_collection = True
        self._remove(ids)

    def remove_retrieved(self, results: pl.DataFrame, *columns: str) -> None:
        """Remove the ids that a run returned. A run need not return every correct id."""
        for name in columns:
            if name in results.columns:
                self._has_results = True
                self._remove(results[name])

    def _remove(self, ids: pl.Series) -> None:
        known = ids.alias(self._column).to_frame()
        self._missing = self._missing.join(known, on=self._column, how="anti")
        self._examples = self._examples or _example_ids(ids)

    def findings(self, finder: Finder, unknown: str, noun: str) -> Iterator[Finding]:
        """Yield the ids that were not removed.

        That is an error if the corpus or the chunks were given, or if runs contain none of them.
        """
        if self._has_collection:
            kind = unknown
        elif not self._has_results:
            return
        elif self._missing.height == self._total:
            kind = f"no-{noun}-retrieved"
        else:
            kind = f"{noun}-not-retrieved"
        hint = None
        if self._examples:
            examples = ", ".join(map(repr, self._examples))
            hint = f"existing ids are {examples}, …; check whether ids are spelled differently"
        yield from finder.findings(
            kind, self._missing, lambda _: "no corpus, chunk or run contains this id", hint
        )


def _example_ids(ids: pl.Series) -> list[str]:
    return ids.drop_nulls().unique().sort().head(MAX_EXAMPLES).to_list()
