"""Retrievers written in Python: functions, classes and objects, and those of other libraries."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from typing import Any

from karat.errors import InputError
from karat.live.protocol import Answer, AttemptError, Query, Retriever, Search
from karat.live.resume import SOURCE
from karat.live.retrievers import haystack, lancedb, langchain, llama_index
from karat.live.retrievers.answers import Fields, answer_of
from karat.live.retrievers.callables import Caller, caller_of, returns_awaitable, shown, signature

_LIBRARIES: tuple[Callable[[Any, Search], Caller | None], ...] = (
    langchain.asking,
    llama_index.asking,
    haystack.asking,
    lancedb.asking,
)
# Of an object that is no function, the first of these that it has is asked. A method that is
# async in name only would hold up all others, so it must be a coroutine function.
_METHODS = ("aretrieve", "retrieve", "asearch", "search")
_ACCEPTED = (
    "a function (query, top_k), an object with retrieve or search, a class or a function without "
    "parameters that makes one, a retriever or vector store of LangChain, a retriever, index or "
    "query engine of LlamaIndex, a pipeline or retriever of Haystack, a table of LanceDB"
)


def is_retriever(given: Any) -> bool:
    """Tell something that may be a retriever from what never is one, such as a number."""
    names = (*_METHODS, "invoke", "similarity_search", "query", "as_retriever", "run")
    return callable(given) or any(callable(getattr(given, name, None)) for name in names)


class PythonRetriever(Retriever):
    """Something in Python that is called with the text of a query."""

    def __init__(
        self,
        given: Any,
        search: Search,
        fields: Fields,
        *,
        name: str | None = None,
        source: str | None = None,
    ) -> None:
        found = _asking(given, search)
        self.name = name or shown(given)
        self.is_async = found.is_async
        self.takes = found.takes
        settings = {
            "fields": fields.as_dict() if fields.paths else None,
            SOURCE: source,
            "own_top_k": found.own_top_k,
        }
        self.settings = {name: value for name, value in settings.items() if value is not None}
        self._call = found.call
        self._fields = fields

    def ask(self, question: Query) -> Any:
        """Call it; what it yields is taken to the end, since that too is its work."""
        if self.is_async:
            return self._awaited(question.text)
        return _taken(self._call(question.text))

    def read(self, returned: Any) -> Answer:
        """Bring what it returned into karat's words."""
        return answer_of(returned, self._fields)

    async def _awaited(self, text: str) -> Any:
        returned = self._call(text)
        if inspect.isawaitable(returned):
            returned = await returned
        if isinstance(returned, AsyncIterator):
            return [item async for item in returned]
        return _taken(returned)


def _taken(returned: Any) -> Any:
    if inspect.isawaitable(returned):
        if inspect.iscoroutine(returned):
            returned.close()
        raise AttemptError(
            "BadAnswer",
            "it returned what must be awaited, and is no async function; define it with async def",
            again=False,
        )
    return list(returned) if isinstance(returned, Iterator) else returned


def _asking(given: Any, search: Search, *, made: bool = False) -> Caller:
    """Find how something is asked; what makes retrievers is called once, here."""
    for recognise in _LIBRARIES:
        if (found := recognise(given, search)) is not None:
            return found
    if not made and (inspect.isclass(given) or _makes_one(given)):
        return _asking(_made(given), search, made=True)
    if callable(given) and not inspect.isclass(given):
        return caller_of(given, search)
    for name in _METHODS:
        method = getattr(given, name, None)
        if callable(method) and (returns_awaitable(method) or not name.startswith("a")):
            return caller_of(method, search)
    raise InputError(
        f"what is of type {type(given).__name__} is no retriever",
        field="retriever",
        hint=f"give {_ACCEPTED}",
    )


def _makes_one(given: Any) -> bool:
    """Tell a function without any parameter: it can only make a retriever."""
    return (inspect.isroutine(given) or isinstance(given, partial)) and signature(given) == []


def _made(make: Callable[[], Any]) -> Any:
    if returns_awaitable(make) and not inspect.isclass(make):
        raise InputError(
            f"{shown(make)} is async and takes no query",
            field="retriever",
            hint="let its first parameter be the query; or make the retriever in a plain function",
        )
    try:
        return make()
    except Exception as error:
        raise InputError(
            f"{shown(make)}() failed: {type(error).__name__}: {error}",
            field="retriever",
            hint="it is called without arguments; give an object that is made, or a function "
            "without parameters that makes it",
        ) from error
