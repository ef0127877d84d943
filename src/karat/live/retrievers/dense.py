"""Dense retrieval: rank items by the similarity of their vectors with that of the query."""

from __future__ import annotations

from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from karat import checks
from karat.cache import IndexKey, load_or_build
from karat.errors import InputError, counted
from karat.live.instrumentation import stage
from karat.live.protocol import StopRunError
from karat.live.retrievers.built_in import BuiltIn
from karat.live.retrievers.embedders import (
    STAGE,
    WORDLLAMA,
    Embedder,
    EmbeddingFunction,
    Vectors,
    create_embedder,
)
from karat.live.retrievers.items import Chunking, Items, Scored, best

EXACT_LIMIT = 500_000
"""Number of items up to which the search is exact."""
_FORMAT = 1  # raised when the stored files change
_VECTORS, _GRAPH = "vectors.npy", "graph.usearch"
_WIDTH, _LEAST = 4, 400  # usearch finds 4 times as many items as are returned, and at least 400
_SAME = 1e-3  # how far two vectors of the same text may differ; some servers are not exact


class Dense(BuiltIn):
    """Rank documents or chunks by the cosine similarity of embeddings.

    Up to `exact_limit` items the search is exact. Above it, an approximate index of usearch finds
    the candidates: some of the most similar items may be missing. Items of equal scores are ordered
    by id, descending, as in trec_eval. The title of a document is embedded with its text, and with
    each of its chunks.

    Parameters
    ----------
    corpus : path, dict, table or Corpus
        The documents, as for `BM25`.
    chunker, chunk_size, chunk_overlap : optional
        How documents are split, as for `BM25`.
    embedder : str or callable, default "wordllama"
        "wordllama" (`pip install 'karat[dense]'`) is a model inside the package: 256 dimensions,
        no network. Or a function that takes a list of texts and returns an array with one row per
        text, the name of such a function (`package.module:name`), or the URL of an
        OpenAI-compatible server (`https://host/v1`).
    embedding_model : str, optional
        The name of the model, for a server.
    embedding_key_env : str, optional
        The environment variable with the key of a server. The key is never stored.
    exact_limit : int, default 500000
        Number of items up to which the search is exact. Above it, usearch is required
        (`pip install 'karat[dense]'`).
    cache : bool, default True
        Whether the vectors are stored in the cache folder, and reused. Those of a function that is
        not given by its name are never stored, because two functions may have the same name.

    Examples
    --------
    >>> from karat.live.retrievers import Dense
    >>> def count_letters(texts):
    ...     return [[text.count("a"), text.count("b")] for text in texts]
    >>> retriever = Dense({"x": "aaa", "y": "ab"}, embedder=count_letters)
    >>> [(item["id"], round(item["score"], 3)) for item in retriever.search("aaaab")]
    [('x', 0.97), ('y', 0.857)]
    """

    kind = "dense"

    def __init__(
        self,
        corpus: Any,
        *,
        chunker: Any = None,
        chunk_size: int | None = None,
        chunk_overlap: int | None = None,
        embedder: str | EmbeddingFunction = WORDLLAMA,
        embedding_model: str | None = None,
        embedding_key_env: str | None = None,
        exact_limit: int = EXACT_LIMIT,
        cache: bool = True,
    ) -> None:
        chunking = Chunking(chunker, chunk_size, chunk_overlap)
        limit = checks.integer(exact_limit, "exact_limit", least=0)
        self._embedder = create_embedder(embedder, embedding_model, embedding_key_env)
        self.items = Items.of(corpus, chunking)
        self._index = load_vectors(self.items, self._embedder, limit, use_cache=cache)
        self.settings = self.common_settings() | self._embedder.settings | self._index.settings

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
        >>> from karat.live.retrievers import Dense
        >>> lengths = lambda texts: [[1, len(text)] for text in texts]
        >>> Dense({"a": "one", "b": "three"}, embedder=lengths).search("two")[0]["id"]
        'a'
        """
        vector = embed_query(self._embedder, query, self._index)
        with stage("retrieval"):
            positions, scores = self._index.find(vector, top_k)
            return self.items.results(positions, scores)


class DenseIndex:
    """The vectors of all items, and above the limit a graph to search them."""

    def __init__(self, vectors: Vectors, graph: Any = None) -> None:
        self.vectors = vectors
        self._graph = graph

    @classmethod
    def build(cls, vectors: Vectors, *, is_exact: bool) -> DenseIndex:
        """Make an index. One thread builds the graph, so that it is always the same."""
        if is_exact:
            return cls(vectors)
        graph = _new_graph(vectors.shape[1])
        graph.add(np.arange(len(vectors)), vectors, threads=1)
        return cls(vectors, graph)

    @classmethod
    def load(cls, folder: Path) -> DenseIndex:
        """Read an index from a folder."""
        vectors = np.load(folder / _VECTORS)
        if not (folder / _GRAPH).exists():
            return cls(vectors)
        graph = _new_graph(vectors.shape[1])
        graph.load(str(folder / _GRAPH))
        return cls(vectors, graph)

    def save(self, folder: Path) -> None:
        """Write the index to a folder."""
        np.save(folder / _VECTORS, self.vectors)
        if self._graph is not None:
            self._graph.save(str(folder / _GRAPH))

    @property
    def settings(self) -> dict[str, Any]:
        """How the index is searched, for the header of a run."""
        if self._graph is None:
            return {}
        return {"search": f"approximate, usearch {version('usearch')}"}

    def find(self, query: Vectors, count: int) -> Scored:
        """Return the items with the highest cosine similarity.

        `einsum` adds up each row in the same order, in one thread. A matrix product of BLAS does
        not: its last digits depend on the position of the row and on the number of threads.
        """
        if self._graph is None:
            similarities = np.einsum("ij,j->i", self.vectors, query)
            positions = best(similarities, count)
            return positions, similarities[positions].astype(np.float64)
        matches = self._graph.search(query, max(_WIDTH * count, _LEAST), threads=1)
        candidates = np.sort(np.asarray(matches.keys, dtype=np.int64))
        similarities = np.einsum("ij,j->i", self.vectors[candidates], query)
        order = best(similarities, count)
        return candidates[order], similarities[order].astype(np.float64)


def embed_query(embedder: Embedder, query: str, index: DenseIndex) -> Vectors:
    """Return the vector of a query."""
    with stage(STAGE):
        vector: Vectors = embedder.embed([query], is_indexing=False)[0]
    _require_dimension(vector, index)
    return vector


def _require_dimension(vector: Vectors, index: DenseIndex) -> None:
    dimensions = index.vectors.shape[1]
    if vector.size != dimensions:
        raise StopRunError(
            f"the embedder returned {counted(vector.size, 'dimension')} for a query, and "
            f"{dimensions:,} for the corpus",
            field="embedder",
            hint="all vectors must come from the same model; check the embedder, and run the same "
            "command again",
        )


def load_vectors(
    items: Items, embedder: Embedder, exact_limit: int, *, use_cache: bool
) -> DenseIndex:
    """Return the vectors of the items, from the cache if they are there."""
    is_exact = len(items) <= exact_limit
    if not is_exact and find_spec("usearch") is None:
        raise InputError(
            f"exact search is limited to {counted(exact_limit, 'item')}, the corpus has "
            f"{len(items):,}, and usearch is not installed",
            field="exact_limit",
            hint="pip install 'karat[dense]', or raise --exact-limit",
        )
    settings = {"format": _FORMAT, "items": items.digest, **embedder.settings}
    if not is_exact:
        settings["usearch"] = version("usearch")
    return load_or_build(
        IndexKey("dense", items.about, settings),
        build=lambda: _build(items, embedder, is_exact=is_exact),
        save=lambda index, folder: index.save(folder),
        load=DenseIndex.load,
        is_current=lambda index: _is_current(index, items, embedder),
        use_cache=use_cache and embedder.is_cacheable,
    )


def _build(items: Items, embedder: Embedder, *, is_exact: bool) -> DenseIndex:
    """Embed the items, and one of them again: an index that cannot be searched is not stored."""
    index = DenseIndex.build(embedder.embed(list(items.texts)), is_exact=is_exact)
    _require_dimension(embedder.embed([next(items.texts)])[0], index)
    return index


def _is_current(index: DenseIndex, items: Items, embedder: Embedder) -> bool:
    """Return whether the embedder still returns the stored vector for the first item."""
    vector = embedder.embed([next(items.texts)])[0]
    stored = index.vectors[0]
    return vector.size == stored.size and bool(np.abs(vector - stored).max() <= _SAME)


def _new_graph(dimensions: int) -> Any:
    from usearch.index import Index

    return Index(ndim=dimensions, metric="ip", dtype="f32")
