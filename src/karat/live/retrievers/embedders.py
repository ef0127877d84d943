"""Embedders: what turns texts into vectors, for dense retrieval and for search engines.

An embedder is the model of wordllama, a function, or an OpenAI-compatible endpoint.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from karat.data.formats.mismatches import Mismatch
from karat.errors import InputError, counted, printable
from karat.live.protocol import AttemptError
from karat.live.retrievers.callables import qualified_name, returns_awaitable
from karat.live.retrievers.endpoint import JsonEndpoint
from karat.live.retrievers.resolve import import_object, module_of, source_hash
from karat.steps import tracked

WORDLLAMA = "wordllama"
BATCH = 64
STAGE = "embedding"
"""The stage of the time that embedding a query takes."""
EmbeddingFunction = Callable[[list[str]], Any]
"""A function that takes a list of texts, and returns an array with one row per text."""
Vectors = npt.NDArray[np.float32]
_URL_SCHEMES = ("http://", "https://")


class Embedder(ABC):
    """Turns texts into vectors."""

    settings: dict[str, Any]
    """What the vectors depend on, for the header of a run and the cache; without secrets."""
    is_cacheable = True
    """Whether `settings` identify the embedder, so that its vectors may be stored."""

    @abstractmethod
    def _embed(self, texts: list[str], *, is_indexing: bool) -> Any:
        """Return one vector per text."""

    def embed_batch(self, texts: list[str], *, is_indexing: bool = True) -> npt.NDArray[np.float64]:
        """Return one vector per text, as rows with the values that the model returned."""
        return _checked(self._embed(texts, is_indexing=is_indexing), len(texts))

    def embed(self, texts: Sequence[str], *, is_indexing: bool = True) -> Vectors:
        """Return one vector per text, as rows of length 1: a dot product is the similarity."""
        blocks: list[Vectors] = []
        batches = (list(texts[start : start + BATCH]) for start in range(0, len(texts), BATCH))
        for batch in tracked(batches, "embedding texts", len(texts), size=len):
            block = _normalised(self.embed_batch(batch, is_indexing=is_indexing))
            if blocks and block.shape[1] != blocks[0].shape[1]:
                raise InputError(
                    f"the embedder returned vectors of {counted(blocks[0].shape[1], 'dimension')} "
                    f"first, and of {counted(block.shape[1], 'dimension')} later",
                    field="embedder",
                    hint="all vectors must come from the same model",
                )
            blocks.append(block)
        return np.concatenate(blocks)


class WordLlamaEmbedder(Embedder):
    """The model of wordllama that is inside its package: 256 dimensions, no network."""

    def __init__(self) -> None:
        if find_spec("wordllama") is None:
            raise InputError(
                "the embedder needs wordllama, which is not installed",
                field="embedder",
                hint="pip install 'karat[dense]', or set another embedder",
            )
        root = logging.getLogger()
        handlers, level = root.handlers[:], root.level
        import wordllama

        # Importing wordllama makes all libraries print their log messages; undo that.
        root.handlers[:] = handlers
        root.setLevel(level)
        folder = Path(wordllama.__file__).parent
        self._model = wordllama.WordLlama.load(cache_dir=folder, disable_download=True)
        self.settings = {"embedder": WORDLLAMA, "embedder_version": version("wordllama")}

    def _embed(self, texts: list[str], *, is_indexing: bool) -> Any:
        del is_indexing
        return self._model.embed(texts)


class FunctionEmbedder(Embedder):
    """A function that takes a list of texts and returns an array with one row per text."""

    def __init__(self, embedder: Any) -> None:
        target = embedder
        if isinstance(embedder, str):
            target = import_object(embedder, "embedder")
            source = source_hash(module_of(embedder), target)
            self.settings = {"embedder": embedder, "embedder_sha256": source}
        else:
            # Two functions made by the same code may differ, and have the same name.
            self.is_cacheable = False
            self.settings = {"embedder": qualified_name(target)}
        if isinstance(target, type):
            target = target()
        if not callable(target) or returns_awaitable(target):
            kind = "an async function"
            if not callable(target):
                kind = f"an object of type {type(target).__name__}"
            raise InputError(
                f"the embedder must be a function, got {kind}",
                field="embedder",
                hint="pass a function that is not async, takes a list of texts and returns an "
                'array with one row per text; a URL; or "wordllama"',
            )
        self._function = target

    def _embed(self, texts: list[str], *, is_indexing: bool) -> Any:
        try:
            return self._function(texts)
        except Exception as error:
            if not is_indexing:
                raise
            raise InputError(
                f"the embedder failed: {type(error).__name__}: {printable(str(error))}",
                field="embedder",
                hint="the function must take a list of texts",
            ) from error


class _Embedding(msgspec.Struct):
    """One vector in the answer of an endpoint."""

    embedding: list[float]
    index: int | None = None


class _EmbeddingsAnswer(msgspec.Struct):
    """The answer of an endpoint."""

    data: list[_Embedding]


class EndpointEmbedder(Embedder):
    """A server with the API of OpenAI: POST {"model": …, "input": […]} to `…/embeddings`."""

    def __init__(self, url: str, model: str | None, key_env: str | None) -> None:
        if model is None:
            raise InputError(
                "the name of the model is missing",
                field="embedding_model",
                hint="add --embedding-model NAME, as the server calls it",
            )
        address = url.rstrip("/")
        if not address.endswith("/embeddings"):
            address += "/embeddings"
        self._endpoint = JsonEndpoint(address, key_env, "embedder")
        self._model = model
        self.settings = {"embedder": self._endpoint.name, "embedding_model": model}

    def _embed(self, texts: list[str], *, is_indexing: bool) -> Any:
        request = {"model": self._model, "input": texts, "encoding_format": "float"}
        post = self._endpoint.post_with_retries if is_indexing else self._endpoint.post
        response = post(request)
        try:
            data = msgspec.convert(response, _EmbeddingsAnswer).data
            if any(one.index is not None for one in data):
                data.sort(key=lambda one: one.index or 0)
            return [one.embedding for one in data]
        except msgspec.ValidationError as error:
            mismatch = Mismatch.of(error, response)
            problem = f"{self._endpoint.name} returned no embeddings: {mismatch}"
            hint = 'the answer must be {"data": [{"index": 0, "embedding": […]}, …]}'
            if is_indexing:
                raise InputError(problem, field="embedder", hint=hint) from error
            raise AttemptError("BadAnswer", f"{problem}; {hint}", retryable=False) from error


def create_embedder(
    embedder: Any, embedding_model: str | None, embedding_key_env: str | None
) -> Embedder:
    """Return the embedder for the options of a retriever."""
    if isinstance(embedder, str) and embedder.lower().startswith(_URL_SCHEMES):
        return EndpointEmbedder(embedder, embedding_model, embedding_key_env)
    refuse_endpoint_options(embedding_model, embedding_key_env)
    return WordLlamaEmbedder() if embedder == WORDLLAMA else FunctionEmbedder(embedder)


def refuse_endpoint_options(embedding_model: str | None, embedding_key_env: str | None) -> None:
    """Raise an error for options that only an endpoint has."""
    only_endpoint = {"embedding_model": embedding_model, "embedding_key_env": embedding_key_env}
    for name, value in only_endpoint.items():
        if value is not None:
            raise InputError(
                "only an embedding endpoint has this option",
                field=name,
                hint="remove the option, or set the embedder to a URL: --embedder https://…/v1",
            )


def _checked(returned: Any, count: int) -> npt.NDArray[np.float64]:
    """Return what an embedder returned as an array, if it has one row of numbers per text."""
    try:
        vectors = np.asarray(returned)
    except (TypeError, ValueError):  # rows of different lengths
        vectors = np.empty(0)
    is_numeric = vectors.dtype.kind in "fiu"
    if not is_numeric or vectors.ndim != 2 or len(vectors) != count or not vectors.size:
        of_same_length = " of the same length" if count > 1 else ""
        raise InputError(
            f"the embedder must return {counted(count, 'vector')}{of_same_length} for "
            f"{counted(count, 'text')}, got {_describe(returned)}",
            field="embedder",
            hint="return an array with one row per text",
        )
    if not np.isfinite(vectors).all():
        raise InputError(
            "the embedder returned a number that is not finite",
            field="embedder",
            hint="check the model and its input",
        )
    return vectors.astype(np.float64)


def _normalised(vectors: npt.NDArray[np.float64]) -> Vectors:
    """Return vectors of length 1; zeros stay zeros."""
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    lengths[lengths == 0] = 1.0
    normalised: Vectors = (vectors / lengths[:, None]).astype(np.float32)
    return normalised


def _describe(returned: Any) -> str:
    if isinstance(returned, np.ndarray):
        return f"an array of shape {returned.shape}"
    if isinstance(returned, (list, tuple)):
        return f"a list of {counted(len(returned), 'element')}"
    return f"an object of type {type(returned).__name__}"
