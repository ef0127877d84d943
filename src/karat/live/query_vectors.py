"""Embedding of queries, for retrievers that search by vectors.

`Embedder` is the interface: a function from texts to one vector per text. `QueryVectors` calls one
for a single query, and checks what it returns.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from karat.errors import InputError, printable
from karat.live.instrumentation import stage
from karat.live.protocol import AttemptError
from karat.live.retrievers.callables import qualified_name, returns_awaitable
from karat.live.retrievers.resolve import import_object, source_hash

Embedder = Callable[[list[str]], Any]
"""A function that takes a list of texts, and returns an array with one row per text."""
STAGE = "embedding"
"""The stage of the time that embedding a query takes."""
PROBE = "karat"
"""The text that is embedded and searched before the first query, to check the settings."""
_SHAPES = "return an array with one row per text: texts -> array of shape (len(texts), dimension)"


class QueryVectors:
    """Embeds one query at a time; all vectors must have the dimension of the first.

    Parameters
    ----------
    embedder : callable or str
        A function `texts -> array`, or its name, `package.module:name`.
    """

    def __init__(self, embedder: str | Embedder) -> None:
        self.source: str | None = None
        """A hash of the source code of a function that was imported by its name."""
        if isinstance(embedder, str):
            function = import_object(embedder, "embedder")
            self.name = embedder
            self.source = source_hash(sys.modules[embedder.partition(":")[0]], function)
        else:
            function, self.name = embedder, qualified_name(embedder)
        if not callable(function) or returns_awaitable(function):
            kind = "an async function"
            if not callable(function):
                kind = f"an object of type {type(function).__name__}"
            raise InputError(
                f"the embedder must be a function, got {kind}",
                field="embedder",
                hint="pass a function that is not async, takes a list of texts, and returns an "
                "array with one row per text",
            )
        self._function: Embedder = function
        self.dimension = self._probe()
        """The number of values of each vector."""

    def __call__(self, text: str) -> list[float]:
        """Return the vector of a text."""
        with stage(STAGE):
            vectors = self._function([text])
        vector = _checked_vector(vectors)
        if len(vector) != self.dimension:
            raise AttemptError(
                "BadEmbedding",
                f"the embedder returned a vector with {len(vector):,} values, and one with "
                f"{self.dimension:,} values before",
                retryable=False,
            )
        return vector

    def _probe(self) -> int:
        try:
            return len(_checked_vector(self._function([PROBE])))
        except AttemptError as error:
            problem = error.message
        except Exception as error:
            reason = f"{type(error).__name__}: {error}".removesuffix(": ")
            problem = f"{self.name} failed: {printable(reason)}"
        raise InputError(problem, field="embedder", hint=_SHAPES)


def _checked_vector(vectors: Any) -> list[float]:
    """Return the only row of an array, as a list of numbers."""
    try:
        array = np.asarray(vectors)
    except ValueError:  # rows of different lengths
        array = np.asarray(None)
    if array.ndim != 2 or len(array) != 1 or array.dtype.kind not in "fiu" or not array.size:
        shape = f"an array of shape {array.shape}" if array.ndim else type(vectors).__name__
        kind = "" if array.dtype.kind in "fiuO" else f" of {array.dtype.name}"
        raise AttemptError(
            "BadEmbedding",
            f"the embedder must return one vector per text, got {shape}{kind} for one text",
            retryable=False,
        )
    if not np.isfinite(array).all():
        raise AttemptError(
            "BadEmbedding", "the embedder returned NaN or an infinite value", retryable=False
        )
    vector: list[float] = array[0].tolist()
    return vector
