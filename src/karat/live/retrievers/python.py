"""Python retrievers: functions, classes, any object with a search method, objects of libraries."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from functools import partial
from typing import Any

from karat.errors import InputError
from karat.live.protocol import Answer, AttemptError, Query, Retriever, Search
from karat.live.resume import SOURCE
from karat.live.retrievers import haystack, lancedb, langchain, llama_index
from karat.live.retrievers.answers import Fields, parse_answer
from karat.live.retrievers.callables import (
    BoundCall,
    bind_settings,
    parameters_of,
    qualified_name,
    returns_awaitable,
)

_ADAPTERS: tuple[Callable[[Any, Search], BoundCall | None], ...] = (
    langchain.adapt,
    llama_index.adapt,
    haystack.adapt,
    lancedb.adapt,
)
# The first of these methods that an object has is called. Those that start with "a" must be async
# functions: one that only looks async would block the event loop.
_METHODS = ("aretrieve", "retrieve", "asearch", "search")
_SUPPORTED = (
    "a function (query, top_k); an object with a method retrieve or search; a LangChain retriever "
    "or vector store; a LlamaIndex retriever, index or query engine; a Haystack pipeline or "
    "retriever; a LanceDB table; a function without parameters that returns one of these; a class "
    "that creates one of these when it is called without arguments"
)


def is_retriever(target: Any) -> bool:
    """Return whether an object may be a retriever; a number, for example, never is."""
    from karat.live.retrievers.search_engines.engine import SearchEngine

    if isinstance(target, SearchEngine):
        return True
    names = (*_METHODS, "invoke", "similarity_search", "query", "as_retriever", "run")
    return callable(target) or any(callable(getattr(target, name, None)) for name in names)


class PythonRetriever(Retriever):
    """A Python object that is called with the text of a query."""

    def __init__(
        self,
        target: Any,
        search: Search,
        fields: Fields,
        *,
        name: str | None = None,
        source: str | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        bound = _bind(target, search)
        self.name = name or qualified_name(target)
        self.is_async = bound.is_async
        self.accepts = bound.accepts
        all_settings = {
            **(settings or {}),
            "fields": fields.as_dict() if fields.paths else None,
            SOURCE: source,
            "own_top_k": bound.own_top_k,
        }
        self.settings = {name: value for name, value in all_settings.items() if value is not None}
        self._call = bound.call
        self._fields = fields

    def retrieve(self, query: Query) -> Any:
        """Call the object. An iterator is read to its end, because that is part of the search."""
        if self.is_async:
            return self._retrieve_async(query.text)
        return _read_iterator(self._call(query.text))

    def parse(self, response: Any) -> Answer:
        """Convert the returned object."""
        return parse_answer(response, self._fields)

    async def _retrieve_async(self, text: str) -> Any:
        response = self._call(text)
        if inspect.isawaitable(response):
            response = await response
        if isinstance(response, AsyncIterator):
            return [item async for item in response]
        return _read_iterator(response)


def _read_iterator(response: Any) -> Any:
    if inspect.isawaitable(response):
        if inspect.iscoroutine(response):
            response.close()
        raise AttemptError(
            "BadAnswer",
            "a function that is not async returned an awaitable; define it with async def",
            retryable=False,
        )
    return list(response) if isinstance(response, Iterator) else response


def _bind(target: Any, search: Search, *, is_created: bool = False) -> BoundCall:
    """Return how to call a retriever; a class or factory is called once to create it."""
    for adapt in _ADAPTERS:
        if (bound := adapt(target, search)) is not None:
            return bound
    if not is_created and (inspect.isclass(target) or _is_factory(target)):
        return _bind(_create(target), search, is_created=True)
    if callable(target) and not inspect.isclass(target):
        return bind_settings(target, search)
    for name in _METHODS:
        method = getattr(target, name, None)
        if callable(method) and (returns_awaitable(method) or not name.startswith("a")):
            return bind_settings(method, search)
    raise InputError(
        f"an object of type {type(target).__name__} is not a retriever",
        field="retriever",
        hint=f"pass one of these: {_SUPPORTED}",
    )


def _is_factory(target: Any) -> bool:
    """Return whether this is a function without parameters, which can only create a retriever."""
    is_function = inspect.isroutine(target) or isinstance(target, partial)
    return is_function and parameters_of(target) == []


def _create(factory: Callable[[], Any]) -> Any:
    if returns_awaitable(factory) and not inspect.isclass(factory):
        raise InputError(
            f"{qualified_name(factory)} is async and has no parameter for the query",
            field="retriever",
            hint="if the function answers queries, make the query its first parameter; if it "
            "creates the retriever, define it without async",
        )
    try:
        return factory()
    except Exception as error:
        raise InputError(
            f"{qualified_name(factory)}() failed: {type(error).__name__}: {error}",
            field="retriever",
            hint="karat calls a class without arguments; if it needs arguments, pass an instance, "
            "or a function without parameters that returns an instance",
        ) from error
