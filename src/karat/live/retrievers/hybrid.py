"""Hybrid retrieval: BM25 and dense retrieval over the same items, fused into one list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from karat import checks
from karat.data.fusion import reciprocal_rank_scores, weighted_sums
from karat.errors import InputError
from karat.live.instrumentation import stage
from karat.live.retrievers.bm25 import BM25S, BM25Options, load_index
from karat.live.retrievers.built_in import BuiltIn
from karat.live.retrievers.dense import EXACT_LIMIT, embed_query, load_vectors
from karat.live.retrievers.embedders import WORDLLAMA, EmbeddingFunction, create_embedder
from karat.live.retrievers.items import Chunking, Items, Scored, best

RRF_K = 60
"""The constant of reciprocal rank fusion (Cormack, Clarke and Büttcher 2009)."""


class Hybrid(BuiltIn):
    """Fuse BM25 and dense retrieval.

    Both return their best items, up to `prefetch_limit`. By default they are fused by reciprocal
    rank (Cormack, Clarke and Büttcher 2009): the score is the sum of `1 / (rrf_k + rank)` over the
    lists that contain the item. With `weights`, the scores of each list are scaled from 0 (its last
    item) to 1 (its first), and the score is their weighted sum. Items of equal scores are ordered
    by id, descending, as in trec_eval.

    Parameters
    ----------
    corpus : path, dict, table or Corpus
        The documents, as for `BM25`.
    chunker, chunk_size, chunk_overlap : optional
        How documents are split, as for `BM25`.
    engine, k1, b, stemmer, stop_words : optional
        The parameters of `BM25`.
    embedder, embedding_model, embedding_key_env, exact_limit : optional
        The parameters of `Dense`.
    rrf_k : int, optional
        The constant of reciprocal rank fusion: the larger, the less the first ranks count. Default:
        60. Not allowed with `weights`.
    weights : sequence of 2 numbers, optional
        The weights of BM25 and of dense retrieval, for example `(0.7, 0.3)`. Default: fusion by
        reciprocal rank.
    cache : bool, default True
        Whether the indexes are stored in the cache folder, and reused.

    Examples
    --------
    >>> from karat.live.retrievers import Hybrid
    >>> def count_letters(texts):
    ...     return [[text.count("a"), text.count("b")] for text in texts]
    >>> retriever = Hybrid({"x": "aaa", "y": "ab"}, embedder=count_letters, cache=False)
    >>> [(item["id"], round(item["score"], 4)) for item in retriever.search("ab")]
    [('y', 0.0328), ('x', 0.0161)]
    """

    kind = "hybrid"

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
        embedder: str | EmbeddingFunction = WORDLLAMA,
        embedding_model: str | None = None,
        embedding_key_env: str | None = None,
        exact_limit: int = EXACT_LIMIT,
        rrf_k: int | None = None,
        weights: Sequence[float] | None = None,
        cache: bool = True,
    ) -> None:
        chunking = Chunking(chunker, chunk_size, chunk_overlap)
        options = BM25Options.of(engine, k1, b, stemmer, stop_words)
        limit = checks.integer(exact_limit, "exact_limit", least=0)
        self._rrf_k = checks.integer(RRF_K if rrf_k is None else rrf_k, "rrf_k", least=1)
        self._weights = None if weights is None else _checked_weights(weights)
        if weights is not None and rrf_k is not None:
            raise InputError(
                "fusion by weights has no such constant",
                field="rrf_k",
                hint="remove rrf_k, or remove the weights to fuse by reciprocal rank",
            )
        self._words = options.words()
        self._embedder = create_embedder(embedder, embedding_model, embedding_key_env)
        self.items = Items.of(corpus, chunking)
        # The vectors first: if the embedder fails, nothing is stored.
        self._dense = load_vectors(self.items, self._embedder, limit, use_cache=cache)
        self._bm25 = load_index(self.items, self._words, options, use_cache=cache)
        fusion: dict[str, Any] = {"rrf_k": self._rrf_k}
        if self._weights is not None:
            fusion = {"weights": list(self._weights)}
        self.settings = {
            **self.common_settings(),
            **options.as_settings(),
            **self._embedder.settings,
            **self._dense.settings,
            **fusion,
        }

    def search(
        self, query: str, top_k: int = 20, prefetch_limit: int = 100
    ) -> list[dict[str, Any]]:
        """Return the best items for a query.

        Parameters
        ----------
        query : str
            The text of the query.
        top_k : int, default 20
            Number of items to return.
        prefetch_limit : int, default 100
            Number of items that BM25 and dense retrieval return each.

        Returns
        -------
        list of dict
            Items with id, doc_id, text and score, and start and end for chunks; the best first.

        Examples
        --------
        >>> from karat.live.retrievers import Hybrid
        >>> lengths = lambda texts: [[1, len(text)] for text in texts]
        >>> retriever = Hybrid({"a": "one", "b": "three"}, embedder=lengths, cache=False)
        >>> retriever.search("one")[0]["id"]
        'a'
        """
        vector = embed_query(self._embedder, query, self._dense)
        with stage("retrieval"):
            lists = [
                self._bm25.find(self._words(query), prefetch_limit),
                self._dense.find(vector, prefetch_limit),
            ]
        with stage("fusion"):
            positions, scores = self._fuse(lists)
            first = best(scores, top_k)
            return self.items.results(positions[first], scores[first])

    def _fuse(self, lists: list[Scored]) -> Scored:
        """Return the positions of all items, ascending, and their fused scores."""
        positions = np.unique(np.concatenate([found for found, _ in lists]))
        values = np.full((positions.size, len(lists)), np.nan)
        for number, (found, scores) in enumerate(lists):
            ranks = np.arange(1, found.size + 1)
            rows = np.searchsorted(positions, found)
            values[rows, number] = ranks if self._weights is None else _scaled(scores)
        if self._weights is None:
            return positions, reciprocal_rank_scores(values, np.ones(len(lists)), self._rrf_k)
        return positions, weighted_sums(values, np.array(self._weights))


def _scaled(scores: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Scale the scores of a list from 0 to 1; if all are equal, each becomes 1."""
    if not scores.size or scores[0] == scores[-1]:
        return np.ones_like(scores)
    scaled: npt.NDArray[np.float64] = (scores - scores[-1]) / (scores[0] - scores[-1])
    return scaled


def _checked_weights(weights: Sequence[float]) -> tuple[float, float]:
    hint = "pass the weights of BM25 and of dense retrieval: --weights 0.7,0.3"
    if len(weights) != 2:
        raise InputError(f"expected 2 numbers, got {weights!r}", field="weights", hint=hint)
    first, second = (float(checks.finite(weight, "weights", hint=hint)) for weight in weights)
    if min(first, second) < 0 or first + second == 0:
        raise InputError(
            f"weights must be at least 0, and not both 0, got {first:g} and {second:g}",
            field="weights",
            hint=hint,
        )
    return first, second
