"""Embedders: what turns texts into vectors, for dense retrieval.

An embedder is the model of wordllama, a function, or an OpenAI-compatible endpoint. Vectors are
normalised to length 1, so that a dot product is the cosine similarity.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from karat.errors import InputError, counted
from karat.live.protocol import AttemptError
from karat.live.retrievers.callables import qualified_name
from karat.live.retrievers.endpoint import JsonEndpoint
from karat.live.retrievers.resolve import import_object, source_hash

WORDLLAMA = "wordllama"
BATCH = 64
Vectors = npt.NDArray[np.float32]
_URL_SCHEMES = ("http://", "https://")


class Embedder(ABC):
    """Turns texts into vectors of length 1."""

    settings: dict[str, Any]
    """What the vectors depend on, for the header of a run and the cache; without secrets."""
    is_cacheable = True
    """Whether `settings` identify the embedder, so that its vectors may be stored."""

    @abstractmethod
    def _embed(self, texts: list[str], *, is_indexing: bool) -> Any:
        """Return one vector per text."""

    def embed(self, texts: Sequence[str], *, is_indexing: bool = True) -> Vectors:
        """Return one vector per text, as rows."""
        blocks: list[Vectors] = []
        for start in range(0, len(texts), BATCH):
            batch = list(texts[start : start + BATCH])
            block = _checked(self._embed(batch, is_indexing=is_indexing), len(batch))
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
                "dense retrieval needs wordllama, which is not installed",
                field="embedder",
                hint="pip install 'karat[dense]', or set another embedder",
            )
        import wordllama

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
            module = sys.modules[embedder.partition(":")[0]]
            source = source_hash(module, target)
            self.settings = {"embedder": embedder, "embedder_sha256": source}
        else:
            # Two functions made by the same code may differ, and have the same name.
            self.is_cacheable = False
            self.settings = {"embedder": qualified_name(target)}
        if isinstance(target, type):
            target = target()
        if not callable(target):
            raise InputError(
                f"the embedder must be callable, got an object of type {type(target).__name__}",
                field="embedder",
                hint="pass a function that takes a list of texts and returns an array, a URL, or "
                '"wordllama"',
            )
        self._function = target

    def _embed(self, texts: list[str], *, is_indexing: bool) -> Any:
        try:
            return self._function(texts)
        except Exception as error:
            if not is_indexing:
                raise
            raise InputError(
                f"the embedder failed: {type(error).__name__}: {error}",
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
        try:
            data = msgspec.convert(post(request), _EmbeddingsAnswer).data
            if any(one.index is not None for one in data):
                data.sort(key=lambda one: one.index or 0)
            return [one.embedding for one in data]
        except msgspec.ValidationError as error:
            problem = f"{self._endpoint.name} returned no embeddings: {error}"
            hint = 'the answer must be {"data": [{"index": 0, "embedding": […]}, …]}'
            if is_indexing:
                raise InputError(problem, field="embedder", hint=hint) from error
            raise AttemptError("BadAnswer", f"{problem}; {hint}", retryable=False) from error


def create_embedder(
    embedder: Any, embedding_model: str | None, embedding_key_env: str | None
) -> Embedder:
    """Return the embedder for the options of a dense retriever."""
    if isinstance(embedder, str) and embedder.lower().startswith(_URL_SCHEMES):
        return EndpointEmbedder(embedder, embedding_model, embedding_key_env)
    only_endpoint = {"embedding_model": embedding_model, "embedding_key_env": embedding_key_env}
    for name, value in only_endpoint.items():
        if value is not None:
            raise InputError(
                "only an embedding endpoint has this option",
                field=name,
                hint="remove the option, or set the embedder to a URL: --embedder https://…/v1",
            )
    return WordLlamaEmbedder() if embedder == WORDLLAMA else FunctionEmbedder(embedder)


def _checked(returned: Any, count: int) -> Vectors:
    """Return what an embedder returned as vectors of length 1; zeros stay zeros."""
    try:
        vectors = np.asarray(returned, dtype=np.float64)
    except (TypeError, ValueError):
        vectors = np.empty(0)
    if vectors.ndim != 2 or vectors.shape[0] != count or not vectors.shape[1]:
        raise InputError(
            f"the embedder must return {counted(count, 'vector')} of the same length, got "
            f"{_describe(returned)}",
            field="embedder",
            hint="return an array with one row per text",
        )
    if not np.isfinite(vectors).all():
        raise InputError(
            "the embedder returned a number that is not finite",
            field="embedder",
            hint="check the model and its input",
        )
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
