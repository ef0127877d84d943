"""BM25: rank items by the words that they share with the query, by bm25s or tantivy."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import numpy.typing as npt

from karat import checks
from karat.cache import IndexKey, load_or_build
from karat.errors import InputError
from karat.live.instrumentation import stage
from karat.live.retrievers.built_in import BuiltIn
from karat.live.retrievers.items import Chunking, Items, Scored, best
from karat.live.retrievers.words import Words, import_bm25s
from karat.steps import tracked

if TYPE_CHECKING:
    from karat.live.retrievers.tantivy import TantivyIndex

K1, B = 0.9, 0.4
"""The defaults of Pyserini, with which the published BM25 baselines (BEIR) were computed."""
BM25S, TANTIVY = "bm25s", "tantivy"
_ARRAYS = ("data", "indices", "indptr")
_VOCABULARY = "vocabulary.json"
_FORMAT = 2  # raised when the tokenisation or the stored files change


@dataclass(frozen=True)
class BM25Options:
    """Which engine scores the items, with which constants, and which words are indexed."""

    engine: str
    k1: float
    b: float
    stemmer: str
    stop_words: str

    @classmethod
    def of(
        cls, engine: str, k1: float | None, b: float | None, stemmer: str, stop_words: str
    ) -> BM25Options:
        """Check the options; constants that are None become those of the engine."""
        if checks.one_of(engine, "engine", (BM25S, TANTIVY)) == TANTIVY:
            from karat.live.retrievers import tantivy

            tantivy.require_tantivy()
            for name, value, fixed in (("k1", k1, tantivy.K1), ("b", b, tantivy.B)):
                if value not in (None, fixed):
                    raise InputError(
                        f"tantivy always uses {fixed}, got {value}",
                        field=name,
                        hint=f'remove {name}, or use --engine bm25s (engine="bm25s")',
                    )
            return cls(engine, tantivy.K1, tantivy.B, stemmer, stop_words)
        k1, b = K1 if k1 is None else k1, B if b is None else b
        if checks.finite(k1, "k1") < 0:
            raise InputError(
                f"must be at least 0, got {k1}", field="k1", hint="usual values are from 0.5 to 2"
            )
        return cls(engine, float(k1), float(checks.share(b, "b")), stemmer, stop_words)

    def words(self) -> Words:
        """Return what splits texts into words."""
        return Words(self.stemmer, self.stop_words)

    def as_settings(self) -> dict[str, Any]:
        """Return the options, for the header of a run, where "engine" is a search engine."""
        options = asdict(self)
        return {"bm25_engine": options.pop("engine"), **options}


class BM25(BuiltIn):
    """Rank documents or chunks by BM25.

    The formula is that of Lucene: the sum over the words of the query of
    `idf · tf / (tf + k1 · (1 - b + b · length / average length))`, where
    `idf = ln(1 + (N - n + 0.5) / (n + 0.5))`, for a word that n of N items contain. Items that have
    no word of the query are not returned. Items of equal scores are ordered by id, descending, as
    in trec_eval.

    Texts are normalised (NFKC, lower case) and split into words: runs of letters, digits and marks;
    each Chinese character and each Hiragana is one word. Stop words are removed, and the others
    are stemmed. The title of a document is indexed with its text, and with each of its chunks.

    Parameters
    ----------
    corpus : path, dict, table or Corpus
        The documents: a folder of text files, a BEIR folder, a JSON Lines, CSV or Parquet file, or
        anything else that `Corpus.open` takes.
    chunker : str or splitter, optional
        How documents are split: "fixed", "recursive", "sentences" or "markdown" (`karat.chunk`),
        the name of a splitter (`package.module:name`), or a splitter that
        `karat.chunk.with_splitter` takes. By default, an item is a whole document, and its id is
        the document id.
    chunk_size : int, optional
        Maximum number of characters per chunk. Default: that of the chunker (800).
    chunk_overlap : int, optional
        Number of characters that chunks share; only "fixed" has this option.
    engine : {"bm25s", "tantivy"}, default "bm25s"
        "bm25s" keeps the index in memory and has exact scores. "tantivy"
        (`pip install 'karat[tantivy]'`) keeps it on disk, for large corpora. It rounds lengths
        above 40 words down, as Lucene does, and has fixed constants.
    k1 : float, optional
        How much repeated words count; 0 ignores repetition. Default: 0.9; tantivy always uses 1.2.
    b : float, optional
        How much long items are penalised, from 0 (not at all) to 1. Default: 0.4; tantivy always
        uses 0.75.
    stemmer : str, default "english"
        A language or algorithm of Snowball ("german", "porter", …), or "none".
    stop_words : str, default "english"
        The language of the words to ignore ("german", "french", …), or "none".
    cache : bool, default True
        Whether the index is stored in the cache folder, and reused.

    Examples
    --------
    >>> from karat.live.retrievers import BM25
    >>> faq = {"pay": "Pay by card or invoice.", "refund": "Refunds are paid in 14 days."}
    >>> results = BM25(faq, cache=False).search("when is a refund paid?")
    >>> results[0]["id"], round(results[0]["score"], 3)
    ('refund', 0.71)
    """

    kind = "bm25"

    def __init__(
        self,
        corpus: Any,
        *,
        chunker: Any = None,
        chunk_size: int | None = None,
        chunk_overlap: int | None = None,
        engine: str = BM25S,
        k1: float | None = None,
        b: float | None = None,
        stemmer: str = "english",
        stop_words: str = "english",
        cache: bool = True,
    ) -> None:
        chunking = Chunking(chunker, chunk_size, chunk_overlap)
        options = BM25Options.of(engine, k1, b, stemmer, stop_words)
        self._words = options.words()
        self.items = Items.of(corpus, chunking)
        self.settings = self.common_settings() | options.as_settings()
        self._index = load_index(self.items, self._words, options, use_cache=cache)

    def search(self, query: str, top_k: int = 20) -> list[dict[str, Any]]:
        """Return the best items for a query.

        Parameters
        ----------
        query : str
            The text of the query.
        top_k : int, default 20
            Number of items to return.

        Returns
        -------
        list of dict
            Items with id, doc_id, text and score, and start and end for chunks; the best first.

        Examples
        --------
        >>> from karat.live.retrievers import BM25
        >>> BM25({"a": "one two", "b": "two"}, cache=False).search("one")[0]["id"]
        'a'
        """
        with stage("retrieval"):
            positions, scores = self.find(query, top_k)
            return self.items.results(positions, scores)

    def find(self, query: str, count: int) -> Scored:
        """Return the positions and the scores of the best items."""
        return self._index.find(self._words(query), count)


class BM25Index:
    """The scores of all words in all items, as bm25s computes them in advance."""

    def __init__(self, vocabulary: list[str], scores: dict[str, Any]) -> None:
        bm25s = import_bm25s()
        self.vocabulary = vocabulary
        self.scores = scores
        self._numbers = {word: number for number, word in enumerate(vocabulary)}
        self._engine = bm25s.BM25()
        self._engine.scores = scores
        self._engine.nonoccurrence_array = None

    @classmethod
    def build(cls, items: Items, words: Words, k1: float, b: float) -> BM25Index:
        """Index all items."""
        bm25s = import_bm25s()
        numbers: dict[str, int] = {}
        rows = [
            [numbers.setdefault(word, len(numbers)) for word in words(text)]
            for text in tracked(items.texts, "indexing texts", len(items))
        ]
        if not numbers:  # only stop words
            return cls([], _no_scores(len(items)))
        engine = bm25s.BM25(k1=k1, b=b, method="lucene")
        engine.index((rows, numbers), create_empty_token=False, show_progress=False)
        return cls(list(numbers), engine.scores)

    @classmethod
    def load(cls, folder: Path) -> BM25Index:
        """Read an index from a folder."""
        vocabulary = msgspec.json.decode((folder / _VOCABULARY).read_bytes(), type=list[str])
        scores: dict[str, Any] = {name: np.load(folder / f"{name}.npy") for name in _ARRAYS}
        scores["num_docs"] = int(np.load(folder / "num_docs.npy"))
        return cls(vocabulary, scores)

    def save(self, folder: Path) -> None:
        """Write the index to a folder."""
        (folder / _VOCABULARY).write_bytes(msgspec.json.encode(self.vocabulary))
        for name in (*_ARRAYS, "num_docs"):
            np.save(folder / f"{name}.npy", self.scores[name])

    def find(self, words: list[str], count: int) -> Scored:
        """Return the best items that have at least one of the words."""
        numbers = [self._numbers[word] for word in words if word in self._numbers]
        if not numbers:
            return np.empty(0, np.int64), np.empty(0)
        scores: npt.NDArray[np.float32] = self._engine.get_scores_from_ids(numbers)
        matching = np.flatnonzero(scores > 0)
        positions = matching[best(scores[matching], count)]
        return positions, scores[positions].astype(np.float64)


def load_index(
    items: Items, words: Words, options: BM25Options, *, use_cache: bool
) -> BM25Index | TantivyIndex:
    """Return the index of the items, from the cache if it is there."""
    versions = {name: version(name) for name in (options.engine, "bm25s", "PyStemmer", "numpy")}
    settings = {"format": _FORMAT, "items": items.digest, **options.as_settings(), **versions}
    key = IndexKey("bm25", items.about, settings)
    if options.engine == TANTIVY:
        from karat.live.retrievers.tantivy import TantivyIndex

        return load_or_build(
            key,
            build=lambda: TantivyIndex.build(items.texts, words),
            save=lambda index, folder: index.save(folder),
            load=TantivyIndex.load,
            use_cache=use_cache,
        )
    return load_or_build(
        key,
        build=lambda: BM25Index.build(items, words, options.k1, options.b),
        save=lambda index, folder: index.save(folder),
        load=BM25Index.load,
        use_cache=use_cache,
    )


def _no_scores(count: int) -> dict[str, Any]:
    data = np.empty(0, np.float32)
    indices, indptr = np.empty(0, np.int32), np.zeros(1, np.int32)
    return {"data": data, "indices": indices, "indptr": indptr, "num_docs": count}
