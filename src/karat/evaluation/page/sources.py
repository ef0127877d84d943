"""Where the texts of items and documents come from: the run, the table of chunks, the corpus."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import polars as pl

from karat.data.chunks import Chunks
from karat.data.corpus import Corpus
from karat.evaluation.opened import Opened
from karat.evaluation.page.shown import Shown
from karat.match.described import told
from karat.match.highlights import Known
from karat.report.calculation import Row

_COLUMNS = {
    "score": pl.Float64,
    "doc_id": pl.String,
    "start": pl.Int64,
    "end": pl.Int64,
    "text": pl.String,
}

_SIDES: tuple[Literal["left", "right"], ...] = ("left", "right")


@dataclass(frozen=True)
class Texts:
    """What documents say, as far as that is known beside the run itself."""

    corpus: Corpus | None
    chunks: Chunks | None
    _by_document: dict[str, Known] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, opened: Opened) -> Texts:
        """Take the documents and the chunks that a run was scored with."""
        return cls(opened.session.corpus, opened.plan.chunks)

    def length(self, document: str) -> int | None:
        """Return how long a document is, where all of it is known."""
        if self.corpus is None or document not in self.corpus:
            return None
        return len(self.corpus[document])

    def known(self, document: str) -> Known:
        """Return what is known of the text of a document."""
        if document not in self._by_document:
            self._by_document[document] = Known().joined(self._parts(document))
        return self._by_document[document]

    def _parts(self, document: str) -> list[tuple[int, str]]:
        if self.corpus is not None and document in self.corpus:
            return [(0, self.corpus[document])]
        if self.chunks is None or "text" not in self.chunks.frame.columns:
            return []
        begin, end = (self._sorted["doc_id"].search_sorted(document, side) for side in _SIDES)
        return parts(self._sorted[begin:end].iter_rows(named=True))

    @cached_property
    def _sorted(self) -> pl.DataFrame:
        """All chunks in the order of their documents: none is looked for among all of them."""
        assert self.chunks is not None
        return self.chunks.frame.drop_nulls("doc_id").sort("doc_id", maintain_order=True)

    def text(self, placed: Row) -> str | None:
        """Return the text of an item or a span: its own, what stands in its place, or all."""
        if placed["text"] is not None:
            own: str = placed["text"]
            return own
        if placed["start"] is not None:
            return self.known(placed["doc_id"]).text(placed["start"], placed["end"])
        whole = placed["doc_id"] or placed["item"]
        return self.corpus[whole] if self.corpus is not None and whole in self.corpus else None


def parts(placed: Iterable[Row]) -> list[tuple[int, str]]:
    """Return the start and the text of what is placed, where its text fills its place."""
    return [
        (each["start"], each["text"])
        for each in placed
        if each["text"]
        and each["start"] is not None
        and len(each["text"]) == each["end"] - each["start"]
    ]


def results_of(run: Shown, numbers: Sequence[int], texts: Texts) -> dict[int, list[Row]]:
    """Return the items of some queries that are shown: rank, item, score, place and text."""
    places = run.places.filter(pl.col("query").is_in(numbers))
    items = run.opened.run.results[places["row"].to_numpy()]
    items = told(items, texts.chunks, "doc_id", "start", "end", "text")
    lacking = [
        pl.lit(None, kind).alias(name) for name, kind in _COLUMNS.items() if name not in items
    ]
    items = items.with_columns(lacking).select(*_COLUMNS)
    listed: dict[int, list[Row]] = {}
    rows = zip(
        places.select("query", "rank", "label").iter_rows(),
        items.iter_rows(named=True),
        strict=True,
    )
    for (query, rank, label), known in rows:
        item = {"rank": rank, "item": label} | known
        listed.setdefault(query, []).append(item | {"text": texts.text(item)})
    return listed
