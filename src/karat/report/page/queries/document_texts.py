"""The texts that a page shows: those of documents, and those of retrieved items, each once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import polars as pl

from karat.data.chunks import Chunks
from karat.data.corpus import Corpus
from karat.evaluation.list_rows import Row
from karat.evaluation.loaded_run import LoadedRun
from karat.match.highlights import KnownText

_SIDES: tuple[Literal["left", "right"], ...] = ("left", "right")


class ChunkTexts:
    """The texts of retrieved items; runs and queries that share a text refer to one number."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def number(self, text: str) -> int:
        """Return the number of a text, which is added if it is new."""
        return self._numbers.setdefault(text, len(self._numbers))

    @property
    def all(self) -> list[str]:
        """All texts, in the order of their numbers."""
        return list(self._numbers)


@dataclass(frozen=True)
class DocumentTexts:
    """The texts of documents, as far as a corpus or a chunk table provides them."""

    corpus: Corpus | None
    chunks: Chunks | None
    _by_document: dict[str, KnownText] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, opened: LoadedRun) -> DocumentTexts:
        """Return the texts of the corpus and the chunks that a run was scored with."""
        return cls(opened.session.corpus, opened.plan.chunks)

    def length(self, document: str) -> int | None:
        """Return the length of a document, or None if its whole text is unknown."""
        if self.corpus is None or document not in self.corpus:
            return None
        return len(self.corpus[document])

    def known(self, document: str) -> KnownText:
        """Return the known parts of the text of a document."""
        if document not in self._by_document:
            self._by_document[document] = KnownText().joined(self._parts(document))
        return self._by_document[document]

    def _parts(self, document: str) -> list[tuple[int, str]]:
        if self.corpus is not None and document in self.corpus:
            return [(0, self.corpus[document])]
        if self.chunks is None or "text" not in self.chunks.frame.columns:
            return []
        doc_ids = self._chunks_by_document["doc_id"]
        begin, end = (doc_ids.search_sorted(document, side) for side in _SIDES)
        return text_parts(self._chunks_by_document[begin:end].iter_rows(named=True))

    @cached_property
    def _chunks_by_document(self) -> pl.DataFrame:
        """All chunks, sorted by document for binary search."""
        assert self.chunks is not None
        return self.chunks.frame.drop_nulls("doc_id").sort("doc_id", maintain_order=True)

    def text(self, item: Row) -> str | None:
        """Return the text of an item or span: its own, that of its offsets, or the document."""
        if item["text"] is not None:
            own_text: str = item["text"]
            return own_text
        if item["start"] is not None:
            return self.known(item["doc_id"]).text(item["start"], item["end"])
        document = item["doc_id"] or item["item"]
        if self.corpus is None or document not in self.corpus:
            return None
        return self.corpus[document]


def text_parts(items: Iterable[Row]) -> list[tuple[int, str]]:
    """Return start and text of the items whose text is as long as their offsets say."""
    return [
        (item["start"], item["text"])
        for item in items
        if item["text"]
        and item["start"] is not None
        and len(item["text"]) == item["end"] - item["start"]
    ]
