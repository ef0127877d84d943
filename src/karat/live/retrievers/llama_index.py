"""Adapter for retrievers, indexes and query engines of LlamaIndex.

They are called in threads, because the async methods of their base classes only call the plain
ones. To use an async method of your own, pass the method itself: `retriever.aretrieve`.
"""

from __future__ import annotations

import copy
from typing import Any

from karat.live.protocol import Search
from karat.live.retrievers.callables import BoundCall, has_base

_TOP_K_ATTRIBUTES = ("similarity_top_k", "_similarity_top_k")


def adapt(target: Any, search: Search) -> BoundCall | None:
    """Return how to call an index, retriever or query engine, or None for any other object."""
    if has_base(target, "llama_index", "BaseIndex"):
        target = target.as_retriever(similarity_top_k=search.top_k)
    if has_base(target, "llama_index", "BaseRetriever"):
        retriever, accepts, own_top_k = _with_top_k(target, search)
        return BoundCall(retriever.retrieve, accepts=accepts, own_top_k=own_top_k)
    if has_base(target, "llama_index", "BaseQueryEngine"):
        engine, accepts, own_top_k = _engine_with_top_k(target, search)
        return BoundCall(engine.query, accepts=accepts, own_top_k=own_top_k)
    return None


def _with_top_k(retriever: Any, search: Search) -> tuple[Any, frozenset[str], int | None]:
    """Return a copy of a retriever with another top_k, the accepted settings, and its own top_k."""
    name = next((name for name in _TOP_K_ATTRIBUTES if hasattr(retriever, name)), None)
    if name is None:
        return retriever, frozenset(), None
    changed = copy.copy(retriever)
    setattr(changed, name, search.top_k)
    return changed, frozenset({"top_k"}), getattr(retriever, name)


def _engine_with_top_k(engine: Any, search: Search) -> tuple[Any, frozenset[str], int | None]:
    if not (hasattr(engine, "retriever") and hasattr(engine, "with_retriever")):
        return engine, frozenset(), None
    retriever, accepts, own_top_k = _with_top_k(engine.retriever, search)
    return engine.with_retriever(retriever), accepts, own_top_k
