"""Retrievers, vector stores and chains of LangChain.

They are asked in karat's threads. Their async methods mostly call the plain ones in threads of
their own, and some raise where the object was made for plain calls. Whoever knows better gives
the method itself: `retriever.ainvoke`.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from karat.live.protocol import Search
from karat.live.retrievers.callables import TOP_K, Caller, is_a, signature


def asking(given: Any, search: Search) -> Caller | None:
    """Recognise a vector store, a retriever, or anything that can be invoked."""
    if is_a(given, "langchain", "VectorStore"):
        return _store(given, search)
    if not is_a(given, "langchain", "BaseRetriever", "Runnable"):
        return None
    changes, takes, own_top_k = _settings(given, search)
    if changes:
        given = given.model_copy(update=changes)  # theirs stays as it is
    named: dict[str, Any] = {}
    if "top_k" not in takes:
        told = signature(getattr(given, "_get_relevant_documents", None) or given.invoke) or []
        name = next((p.name for p in told if p.name in TOP_K), None)
        if name is not None:
            named, takes = {name: search.top_k}, takes | {"top_k"}
    return Caller(
        lambda query: given.invoke(query, **named), takes=frozenset(takes), own_top_k=own_top_k
    )


def _store(given: Any, search: Search) -> Caller:
    kind = next(k for k in type(given).__mro__ if "similarity_search_with_score" in vars(k))
    takes = frozenset({"top_k"})
    if kind.__name__ == "VectorStore":  # it only says that it is not there
        return Caller(lambda query: given.similarity_search(query, k=search.top_k), takes=takes)

    def scored(query: str) -> Any:
        return _without_distances(given.similarity_search_with_score(query, k=search.top_k))

    return Caller(scored, takes=takes)


def _without_distances(pairs: list[tuple[Any, float]]) -> list[Any]:
    """Leave out scores that only rise: some stores return distances by that name."""
    steps = [after[1] - before[1] for before, after in pairwise(pairs)]
    if any(step > 0 for step in steps) and all(step >= 0 for step in steps):
        return [document for document, _ in pairs]
    return pairs


def _settings(given: Any, search: Search) -> tuple[dict[str, Any], set[str], int | None]:
    """Return which fields of a retriever a search changes, what they take, and its own k."""
    declared = getattr(type(given), "model_fields", {})
    if "search_kwargs" in declared:
        settings = {**given.search_kwargs, "k": search.top_k}
        takes = {"top_k"}
        threshold = getattr(given, "search_type", None) == "similarity_score_threshold"
        if threshold and search.score_threshold is not None:
            settings["score_threshold"] = search.score_threshold
            takes.add("score_threshold")
        return {"search_kwargs": settings}, takes, given.search_kwargs.get("k")
    name = next((name for name in TOP_K if name in declared), None)
    if name is None:
        return {}, set(), None
    return {name: search.top_k}, {"top_k"}, getattr(given, name)
