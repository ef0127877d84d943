"""Conversion of spans to code points, and checks of spans against the texts of documents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from karat.arrays import Flags, Ints
from karat.data.corpus import Corpus
from karat.data.offsets import UNITS, bounds, code_points
from karat.errors import InputError

Row = dict[str, Any]
_BEYOND_16_BITS = r"[\x{10000}-\x{10FFFF}]"
_LEAST_SHARE = 0.95  # a cause must explain this share of the spans
_LEAST_SPANS = 2  # a single span could be wrong for any reason
_CONTEXT_LENGTH = 16  # characters shown before and after the first difference
_UNIT_NAMES = {"codepoint": "code points", "utf16": "UTF-16 code units", "utf8": "UTF-8 bytes"}


@dataclass(frozen=True)
class Cause:
    """A way to count offsets, and how to convert them to half-open spans in code points."""

    name: str
    title: str
    start: int = 0
    end: int = 0
    unit: str = "codepoint"

    @property
    def remedy(self) -> str:
        """The options of `karat convert` that convert such offsets."""
        if self.unit != "codepoint":
            return f"--offsets {self.unit} --corpus DIR"
        shifts = (("--shift-start", self.start), ("--shift-end", self.end))
        return " ".join(f"{option} {amount}" for option, amount in shifts if amount)


INCLUSIVE_END = Cause("inclusive-end", "ends are 1 too low (inclusive ends)", end=1)
FROM_ONE = Cause("one-based", "starts are 1 too high (1-based starts)", start=-1)
BOTH_FROM_ONE = Cause("one-based-half-open", "offsets are 1 too high (1-based offsets)", -1, -1)
UTF16 = Cause("utf16", "offsets look like UTF-16 code units", unit="utf16")
UTF8 = Cause("utf8", "offsets look like UTF-8 bytes", unit="utf8")
CAUSES = (INCLUSIVE_END, FROM_ONE, BOTH_FROM_ONE, UTF16, UTF8)


@dataclass(frozen=True)
class OffsetExplanation:
    """The causes that may explain why spans do not fit their texts, and for how many spans."""

    causes: tuple[Cause, ...]
    count: int
    total: int

    def __str__(self) -> str:
        count = f"{self.count:,} of {self.total:,}"
        if self.count == self.total:
            count = f"all {self.total:,}"
        causes = ", or ".join(f"{count} {cause.title}" for cause in self.causes)
        return f"either {causes}" if len(self.causes) > 1 else causes

    @property
    def hint(self) -> str:
        """A hint that says how to convert the offsets."""
        if len(self.causes) > 1:
            return "run `karat validate --corpus DIR` to find out which"
        return f"convert them: `karat convert GOLD FIXED {self.causes[0].remedy}`"


def explain_offsets(
    tables: Iterable[pl.DataFrame], unit: str, corpus: Corpus | None = None
) -> OffsetExplanation | None:
    """Return the likely cause if the spans of one or more tables do not fit their texts, or None.

    Without a corpus, only the lengths of texts and spans are compared, so that there may be
    several causes.
    """
    declared = Cause("declared", "", unit=unit)
    counts, total = Counter[Cause](), 0
    for spans in tables:
        with_text = spans.filter(pl.col("text").is_not_null() & (pl.col("text") != ""))
        if corpus is not None:
            with_text = with_text.filter(pl.col("doc_id").is_in(corpus.doc_ids.implode()))
        total += with_text.height
        for cause in (declared, *CAUSES):
            counts[cause] += _count_fitting(with_text, cause, corpus)
    if total < _LEAST_SPANS:
        return None
    fitting = counts.pop(declared)
    if fitting == total:
        return None
    best = max(counts.values())
    if best <= fitting or best < _LEAST_SHARE * total:
        return None
    causes = tuple(cause for cause in CAUSES if counts[cause] == best)
    if corpus is not None:
        causes = causes[:1]
    return OffsetExplanation(causes, best, total)


@dataclass(frozen=True)
class WrongLengths:
    """How many spans differ in length from their texts, and the first one by query id."""

    count: int
    query: str = ""
    text: str = ""

    @classmethod
    def of(cls, spans: pl.DataFrame, unit: str) -> WrongLengths:
        """Count the spans of a table that differ in length from their texts."""
        lengths = pl.col("end") - pl.col("start")
        differing = spans.filter(lengths != text_lengths(unit)).select("query_id", "text")
        if not differing.height:
            return cls(0)
        return cls(differing.height, *differing.row(differing["query_id"].arg_min() or 0))

    @classmethod
    def merged(cls, parts: Iterable[WrongLengths]) -> WrongLengths:
        """Return the counts of all parts of a table."""
        nonzero = [part for part in parts if part.count]
        if not nonzero:
            return cls(0)
        first = min(nonzero, key=lambda part: part.query)
        return replace(first, count=sum(part.count for part in nonzero))


def _count_fitting(spans: pl.DataFrame, cause: Cause, corpus: Corpus | None) -> int:
    """Count the spans that fit their texts if the offsets were counted in this way."""
    if corpus is None:
        lengths = text_lengths(cause.unit)
        fits = (pl.col("end") + cause.end) - (pl.col("start") + cause.start) == lengths
        return int(spans.select(fits.sum()).item())
    columns = (spans[name].to_list() for name in ("doc_id", "start", "end", "text"))
    return sum(
        _fits(corpus[doc_id], (start + cause.start, end + cause.end), text, cause.unit)
        for doc_id, start, end, text in zip(*columns, strict=True)
    )


def text_lengths(unit: str) -> pl.Expr:
    """Return the lengths of the column `text` in a unit."""
    text = pl.col("text").str
    lengths = {
        "codepoint": text.len_chars(),
        "utf16": text.len_chars() + text.count_matches(_BEYOND_16_BITS),
        "utf8": text.len_bytes(),
    }
    return lengths[unit].cast(pl.Int64)


def _fits(document: str, offsets: Sequence[int], text: str, unit: str) -> bool:
    start, end = code_points(document, np.array(offsets), unit).tolist()
    return _is_at(text, document, start, end)


@dataclass(frozen=True)
class Fault:
    """A row with invalid offsets, and the kind of its fault."""

    kind: str
    row: Row


@dataclass(frozen=True, eq=False)
class LocatedRows:
    """A table with offsets in code points, and the rows with invalid offsets by kind of fault.

    A faulty row keeps its original offsets, and has only one kind of fault.
    """

    table: pl.DataFrame
    faults: dict[str, Flags]

    @property
    def faulty(self) -> Flags:
        """For each row, whether it has a fault of any kind."""
        faulty: Flags = np.logical_or.reduce(list(self.faults.values()))
        return faulty

    @property
    def first_fault(self) -> Fault | None:
        """The first fault of the first faulty query by id."""
        if not self.faults or not self.faulty.any():
            return None
        rows = pl.Series(np.flatnonzero(self.faulty))
        index = rows[self.table["query_id"].gather(rows).arg_min() or 0]
        kind = next(kind for kind, is_faulty in self.faults.items() if is_faulty[index])
        return Fault(kind, self.table.row(index, named=True))


def locate_rows(table: pl.DataFrame, corpus: Corpus, unit: str) -> LocatedRows:
    """Convert the offsets of a table to code points, and check them against the documents.

    Rows without a start are ignored. If there is a column `text`, it is compared with the document.
    """
    if not {"start", "end"} <= set(table.columns):
        return LocatedRows(table, {})
    has_offsets = table["start"].is_not_null().to_numpy()
    start, end = (table[name].fill_null(0).to_numpy().copy() for name in ("start", "end"))
    doc_ids = _doc_ids(table)
    length, wide = _document_sizes(doc_ids, corpus)
    unknown = has_offsets & (length < 0)
    if unit != "codepoint":
        _convert_offsets(doc_ids, np.flatnonzero(has_offsets & wide), start, end, corpus, unit)
    inside = has_offsets & ~unknown & ((start < 0) | (end < 0))
    past = has_offsets & ~unknown & ~inside & (end > length)
    within = has_offsets & ~unknown & ~inside & ~past
    differs = _text_differs(table, within, start, end, corpus)
    valid = within & ~differs
    is_valid = pl.lit(pl.Series(valid))
    converted = [
        pl.when(is_valid).then(pl.lit(pl.Series(offsets))).otherwise(name).alias(name)
        for name, offsets in (("start", start), ("end", end))
    ]
    return LocatedRows(
        table.with_columns(converted),
        {
            "unknown-document": unknown,
            "past-end": past,
            "inside-character": inside,
            "text-mismatch": differs,
        },
    )


def in_code_points(table: pl.DataFrame, corpus: Corpus, unit: str, field: str) -> pl.DataFrame:
    """Return a table with offsets in code points, or raise an error for the first faulty query."""
    located = locate_rows(table, corpus, unit)
    if (fault := located.first_fault) is not None:
        raise fault_error(fault, [table], corpus, unit, field)
    return located.table


def fault_error(
    fault: Fault, tables: Iterable[pl.DataFrame], corpus: Corpus, unit: str, field: str
) -> InputError:
    """Return the error for the first fault of a table, which may be given as several parts."""
    row = fault.row
    problem, row_hint = describe_fault(fault.kind, row, corpus, unit)
    hints = [row_hint, "run `karat validate` for a list of all problems"]
    if fault.kind != "unknown-document" and "text" in row:
        explanation = explain_offsets(tables, unit, corpus)
        if explanation is not None:
            hints = [str(explanation), explanation.hint]
    doc_id = row.get("doc_id")
    document = "" if doc_id is None else f"document {doc_id!r}, "
    return InputError(
        f"query {row['query_id']!r}, {document}[{row['start']}, {row['end']}): {problem}",
        field=field,
        hint="; ".join(filter(None, hints)),
        query=row["query_id"],
    )


def describe_fault(kind: str, row: Row, corpus: Corpus, unit: str) -> tuple[str, str | None]:
    """Return what is wrong with the offsets of a row, and a hint about the likely cause."""
    if kind == "unknown-document":
        if row.get("doc_id") is None:
            return "the document id is missing", "add a doc_id"
        first_ids = ", ".join(map(repr, corpus.doc_ids.sort().head(3)))
        return "the document is not in the corpus", f"the corpus has {first_ids or 'no documents'}"
    document = corpus[row["doc_id"]]
    hint = _likely_cause(document, row)
    if kind == "past-end":
        return f"the document ends at {bounds(document, unit)[-1]} ({_UNIT_NAMES[unit]})", hint
    if kind == "inside-character":
        return f"the span starts or ends inside a character (offsets in {_UNIT_NAMES[unit]})", hint
    start, end = _to_code_points(document, row, unit)
    document_text, span_text = _shorten_to_difference(document[start:end], row["text"])
    return f"the document has {document_text} here, but the given text is {span_text}", hint


def _doc_ids(table: pl.DataFrame) -> pl.Series:
    if "doc_id" in table.columns:
        return table["doc_id"]
    return pl.Series("doc_id", [None] * table.height, pl.String)


def _document_sizes(doc_ids: pl.Series, corpus: Corpus) -> tuple[Ints, Flags]:
    """Return for each row the length of its document (-1 if unknown), and if it is not ASCII.

    All units are equal in ASCII, so that offsets are converted only for other documents.
    """
    text = pl.col("text")
    sizes = corpus.documents.select(
        "doc_id",
        text.str.len_chars().cast(pl.Int64).alias("length"),
        (text.str.len_chars() < text.str.len_bytes()).alias("wide"),
    )
    joined = doc_ids.to_frame().join(sizes, on="doc_id", how="left", maintain_order="left")
    return (
        joined["length"].fill_null(-1).to_numpy(),
        joined["wide"].fill_null(value=False).to_numpy(),
    )


def _convert_offsets(
    doc_ids: pl.Series, rows: Ints, start: Ints, end: Ints, corpus: Corpus, unit: str
) -> None:
    """Replace offsets in another unit by code points, one document at a time."""
    groups = pl.DataFrame([doc_ids.gather(rows), pl.Series("row", rows)]).group_by("doc_id").all()
    for doc_id, group in zip(groups["doc_id"], groups["row"], strict=True):
        indices = group.to_numpy()
        start[indices] = code_points(corpus[doc_id], start[indices], unit)
        end[indices] = code_points(corpus[doc_id], end[indices], unit)


def _text_differs(
    table: pl.DataFrame, within: Flags, start: Ints, end: Ints, corpus: Corpus
) -> Flags:
    """Return for each row whether its text differs from the text in the document."""
    differs = np.zeros(table.height, np.bool_)
    if "text" not in table.columns:
        return differs
    rows = np.flatnonzero(within & table["text"].is_not_null().to_numpy())
    if not rows.size:  # a run may have no column doc_id
        return differs
    spans = zip(
        table["doc_id"].gather(rows),
        start[rows].tolist(),
        end[rows].tolist(),
        table["text"].gather(rows),
        strict=True,
    )
    differs[rows] = [corpus[doc_id][begin:stop] != text for doc_id, begin, stop, text in spans]
    return differs


def _likely_cause(document: str, row: Row) -> str | None:
    """Return a hint about how the offsets were probably counted, given the text of the span."""
    text, start, end = row.get("text"), row["start"], row["end"]
    if not text:
        return None
    for unit in UNITS:
        if _is_at(text, document, *_to_code_points(document, row, unit)):
            return (
                f'the offsets look like {_UNIT_NAMES[unit]}: add "offsets": "{unit}" to the header '
                "of the .jsonl file"
            )
    unix_document, unix_text = document.replace("\r\n", "\n"), text.replace("\r\n", "\n")
    if _is_at(unix_text, unix_document, start, end):
        return (
            r"the offsets count \r\n as one character, but karat counts two: recompute the offsets"
        )
    if _is_at(unix_text.replace("\n", "\r\n"), unix_document.replace("\n", "\r\n"), start, end):
        return r"the offsets count every line break as \r\n: use the line breaks of the document"
    for cause in (INCLUSIVE_END, FROM_ONE, BOTH_FROM_ONE):
        if _is_at(text, document, start + cause.start, end + cause.end):
            return f"the text is at [{start + cause.start}, {end + cause.end})"
    nearest = _nearest_occurrence(text, document, start)
    if nearest is None:
        return None
    return f"the text is at [{nearest}, {nearest + len(text)}) in code points"


def _nearest_occurrence(text: str, document: str, start: int) -> int | None:
    """Return the start of the occurrence of a text that is nearest to an offset."""
    before, after = document.rfind(text, 0, start + len(text)), document.find(text, start)
    occurrences = [offset for offset in (before, after) if offset >= 0]
    return min(occurrences, key=lambda offset: abs(offset - start), default=None)


def _is_at(text: str, document: str, start: int, end: int) -> bool:
    """Return whether the span of a document is inside the document and is equal to a text."""
    return 0 <= start <= end <= len(document) and document[start:end] == text


def _to_code_points(document: str, row: Row, unit: str) -> tuple[int, int]:
    start, end = code_points(document, np.array([row["start"], row["end"]]), unit).tolist()
    return start, end


def _shorten_to_difference(left: str, right: str) -> tuple[str, str]:
    """Shorten two texts to the part around their first difference."""
    length = min(len(left), len(right))
    first = next((index for index in range(length) if left[index] != right[index]), length)
    return _window(left, first), _window(right, first)


def _window(text: str, center: int) -> str:
    begin = max(0, center - _CONTEXT_LENGTH)
    stop = center + _CONTEXT_LENGTH
    before = "…" if begin > 0 else ""
    after = "…" if stop < len(text) else ""
    return f"{before}{text[begin:stop]!r}{after}"
