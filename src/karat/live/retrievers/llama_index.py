"""Retrievers, indexes and query engines of LlamaIndex.

They are asked in karat's threads, since their async methods call the plain ones unless somebody
wrote others. Whoever did gives the method itself: `retriever.aretrieve`.
"""

from __future__ import annotations

import copy
from typing import Any

from karat.live.protocol import Search
from karat.live.retrievers.callables import Caller, is_a

_TOP_K = ("similarity_top_k", "_similarity_top_k")


def asking(given: Any, search: Search) -> Caller | None:
    """Recognise an index, a retriever or a query engine."""
    if is_a(given, "llama_index", "BaseIndex"):
        given = given.as_retriever(similarity_top_k=search.top_k)
    if is_a(given, "llama_index", "BaseRetriever"):
        retriever, takes, own_top_k = _with_top_k(given, search)
        return Caller(retriever.retrieve, takes=takes, own_top_k=own_top_k)
    if is_a(given, "llama_index", "BaseQueryEngine"):
        engine, takes, own_top_k = _engine(given, search)
        return Caller(engine.query, takes=takes, own_top_k=own_top_k)
    return None


def _with_top_k(given: Any, search: Search) -> tuple[Any, frozenset[str], int | None]:
    """Set how many to retrieve, in a copy: theirs stays as it is; return its own number too."""
    name = next((name for name in _TOP_K if hasattr(given, name)), None)
    if name is None:
        return given, frozenset(), None
    changed = copy.copy(given)
    setattr(changed, name, search.top_k)
    return changed, frozenset({"top_k"}), getattr(given, name)


def _engine(given: Any, search: Search) -> tuple[Any, frozenset[str], int | None]:
    if not (hasattr(given, "retriever") and hasattr(given, "with_retriever")):
        return given, frozenset(), None
    retriever, takes, own_top_k = _with_top_k(given.retriever, search)
    return given.with_retriever(retriever), takes, own_top_k
