"""The engine tantivy for BM25: an index on disk, for corpora whose index is too large for memory.

tantivy writes an index only to a folder. It is built in a temporary folder, which is copied to the
cache, and removed with the retriever or at the end of the process.
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from karat.errors import InputError
from karat.live.retrievers.items import Scored, best
from karat.live.retrievers.words import Words

K1, B = 1.2, 0.75
"""The constants of tantivy, which cannot be changed."""
_FACTOR = K1 + 1  # tantivy multiplies all scores by it; Lucene and bm25s do not
_WRITER_BYTES = 4_000_000_000  # the most that tantivy allows; one segment as long as it suffices
_WORDS, _POSITION = "words", "position"
_FREQUENCIES = "freq"  # what the index stores: how often an item has a word, but not where
_LOCKS = ".tantivy-*.lock"


def require_tantivy() -> None:
    """Raise an error if tantivy is not installed."""
    if find_spec("tantivy") is None:
        raise InputError(
            "the engine tantivy is not installed",
            field="engine",
            hint="pip install 'karat[tantivy]', or use --engine bm25s (engine=\"bm25s\")",
        )


class TantivyIndex:
    """An index in a folder. A search reads from disk what the operating system has not cached."""

    def __init__(self, folder: Path) -> None:
        import tantivy

        index = tantivy.Index.open(str(folder))
        self._folder = folder
        self._schema = index.schema
        self._searcher = index.searcher()

    @classmethod
    def build(cls, texts: Iterable[str], words: Words) -> TantivyIndex:
        """Index texts. One thread writes, so that the index is always the same."""
        import tantivy

        folder = Path(tempfile.mkdtemp(prefix="karat-"))
        try:
            index = tantivy.Index(_schema(), path=str(folder))
            writer = index.writer(heap_size=_WRITER_BYTES, num_threads=1)
            for position, text in enumerate(texts):
                document = tantivy.Document()
                # No word contains white space, at which tantivy splits this text again.
                document.add_text(_WORDS, " ".join(words(text)))
                document.add_unsigned(_POSITION, position)
                writer.add_document(document)
            writer.commit()
            writer.wait_merging_threads()
            built = cls(folder)
        except BaseException as error:
            shutil.rmtree(folder, ignore_errors=True)
            if not isinstance(error, (OSError, ValueError)):
                raise
            raise InputError(
                f"tantivy cannot write its index: {error}",
                path=folder,
                hint="free some space, or set TMPDIR to another folder",
            ) from error
        weakref.finalize(built, shutil.rmtree, folder, ignore_errors=True)
        return built

    @classmethod
    def load(cls, folder: Path) -> TantivyIndex:
        """Read an index from a folder."""
        return cls(folder)

    def save(self, folder: Path) -> None:
        """Copy the index to a folder."""
        shutil.copytree(
            self._folder, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns(_LOCKS)
        )

    def find(self, words: list[str], count: int) -> Scored:
        """Return the best items that have at least one of the words."""
        from tantivy import Occur, Query

        if not words:
            return np.empty(0, np.int64), np.empty(0)
        terms = [Query.term_query(self._schema, _WORDS, word, _FREQUENCIES) for word in words]
        hits = self._hits(Query.boolean_query([(Occur.Should, term) for term in terms]), count)
        found = self._searcher.fast_field_values(_POSITION, [address for _, address in hits])
        positions = np.array(found, np.int64)
        scores = np.array([score for score, _ in hits], np.float64) / _FACTOR
        by_position = np.argsort(positions)
        positions, scores = positions[by_position], scores[by_position]
        first = best(scores, count)
        return positions[first], scores[first]

    def _hits(self, query: Any, count: int) -> list[Any]:
        """Return at least `count` hits, and all whose scores are equal to that of the last.

        tantivy orders equal scores by their place in the index, which is that of the items only
        within a segment.
        """
        limit = count + 1
        while True:
            hits = self._searcher.search(query, limit, count=False).hits
            if len(hits) < limit or hits[-1][0] < hits[count - 1][0]:
                return hits
            limit *= 4


def _schema() -> Any:
    from tantivy import SchemaBuilder

    builder = SchemaBuilder()
    builder.add_text_field(_WORDS, tokenizer_name="whitespace", index_option=_FREQUENCIES)
    builder.add_unsigned_field(_POSITION, fast=True)
    return builder.build()
