"""Findings of a validation, and how rows with a problem become a finding with examples."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import Any

import polars as pl

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
