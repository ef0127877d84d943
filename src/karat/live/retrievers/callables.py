"""How a Python callable is called with the text of a query and the search settings.

What is in this file:

- `BoundCall` is a callable that needs only the text of a query. `bind_settings` makes one from any
  function by the names of its parameters; the adapters of libraries make their own.
- `has_base`, `parameters_of`, `returns_awaitable` and `qualified_name` inspect objects, for the
  adapters of libraries and for messages.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from inspect import Parameter
from typing import Any

from karat.errors import InputError
from karat.live.protocol import SEARCH_SETTINGS, Search

TOP_K_NAMES = ("top_k", "k", "limit", "topk", "n_results")
QUERY_NAMES = ("query", "question", "q", "text", "input", "query_text", "query_str")
_POSITIONAL = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
_KEYWORD = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)


@dataclass(frozen=True)
class BoundCall:
    """A callable that needs only the text of a query; its other arguments are bound."""

    call: Callable[[str], Any]
    is_async: bool = False
    accepts: frozenset[str] = frozenset()
    """Names of the search settings that are passed to it."""
    own_top_k: int | None = None
    """The number of results that the retriever itself is set to, which `top_k` replaces."""


def bind_settings(function: Callable[..., Any], search: Search) -> BoundCall:
    """Pass the search settings to a function by the names of its parameters.

    The query is the first parameter. `top_k` may have one of several names, or is the second
    parameter if that is required. `**kwargs` gets the settings that the user has set.
    """
    is_async = returns_awaitable(function)
    parameters = parameters_of(function)
    if parameters is None:  # written in C, without a signature
        return BoundCall(function, is_async)
    query_is_positional, query = _query_parameter(function, parameters)
    rest = [parameter for parameter in parameters if parameter is not query]
    assigned = _assign_settings(rest, search, query_is_positional=query_is_positional)
    _require_all_assigned(function, rest, assigned)
    positional_only = {p.name for p in rest if p.kind is Parameter.POSITIONAL_ONLY}
    positional: list[Any] = []
    keywords: dict[str, Any] = {}
    for setting, name in assigned.items():
        if name in positional_only:
            positional.append(getattr(search, setting))
        else:
            keywords[name] = getattr(search, setting)
    accepts = frozenset(assigned)
    if any(parameter.kind is Parameter.VAR_KEYWORD for parameter in rest):
        keywords |= {name: getattr(search, name) for name in search.explicit - accepts}
        accepts |= search.explicit
    if query_is_positional:
        return BoundCall(lambda text: function(text, *positional, **keywords), is_async, accepts)
    query_name = "query" if query is None else query.name

    def call(text: str) -> Any:
        return function(**{query_name: text}, **keywords)

    return BoundCall(call, is_async, accepts)


def _query_parameter(
    function: Callable[..., Any], parameters: list[Parameter]
) -> tuple[bool, Parameter | None]:
    """Return whether the query is a positional argument, and its parameter if it has a name."""
    first = next((p for p in parameters if p.kind in _POSITIONAL), None)
    kinds = {p.kind for p in parameters}
    if first is not None or Parameter.VAR_POSITIONAL in kinds:
        return True, first
    keyword = next((p for p in parameters if p.name in QUERY_NAMES), None)
    if keyword is None and Parameter.VAR_KEYWORD not in kinds:
        raise InputError(
            f"{qualified_name(function)} has no parameter for the query",
            field="retriever",
            hint="make the text of the query its first parameter",
        )
    return False, keyword


def _assign_settings(
    rest: list[Parameter], search: Search, *, query_is_positional: bool
) -> dict[str, str]:
    """Return the parameter name for each setting that the function accepts."""
    by_name = {p.name: p for p in rest if p.kind in _KEYWORD}
    assigned: dict[str, str] = {}
    for setting in SEARCH_SETTINGS:
        names = TOP_K_NAMES if setting == "top_k" else (setting,)
        name = next((name for name in names if name in by_name), None)
        if name is None:
            continue
        # A threshold that is not set does not replace the default of the function.
        if getattr(search, setting) is not None or _is_required(by_name[name]):
            assigned[setting] = name
    second = next((p for p in rest if p.kind in _POSITIONAL and query_is_positional), None)
    if second and _is_required(second) and second.name not in assigned.values():
        assigned.setdefault("top_k", second.name)
    return assigned


def _require_all_assigned(
    function: Callable[..., Any], rest: list[Parameter], assigned: dict[str, str]
) -> None:
    for parameter in rest:
        if _is_required(parameter) and parameter.name not in assigned.values():
            raise InputError(
                f"{qualified_name(function)} has a required parameter {parameter.name!r}, for "
                "which karat has no value",
                field="retriever",
                hint="use the parameters (query, top_k), and give all others a default or bind "
                "them with functools.partial",
            )


def _is_required(parameter: Parameter) -> bool:
    return parameter.default is Parameter.empty and parameter.kind not in (
        Parameter.VAR_POSITIONAL,
        Parameter.VAR_KEYWORD,
    )


def has_base(target: Any, package: str, *names: str) -> bool:
    """Return whether an object has a (base) class with one of these names from a package.

    Only the start of the name of the package is compared, and nothing is imported: `langchain`
    also matches `langchain_core`.
    """
    return any(
        base.__name__ in names and base.__module__.partition(".")[0].startswith(package)
        for base in type(target).__mro__
    )


def parameters_of(function: Callable[..., Any]) -> list[Parameter] | None:
    """Return the parameters of a function, or None if it has no signature."""
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return None


def returns_awaitable(function: Any) -> bool:
    """Return whether this is an async function, or an object with an async `__call__`."""
    method = getattr(function, "__call__", None)  # noqa: B004
    return any(
        inspect.iscoroutinefunction(candidate) or _is_async_generator(candidate)
        for candidate in (function, method)
    )


def _is_async_generator(function: Any) -> bool:
    while isinstance(function, partial):
        function = function.func
    return inspect.isasyncgenfunction(function)


def qualified_name(target: Any) -> str:
    """Return `module:name` of an object or its class; it is the same in every process."""
    while isinstance(target, partial):
        target = target.func
    definition = target if hasattr(target, "__qualname__") else type(target)
    module = getattr(definition, "__module__", None)  # methods of built-in types have none
    name = str(definition.__qualname__)
    return f"{module}:{name}" if module else name
