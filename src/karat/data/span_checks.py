"""Places in documents: brought into code points, and checked against the text that stands there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from karat.data.corpus import Corpus
from karat.data.offsets import UNITS, bounds, code_points
from karat.errors import InputError

_BEYOND_16_BITS = r"[\x{10000}-\x{10FFFF}]"
_LEAST_SHARE = 0.95  # the share of the spans that a cause must explain
_LEAST_SPANS = 2  # of a single span, the cause may be anything


@dataclass(frozen=True)
class Cause:
    """A way to count offsets, and what turns them into half-open code points."""

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


INCLUSIVE_END = Cause("inclusive-end", "ends are one short: they look inclusive", end=1)
FROM_ONE = Cause("one-based", "starts are one too high: they look 1-based", start=-1)
BOTH_FROM_ONE = Cause("one-based-half-open", "offsets are one too high: they look 1-based", -1, -1)
UTF16 = Cause("utf16", "offsets look like UTF-16 code units", unit="utf16")
UTF8 = Cause("utf8", "offsets look like UTF-8 bytes", unit="utf8")
CAUSES = (INCLUSIVE_END, FROM_ONE, BOTH_FROM_ONE, UTF16, UTF8)


@dataclass(frozen=True)
class OffsetExplanation:
    """Causes that explain why spans do not fit their texts, and for how many of them."""

    causes: tuple[Cause, ...]
    count: int
    total: int

    def __str__(self) -> str:
        share = f"{self.count:,} of {self.total:,}"
        if self.count == self.total:
            share = f"all {self.total:,}"
        return "; or ".join(f"{share} {cause.title}" for cause in self.causes)

    @property
    def hint(self) -> str:
        """How to convert the offsets."""
        if len(self.causes) > 1:
            return "karat validate --corpus DIR finds out which"
        return f"convert them: karat convert GOLD FIXED {self.causes[0].remedy}"


def explain_offsets(
    spans: pl.DataFrame, unit: str, corpus: Corpus | None = None
) -> OffsetExplanation | None:
    """Return what explains the offsets of spans that do not fit their texts, if one cause does.

    Without the documents only the lengths of texts and spans are compared, which several causes
    may explain.
    """
    known = spans.filter(pl.col("text").is_not_null() & (pl.col("text") != ""))
    if corpus is not None:
        known = known.filter(pl.col("doc_id").is_in(corpus.doc_ids.implode()))
    if known.height < _LEAST_SPANS:
        return None
    declared = Cause("declared", "", unit=unit)
    counts = {cause: _count_fitting(known, cause, corpus) for cause in (declared, *CAUSES)}
    fitting = counts.pop(declared)
    if fitting == known.height:
        return None
    best = max(counts.values())
    if best <= fitting or best < _LEAST_SHARE * known.height:
        return None
    causes = tuple(cause for cause, count in counts.items() if count == best)
    return OffsetExplanation(causes[:1] if corpus is not None else causes, best, known.height)


def _count_fitting(spans: pl.DataFrame, cause: Cause, corpus: Corpus | None) -> int:
    """Count the spans that fit their text if offsets were counted in this way."""
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
    """Return the lengths of the column `text`, counted in a unit."""
    text = pl.col("text").str
    lengths = {
        "codepoint": text.len_chars(),
        "utf16": text.len_chars() + text.count_matches(_BEYOND_16_BITS),
        "utf8": text.len_bytes(),
    }
    return lengths[unit].cast(pl.Int64)


def _fits(document: str, offsets: Sequence[int], text: str, unit: str) -> bool:
    start, end = code_points(document, np.array(offsets), unit).tolist()
    return 0 <= start <= end <= len(document) and document[start:end] == text


Flags = NDArray[np.bool_]
Ints = NDArray[np.int64]
Row = dict[str, Any]

_CONTEXT_LENGTH = 16  # characters shown before and after the first that differs
_UNIT_NAMES = {"codepoint": "code points", "utf16": "UTF-16 code units", "utf8": "UTF-8 bytes"}


@dataclass(frozen=True, eq=False)
class LocatedRows:
    """A table with its places in code points, and the rows whose place does not hold, by kind.

    A row that is at fault keeps the numbers it had, and is at fault in one way only.
    """

    table: pl.DataFrame
    faults: dict[str, Flags]

    @property
    def faulty(self) -> Flags:
        """Which rows are at fault in any way."""
        faulty: Flags = np.logical_or.reduce(list(self.faults.values()))
        return faulty


def locate_rows(table: pl.DataFrame, corpus: Corpus, unit: str) -> LocatedRows:
    """Bring the places of a table into code points of their documents.

    Rows without a start are passed over; where there is a `text`, it is held against the document.
    """
    if not {"start", "end"} <= set(table.columns):
        return LocatedRows(table, {})
    has_place = table["start"].is_not_null().to_numpy()
    start, end = (table[name].fill_null(0).to_numpy().copy() for name in ("start", "end"))
    doc_ids = _doc_ids(table)
    length, wide = _document_sizes(doc_ids, corpus)
    unknown = has_place & (length < 0)
    if unit != "codepoint":
        _convert_offsets(doc_ids, np.flatnonzero(has_place & wide), start, end, corpus, unit)
    inside = has_place & ~unknown & ((start < 0) | (end < 0))
    past = has_place & ~unknown & ~inside & (end > length)
    within = has_place & ~unknown & ~inside & ~past
    differs = _text_differs(table, within, start, end, corpus)
    sound = within & ~differs
    moved = [
        pl.when(pl.lit(pl.Series(sound))).then(pl.lit(pl.Series(now))).otherwise(name).alias(name)
        for name, now in (("start", start), ("end", end))
    ]
    return LocatedRows(
        table.with_columns(moved),
        {
            "unknown-document": unknown,
            "past-end": past,
            "inside-character": inside,
            "text-mismatch": differs,
        },
    )


def in_code_points(table: pl.DataFrame, corpus: Corpus, unit: str, field: str) -> pl.DataFrame:
    """Return a table with its places in code points, or raise for the first that does not hold."""
    found = locate_rows(table, corpus, unit)
    if not found.faults or not found.faulty.any():
        return found.table
    at = int(found.faulty.argmax())
    kind = next(kind for kind, rows in found.faults.items() if rows[at])
    row = table.row(at, named=True)
    problem, hint = describe_fault(kind, row, corpus, unit)
    more = "karat validate lists all that is wrong"
    if kind != "unknown-document" and "text" in table.columns:
        explained = explain_offsets(table, unit, corpus)
        if explained is not None:
            hint, more = f"{explained}; {explained.hint}", ""
    doc_id = row.get("doc_id")
    document = "" if doc_id is None else f"document {doc_id!r}, "
    raise InputError(
        f"query {row['query_id']!r}, {document}[{row['start']}, {row['end']}): {problem}",
        field=field,
        hint="; ".join(part for part in (hint, more) if part),
    )


def describe_fault(kind: str, row: Row, corpus: Corpus, unit: str) -> tuple[str, str | None]:
    """Say what is wrong with the place of a row, and what may have happened."""
    if kind == "unknown-document":
        if row.get("doc_id") is None:
            return "it does not say in which document", "give it a doc_id"
        first = ", ".join(map(repr, corpus.doc_ids.sort().head(3)))
        return "the corpus has no such document", f"it has {first or 'none'}"
    document = corpus[row["doc_id"]]
    hint = _likely_cause(document, row)
    if kind == "past-end":
        return f"the document ends at {bounds(document, unit)[-1]} ({_UNIT_NAMES[unit]})", hint
    if kind == "inside-character":
        return f"in {_UNIT_NAMES[unit]}, it begins or ends inside a character", hint
    start, end = _to_code_points(document, row, unit)
    there, given = _shorten_to_difference(document[start:end], row["text"])
    return f"the document has {there} and the text is {given}", hint


def _doc_ids(table: pl.DataFrame) -> pl.Series:
    if "doc_id" in table.columns:
        return table["doc_id"]
    return pl.Series("doc_id", [None] * table.height, pl.String)


def _document_sizes(doc_ids: pl.Series, corpus: Corpus) -> tuple[Ints, Flags]:
    """Return how long each row's document is, -1 where there is none, and whether it is not ASCII.

    In ASCII all units are the same, so only documents that are not need a second look.
    """
    text = pl.col("text")
    sizes = corpus.documents.select(
        "doc_id",
        text.str.len_chars().cast(pl.Int64).alias("length"),
        (text.str.len_chars() < text.str.len_bytes()).alias("wide"),
    )
    known = doc_ids.to_frame().join(sizes, on="doc_id", how="left", maintain_order="left")
    return (
        known["length"].fill_null(-1).to_numpy(),
        known["wide"].fill_null(value=False).to_numpy(),
    )


def _convert_offsets(
    doc_ids: pl.Series, rows: Ints, start: Ints, end: Ints, corpus: Corpus, unit: str
) -> None:
    """Put code points in the place of other offsets, document by document."""
    groups = pl.DataFrame([doc_ids.gather(rows), pl.Series("row", rows)]).group_by("doc_id").all()
    for doc_id, group in zip(groups["doc_id"], groups["row"], strict=True):
        at = group.to_numpy()
        start[at] = code_points(corpus[doc_id], start[at], unit)
        end[at] = code_points(corpus[doc_id], end[at], unit)


def _text_differs(
    table: pl.DataFrame, within: Flags, start: Ints, end: Ints, corpus: Corpus
) -> Flags:
    """Tell which rows have another text than their document has in that place."""
    differs = np.zeros(table.height, np.bool_)
    if "text" not in table.columns:
        return differs
    rows = np.flatnonzero(within & table["text"].is_not_null().to_numpy())
    if not rows.size:  # a run may have no column of documents at all
        return differs
    told = zip(
        table["doc_id"].gather(rows),
        start[rows].tolist(),
        end[rows].tolist(),
        table["text"].gather(rows),
        strict=True,
    )
    differs[rows] = [corpus[doc_id][begin:stop] != text for doc_id, begin, stop, text in told]
    return differs


def _likely_cause(document: str, row: Row) -> str | None:
    """Say how the offsets of a text that is not where it should be may have been counted."""
    text, start, end = row.get("text"), row["start"], row["end"]
    if not text:
        return None
    for other in UNITS:
        if _is_at(text, document, *_to_code_points(document, row, other)):
            return f'it fits in {_UNIT_NAMES[other]}: declare "offsets": "{other}"'
    bare, one = document.replace("\r\n", "\n"), text.replace("\r\n", "\n")
    if _is_at(one, bare, start, end):
        return r"it fits where \r\n is one character: count both"
    if _is_at(one.replace("\n", "\r\n"), bare.replace("\n", "\r\n"), start, end):
        return r"it fits where every newline is \r\n: count what the document has"
    for cause in (INCLUSIVE_END, FROM_ONE, BOTH_FROM_ONE):
        if _is_at(text, document, start + cause.start, end + cause.end):
            return f"it fits at [{start + cause.start}, {end + cause.end})"
    at = _nearest_occurrence(text, document, start)
    return None if at is None else f"the text is at [{at}, {at + len(text)}) in code points"


def _nearest_occurrence(text: str, document: str, start: int) -> int | None:
    """Return where the occurrence of a text begins that is nearest to an offset."""
    before, after = document.rfind(text, 0, start + len(text)), document.find(text, start)
    found = [at for at in (before, after) if at >= 0]
    return min(found, key=lambda at: abs(at - start), default=None)


def _is_at(text: str, document: str, start: int, end: int) -> bool:
    """Tell whether a text fills a place; a slice alone would cut off what is past the end."""
    return 0 <= start <= end <= len(document) and document[start:end] == text


def _to_code_points(document: str, row: Row, unit: str) -> tuple[int, int]:
    start, end = code_points(document, np.array([row["start"], row["end"]]), unit).tolist()
    return start, end


def _shorten_to_difference(there: str, given: str) -> tuple[str, str]:
    """Shorten two texts to where they first differ."""
    alike = (a == b for a, b in zip(there, given, strict=False))
    first = next((at for at, same in enumerate(alike) if not same), min(len(there), len(given)))
    return _window(there, first), _window(given, first)


def _window(text: str, first: int) -> str:
    begin = max(0, first - _CONTEXT_LENGTH)
    stop = first + _CONTEXT_LENGTH
    return f"{'…' * (begin > 0)}{text[begin:stop]!r}{'…' * (stop < len(text))}"
