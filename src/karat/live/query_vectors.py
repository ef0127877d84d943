"""Vectors of queries, for search engines."""

from __future__ import annotations

from typing import Any

from karat.errors import InputError
from karat.live.instrumentation import stage
from karat.live.protocol import AttemptError, StopRunError
from karat.live.retrievers.embedders import STAGE, Embedder

PROBE = "karat"
"""The text that is embedded and searched before the first query, to check the settings."""


class QueryVectors:
    """Embeds one query at a time; all vectors must have the dimension of the first.

    The vectors are not normalised: the engine may rank by another distance than the cosine.
    """

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self.dimension: int = embedder.embed_batch([PROBE]).shape[1]
        """The number of values of each vector."""

    @property
    def settings(self) -> dict[str, Any]:
        """What the vectors depend on, for the header of a run."""
        return {**self._embedder.settings, "dimension": self.dimension}

    def __call__(self, text: str) -> list[float]:
        """Return the vector of a text."""
        with stage(STAGE):
            try:
                vectors = self._embedder.embed_batch([text], is_indexing=False)
            except InputError as error:
                raise AttemptError("BadEmbedding", error.problem, retryable=False) from error
        vector: list[float] = vectors[0].tolist()
        if len(vector) != self.dimension:
            raise StopRunError(
                f"the embedder returned a vector with {len(vector):,} values, and one with "
                f"{self.dimension:,} values before",
                field="embedder",
                hint="all vectors must come from the same model; check the embedder, and run the "
                "same command again",
            )
        return vector
