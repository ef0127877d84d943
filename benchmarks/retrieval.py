"""Built-in retrievers: the same documents and queries for karat, bm25s and rank_bm25."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

QUERIES, TOP_K = 100, 100
SCIFACT = Path(__file__).parents[2] / "shared" / "data" / "scifact"

Documents = dict[str, str]
Timed = Callable[[], Any]


@dataclass(frozen=True)
class Collection:
    """A collection of documents."""

    label: str
    documents: int

    @property
    def name(self) -> str:
        return f"{self.documents:,} {self.label}"

    @property
    def is_missing(self) -> bool:
        return self is ABSTRACTS and not SCIFACT.exists()


ABSTRACTS, GENERATED = Collection("abstracts", 5_183), Collection("generated", 100_000)
COLLECTIONS = (ABSTRACTS, GENERATED)


def load(collection: Collection) -> tuple[Documents, list[str]]:
    """Return the documents and the queries."""
    return _abstracts() if collection is ABSTRACTS else _generated(collection.documents)


def _abstracts() -> tuple[Documents, list[str]]:
    documents = {}
    with gzip.open(SCIFACT / "corpus.jsonl.gz") as lines:
        for line in lines:
            row = json.loads(line)
            documents[str(row["doc_id"])] = " ".join([row["title"], *row["abstract"]])
    topics = (SCIFACT / "topics.tsv").read_text(encoding="utf-8").splitlines()
    return documents, [topic.partition("\t")[2] for topic in topics[:QUERIES]]


def _generated(count: int) -> tuple[Documents, list[str]]:
    """Generate texts of 50 to 250 words whose frequencies follow Zipf's law."""
    import numpy as np

    random = np.random.default_rng(20_240_302)
    letters = np.array(list("etaoinshrdlcumwfgypbvk"))
    words = ["".join(random.choice(letters, length)) for length in random.integers(3, 12, 50_000)]

    def text(length: int) -> str:
        positions = (len(words) ** random.random(length)).astype(int) - 1
        return " ".join(words[position] for position in positions)

    documents = {f"d{number}": text(random.integers(50, 250)) for number in range(count)}
    return documents, [text(8) for _ in range(QUERIES)]


def _create(kind: str, documents: Documents, *, cache: bool = False) -> Any:
    from karat.live.retrievers import BM25, Dense, Hybrid

    if kind == "tantivy":
        return BM25(documents, engine="tantivy", cache=cache)
    return {"bm25": BM25, "dense": Dense, "hybrid": Hybrid}[kind](documents, cache=cache)


def _index(kind: str, documents: Documents) -> Timed:
    """Build an index without the cache: texts are split, stemmed or embedded, and sorted by id."""
    # karat imports libraries when it needs them, so a small index imports them before the clock.
    _create(kind, {"a": "first text", "b": "second text"})
    return lambda: _create(kind, documents)


def _search(kind: str, documents: Documents, queries: list[str]) -> Timed:
    retriever = _create(kind, documents)
    return lambda: [retriever.search(query, TOP_K) for query in queries]


def karat_index(documents: Documents, _: list[str]) -> Timed:
    return _index("bm25", documents)


def karat_search(documents: Documents, queries: list[str]) -> Timed:
    return _search("bm25", documents, queries)


def karat_load(documents: Documents, _: list[str]) -> Timed:
    """Load an index from the cache: hash the documents, check the files, read them."""
    import os
    import tempfile

    os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp()
    _create("bm25", documents, cache=True)
    return lambda: _create("bm25", documents, cache=True)


def karat_tantivy_index(documents: Documents, _: list[str]) -> Timed:
    return _index("tantivy", documents)


def karat_tantivy_search(documents: Documents, queries: list[str]) -> Timed:
    return _search("tantivy", documents, queries)


def karat_dense_index(documents: Documents, _: list[str]) -> Timed:
    return _index("dense", documents)


def karat_dense_search(documents: Documents, queries: list[str]) -> Timed:
    return _search("dense", documents, queries)


def karat_hybrid_index(documents: Documents, _: list[str]) -> Timed:
    return _index("hybrid", documents)


def karat_hybrid_search(documents: Documents, queries: list[str]) -> Timed:
    return _search("hybrid", documents, queries)


def bm25s_index(documents: Documents, _: list[str]) -> Timed:
    """Index as the documentation of bm25s shows, with karat's stemmer and constants."""
    import bm25s
    import Stemmer

    stemmer = Stemmer.Stemmer("english")

    def timed() -> Any:
        tokens = bm25s.tokenize(
            list(documents.values()), stopwords="en", stemmer=stemmer, show_progress=False
        )
        engine = bm25s.BM25(k1=0.9, b=0.4)
        engine.index(tokens, show_progress=False)
        return engine

    return timed


def bm25s_search(documents: Documents, queries: list[str]) -> Timed:
    import bm25s
    import Stemmer

    stemmer = Stemmer.Stemmer("english")
    engine = bm25s_index(documents, queries)()

    def timed() -> Any:
        results = []
        for query in queries:
            tokens = bm25s.tokenize([query], stopwords="en", stemmer=stemmer, show_progress=False)
            results.append(engine.retrieve(tokens, k=TOP_K, show_progress=False))
        return results

    return timed


def rank_bm25_index(documents: Documents, _: list[str]) -> Timed:
    """Index as the documentation of rank_bm25 shows: words between spaces, no stemming."""
    from rank_bm25 import BM25Okapi

    return lambda: BM25Okapi([text.split() for text in documents.values()])


def rank_bm25_search(documents: Documents, queries: list[str]) -> Timed:
    names = list(documents)
    engine = rank_bm25_index(documents, queries)()
    return lambda: [engine.get_top_n(query.split(), names, n=TOP_K) for query in queries]


FUNCTIONS = (
    karat_index,
    karat_search,
    karat_load,
    karat_tantivy_index,
    karat_tantivy_search,
    karat_dense_index,
    karat_dense_search,
    karat_hybrid_index,
    karat_hybrid_search,
    bm25s_index,
    bm25s_search,
    rank_bm25_index,
    rank_bm25_search,
)
