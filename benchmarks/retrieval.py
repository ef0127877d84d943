"""BM25: the same documents and queries for karat (with both engines), bm25s and rank_bm25."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

QUERIES, TOP_K = 100, 100
SCIFACT = Path(__file__).parents[2] / "shared" / "data" / "scifact"


@dataclass(frozen=True)
class Size:
    """A corpus: its name in the names of tasks, and its number of documents."""

    label: str
    documents: int

    @property
    def name(self) -> str:
        return f"{self.documents:,} {self.label}"

    @property
    def absent(self) -> bool:
        return self is ABSTRACTS and not SCIFACT.exists()


ABSTRACTS, GENERATED = Size("abstracts", 5_183), Size("generated", 100_000)
SIZES = (ABSTRACTS, GENERATED)


def corpus(size: Size) -> tuple[dict[str, str], list[str]]:
    """Return the documents and the queries, always the same."""
    return _abstracts() if size is ABSTRACTS else _generated(size.documents)


def _abstracts() -> tuple[dict[str, str], list[str]]:
    documents = {}
    with gzip.open(SCIFACT / "corpus.jsonl.gz") as lines:
        for line in lines:
            row = json.loads(line)
            documents[str(row["doc_id"])] = " ".join([row["title"], *row["abstract"]])
    topics = (SCIFACT / "topics.tsv").read_text(encoding="utf-8").splitlines()
    return documents, [topic.partition("\t")[2] for topic in topics[:QUERIES]]


def _generated(count: int) -> tuple[dict[str, str], list[str]]:
    """Write texts of 50 to 250 words, which are as frequent as Zipf's law says."""
    import numpy as np

    random = np.random.default_rng(20_240_302)
    letters = np.array(list("etaoinshrdlcumwfgypbvk"))
    words = ["".join(random.choice(letters, length)) for length in random.integers(3, 12, 50_000)]

    def text(length: int) -> str:
        places = (len(words) ** random.random(length)).astype(int) - 1
        return " ".join(words[place] for place in places)

    documents = {f"d{number}": text(random.integers(50, 250)) for number in range(count)}
    return documents, [text(8) for _ in range(QUERIES)]


def karat_index(documents: dict[str, str], _: list[str]) -> Callable[[], Any]:
    """Index from a dict, without the cache; split, stemmed and sorted by id."""
    # karat imports these when it needs them; imports are timed apart.
    import bm25s  # noqa: F401
    import polars  # noqa: F401
    import Stemmer  # noqa: F401

    from karat.live.retrievers import BM25

    return lambda: BM25(documents, cache=False)


def karat_load(documents: dict[str, str], _: list[str]) -> Callable[[], Any]:
    """Load a cached index: hash the documents, check the files, read them."""
    import os
    import tempfile

    from karat.live.retrievers import BM25

    os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp()
    BM25(documents)
    return lambda: BM25(documents)


def karat_search(documents: dict[str, str], queries: list[str]) -> Callable[[], Any]:
    """Search one query after the other."""
    from karat.live.retrievers import BM25

    retriever = BM25(documents, cache=False)
    return lambda: [retriever.search(query, TOP_K) for query in queries]


def karat_tantivy_index(documents: dict[str, str], _: list[str]) -> Callable[[], Any]:
    """Index with tantivy in a temporary folder, without the cache."""
    import polars  # noqa: F401
    import Stemmer  # noqa: F401
    import tantivy  # noqa: F401

    from karat.live.retrievers import BM25

    return lambda: BM25(documents, engine="tantivy", cache=False)


def karat_tantivy_search(documents: dict[str, str], queries: list[str]) -> Callable[[], Any]:
    """Search one query after the other."""
    from karat.live.retrievers import BM25

    retriever = BM25(documents, engine="tantivy", cache=False)
    return lambda: [retriever.search(query, TOP_K) for query in queries]


def bm25s_index(documents: dict[str, str], _: list[str]) -> Callable[[], Any]:
    """Index as bm25s' own documentation shows, with the same stemmer and stop words."""
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


def bm25s_search(documents: dict[str, str], queries: list[str]) -> Callable[[], Any]:
    """Search one query after the other, as karat does."""
    import bm25s
    import Stemmer

    stemmer = Stemmer.Stemmer("english")
    engine = bm25s_index(documents, queries)()

    def timed() -> Any:
        found = []
        for query in queries:
            tokens = bm25s.tokenize([query], stopwords="en", stemmer=stemmer, show_progress=False)
            found.append(engine.retrieve(tokens, k=TOP_K, show_progress=False))
        return found

    return timed


def rank_bm25_index(documents: dict[str, str], _: list[str]) -> Callable[[], Any]:
    """Index as rank_bm25's own documentation shows: words between spaces, no stemming."""
    from rank_bm25 import BM25Okapi

    return lambda: BM25Okapi([text.split() for text in documents.values()])


def rank_bm25_search(documents: dict[str, str], queries: list[str]) -> Callable[[], Any]:
    """Search one query after the other."""
    names = list(documents)
    engine = rank_bm25_index(documents, queries)()
    return lambda: [engine.get_top_n(query.split(), names, n=TOP_K) for query in queries]


FUNCTIONS = (
    karat_index,
    karat_load,
    karat_tantivy_index,
    bm25s_index,
    rank_bm25_index,
    karat_search,
    karat_tantivy_search,
    bm25s_search,
    rank_bm25_search,
)
