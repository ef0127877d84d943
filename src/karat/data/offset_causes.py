"""Why the offsets of a whole golden set do not fit its texts: one cause for all spans."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from karat.data.corpus import Corpus
from karat.data.offsets import code_points

_BEYOND_16_BITS = r"[\x{10000}-\x{10FFFF}]"
_MOST = 0.95  # the share of the spans that a cause must explain
_FEWEST = 2  # of a single span, the cause may be anything


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
class Explained:
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
) -> Explained | None:
    """Return what explains the offsets of spans that do not fit their texts, if one cause does.

    Without the documents only the lengths of texts and spans are compared, which several causes
    may explain.
    """
    known = spans.filter(pl.col("text").is_not_null() & (pl.col("text") != ""))
    if corpus is not None:
        known = known.filter(pl.col("doc_id").is_in(corpus.doc_ids.implode()))
    if known.height < _FEWEST:
        return None
    declared = Cause("declared", "", unit=unit)
    counts = {cause: _count(known, cause, corpus) for cause in (declared, *CAUSES)}
    fitting = counts.pop(declared)
    if fitting == known.height:
        return None
    best = max(counts.values())
    if best <= fitting or best < _MOST * known.height:
        return None
    causes = tuple(cause for cause, count in counts.items() if count == best)
    return Explained(causes[:1] if corpus is not None else causes, best, known.height)


def _count(spans: pl.DataFrame, cause: Cause, corpus: Corpus | None) -> int:
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
