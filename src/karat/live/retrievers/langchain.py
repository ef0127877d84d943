"""Adapter for retrievers, vector stores and chains of LangChain.

They are called in threads: most of their async methods only call the plain ones in threads, and
some raise if the object was created for plain calls. To use an async method, pass the method
itself: `retriever.ainvoke`.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from karat.live.protocol import Search
from karat.live.retrievers.callables import TOP_K_NAMES, BoundCall, has_base, parameters_of


def adapt(target: Any, search: Search) -> BoundCall | None:
    """Return how to call a vector store, retriever or runnable, or None for any other object."""
    if has_base(target, "langchain", "VectorStore"):
        return _bind_store(target, search)
    if not has_base(target, "langchain", "BaseRetriever", "Runnable"):
        return None
    changes, accepts, own_top_k = _changed_fields(target, search)
    if changes:
        target = target.model_copy(update=changes)  # the object of the user does not change
    keywords: dict[str, Any] = {}
    if "top_k" not in accepts:
        method = getattr(target, "_get_relevant_documents", None) or target.invoke
        names = [parameter.name for parameter in parameters_of(method) or []]
        name = next((name for name in names if name in TOP_K_NAMES), None)
        if name is not None:
            keywords, accepts = {name: search.top_k}, accepts | {"top_k"}
    return BoundCall(
        lambda query: target.invoke(query, **keywords),
        accepts=frozenset(accepts),
        own_top_k=own_top_k,
    )


def _bind_store(store: Any, search: Search) -> BoundCall:
    accepts = frozenset({"top_k"})
    method = "similarity_search_with_score"
    definition = next(base for base in type(store).__mro__ if method in vars(base))
    if definition.__name__ == "VectorStore":  # the method of the base class only raises
        return BoundCall(
            lambda query: store.similarity_search(query, k=search.top_k), accepts=accepts
        )

    def search_with_scores(query: str) -> Any:
        return _without_distances(store.similarity_search_with_score(query, k=search.top_k))

    return BoundCall(search_with_scores, accepts=accepts)


def _without_distances(pairs: list[tuple[Any, float]]) -> list[Any]:
    """Remove scores that increase from rank to rank: some stores return distances as scores."""
    steps = [after[1] - before[1] for before, after in pairwise(pairs)]
    if any(step > 0 for step in steps) and all(step >= 0 for step in steps):
        return [document for document, _ in pairs]
    return pairs


def _changed_fields(retriever: Any, search: Search) -> tuple[dict[str, Any], set[str], int | None]:
    """Return new values of fields of a retriever, the accepted settings, and its own top_k."""
    declared = getattr(type(retriever), "model_fields", {})
    if "search_kwargs" in declared:
        search_kwargs = {**retriever.search_kwargs, "k": search.top_k}
        accepts = {"top_k"}
        has_threshold = getattr(retriever, "search_type", None) == "similarity_score_threshold"
        if has_threshold and search.score_threshold is not None:
            search_kwargs["score_threshold"] = search.score_threshold
            accepts.add("score_threshold")
        return {"search_kwargs": search_kwargs}, accepts, retriever.search_kwargs.get("k")
    name = next((name for name in TOP_K_NAMES if name in declared), None)
    if name is None:
        return {}, set(), None
    return {name: search.top_k}, {"top_k"}, getattr(retriever, name)
