"""The items that a built-in retriever searches: documents of a corpus, or their chunks.

Items are sorted by id, so that neither the index nor the results depend on the order of the corpus.
The order is descending, because trec_eval orders items of equal scores so: a list has the same
order in every format.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from karat import chunk
from karat.checks import did_you_mean
from karat.data.chunks import Chunks
from karat.data.corpus import Corpus
from karat.data.data_file import path_of
from karat.errors import InputError, counted, for_example
from karat.live.retrievers.callables import qualified_name
from karat.live.retrievers.resolve import import_object

CHUNKERS: dict[str, Callable[..., Chunks]] = {
    "fixed": chunk.fixed,
    "recursive": chunk.recursive,
    "sentences": chunk.sentences,
    "markdown": chunk.markdown,
}
Scored = tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]
"""Positions of items, the best first, and their scores."""


@dataclass(frozen=True)
class Chunking:
    """How documents are split into items; without a chunker, each document is one item."""

    chunker: Any = None
    size: int | None = None
    overlap: int | None = None

    def __post_init__(self) -> None:
        options = {"chunk_size": self.size, "chunk_overlap": self.overlap}
        given = [name for name, value in options.items() if value is not None]
        if given and self.chunker is None:
            raise InputError(
                "this option needs a chunker",
                field=given[0],
                hint='add --chunker recursive (chunker="recursive")',
            )
        allowed = self._allowed
        for name in given:
            if name.removeprefix("chunk_") not in allowed:
                raise InputError(
                    f"the chunker {self.name} has no such option",
                    field=name,
                    hint="remove the option, or use --chunker fixed",
                )

    @property
    def _allowed(self) -> set[str]:
        if isinstance(self.chunker, str) and ":" not in self.chunker:
            if self.chunker not in CHUNKERS:
                names = [*CHUNKERS, "package.module:name"]
                similar = did_you_mean(self.chunker, names) or ""
                raise InputError(
                    f"unknown chunker {self.chunker!r}",
                    field="chunker",
                    hint=f"{similar} choose one of {', '.join(names)}".lstrip(),
                )
            return set(inspect.signature(CHUNKERS[self.chunker]).parameters)
        return set()

    @property
    def name(self) -> str:
        """The name of the chunker."""
        return self.chunker if isinstance(self.chunker, str) else qualified_name(self.chunker)

    def as_settings(self) -> dict[str, Any]:
        """Return what was set, for the header of a run."""
        if self.chunker is None:
            return {}
        settings = {"chunker": self.name, "chunk_size": self.size, "chunk_overlap": self.overlap}
        return {name: value for name, value in settings.items() if value is not None}

    def split(self, corpus: Corpus) -> pl.DataFrame:
        """Return the items (id, doc_id, start, end, text); documents have no start and end."""
        if self.chunker is None:
            documents = corpus.documents
            return documents.select(pl.col("doc_id").alias("id"), "doc_id", "text")
        if isinstance(self.chunker, str) and self.chunker in CHUNKERS:
            options = {"size": self.size, "overlap": self.overlap}
            given = {name: value for name, value in options.items() if value is not None}
            try:
                chunks = CHUNKERS[self.chunker](corpus, **given)
            except InputError as error:
                if error.field in options:  # here, these parameters have other names
                    error.field = f"chunk_{error.field}"
                raise
        else:
            splitter = self.chunker
            if isinstance(splitter, str):
                splitter = import_object(splitter, "chunker")
            chunks = chunk.with_splitter(corpus, splitter)
        return chunks.frame.rename({"item_id": "id"})


@dataclass(frozen=True)
class Items:
    """The items of a corpus, sorted by id in descending order."""

    columns: Mapping[str, list[Any]]
    """The values of id, doc_id and text, and of start and end for chunks.

    Lists, because a table takes longer to return a few rows.
    """
    titles: Mapping[str, str | None]
    """The titles of documents, by document id."""
    source: str
    """The path of the corpus, or its size."""
    chunking: Chunking

    @classmethod
    def of(cls, source: Any, chunking: Chunking) -> Items:
        """Read a corpus and split it; raise an error if there is nothing to search in it."""
        corpus = Corpus.open(source)
        path = path_of(source)
        _require_texts(corpus, path, titles_count=chunking.chunker is None)
        frame = chunking.split(corpus)
        if not frame.height:
            raise InputError(
                "the chunker returned no chunks", path=path, hint="use another chunker"
            )
        titles: dict[str, str | None] = {}
        if "title" in corpus.documents.columns:
            titles = dict(zip(corpus.doc_ids, corpus.documents["title"], strict=True))
        about = path or counted(len(corpus), "document")
        columns = frame.sort("id", descending=True).to_dict(as_series=False)
        return cls(columns, titles, about, chunking)

    @property
    def texts(self) -> Iterator[str]:
        """What is indexed: the title of the document, if there is one, and the text of the item."""
        for doc_id, text in zip(self.columns["doc_id"], self.columns["text"], strict=True):
            title = self.titles.get(doc_id)
            yield f"{title} {text}" if title else text

    def __len__(self) -> int:
        return len(self.columns["id"])

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of the ids and the indexed texts."""
        digest = hashlib.sha256()
        for item_id, text in zip(self.columns["id"], self.texts, strict=True):
            for part in (item_id.encode(), text.encode()):
                digest.update(len(part).to_bytes(8, "little"))
                digest.update(part)
        return digest.hexdigest()

    @property
    def about(self) -> str:
        """The corpus and the number of items, for the list of cached indexes."""
        return f"{self.source}, {counted(len(self), 'item')}"

    def results(
        self, positions: npt.NDArray[np.int64], scores: npt.NDArray[np.float64]
    ) -> list[dict[str, Any]]:
        """Return items with their scores, as in a run file."""
        columns = self.columns
        return [
            {name: values[position] for name, values in columns.items()} | {"score": score}
            for position, score in zip(positions.tolist(), scores.tolist(), strict=True)
        ]


def best(scores: npt.NDArray[Any], count: int) -> npt.NDArray[np.int64]:
    """Return the positions of the highest scores, the best first; equal scores by position.

    >>> best(np.array([0.5, 0.9, 0.1, 0.9]), 3).tolist()
    [1, 3, 0]
    """
    positions = np.arange(scores.size)
    if count < scores.size:
        lowest = np.partition(scores, scores.size - count)[scores.size - count]
        positions = np.flatnonzero(scores >= lowest)
    order = np.argsort(-scores[positions], kind="stable")
    return positions[order[:count]].astype(np.int64)


def _require_texts(corpus: Corpus, path: str | None, *, titles_count: bool) -> None:
    if not len(corpus):
        raise InputError("the corpus is empty", path=path, hint="add documents to the corpus")
    text = pl.col("text")
    if titles_count and "title" in corpus.documents.columns:
        text = text + pl.col("title").fill_null("")
    is_blank = text.str.strip_chars() == ""
    blank = corpus.documents.filter(is_blank)["doc_id"].sort()
    if blank.len():
        count = blank.len()
        verb = "has" if count == 1 else "have"
        raise InputError(
            f"{counted(count, 'document')} {verb} no text{for_example(count, repr(blank[0]))}",
            path=path,
            field="text",
            hint="remove such documents from the corpus, or add their text",
        )
