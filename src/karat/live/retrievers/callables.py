"""How something in Python is called with a query and the settings of a search."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from inspect import Parameter
from typing import Any

from karat.errors import InputError
from karat.live.protocol import SEARCH_SETTINGS, Search


def is_a(given: Any, package: str, *names: str) -> bool:
    """Tell whether a class of this name, of a package that begins so, is above an object."""
    return owner(given, lambda kind: kind.__name__ in names, package) is not None


def owner(given: Any, wanted: Any, package: str = "") -> type | None:
    """Return the first class of an object that is wanted and is of the package."""
    for kind in type(given).__mro__:
        if kind.__module__.partition(".")[0].startswith(package) and wanted(kind):
            return kind
    return None


TOP_K = ("top_k", "k", "limit", "topk", "n_results")
QUERY = ("query", "question", "q", "text", "input", "query_text", "query_str")
_BY_PLACE = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
_BY_NAME = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)


@dataclass(frozen=True)
class Caller:
    """A call that needs the text of a query alone, and what was handed to it beside."""

    call: Callable[[str], Any]
    is_async: bool = False
    takes: frozenset[str] = frozenset()
    own_top_k: int | None = None
    """The number of results that the retriever itself is set to, which `top_k` replaces."""


def caller_of(function: Callable[..., Any], search: Search) -> Caller:
    """Hand the settings to a function by the names of its parameters.

    The query is the first parameter. top_k goes by several names, or is the second parameter that
    must be given. `**kwargs` takes what somebody set.
    """
    is_async = returns_awaitable(function)
    parameters = signature(function)
    if parameters is None:  # written in C, and silent about what it takes
        return Caller(function, is_async)
    by_place, query = _query_place(function, parameters)
    rest = [p for p in parameters if p is not query]
    handed = _handed(rest, search, second_by_place=by_place)
    for parameter in rest:
        if _is_needed(parameter) and parameter.name not in handed.values():
            raise InputError(
                f"{shown(function)} needs {parameter.name!r}, which karat has nothing for",
                field="retriever",
                hint="take (query, top_k), and give the rest a default or bind it: "
                "functools.partial",
            )
    values = {s: getattr(search, s) for s in handed}
    positional = [values[s] for s in handed if _only_by_place(handed[s], rest)]
    named = {handed[s]: values[s] for s in handed if not _only_by_place(handed[s], rest)}
    if any(p.kind is Parameter.VAR_KEYWORD for p in rest):
        named |= {s: getattr(search, s) for s in search.given - handed.keys()}
        handed = handed | {s: s for s in search.given}
    takes = frozenset(handed)
    if not by_place:
        name = "query" if query is None else query.name

        def called(text: str) -> Any:
            return function(**{name: text}, **named)

        return Caller(called, is_async, takes)
    return Caller(lambda text: function(text, *positional, **named), is_async, takes)


def signature(function: Callable[..., Any]) -> list[Parameter] | None:
    """Return the parameters of a function, None where it does not tell."""
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return None


def returns_awaitable(function: Any) -> bool:
    """Tell an async function, or an object that is called like one."""
    called = getattr(function, "__call__", None)  # noqa: B004
    return any(
        test(one)
        for one in (function, called)
        for test in (inspect.iscoroutinefunction, _yields_async)
    )


def shown(given: Any) -> str:
    """Name something by where it was defined, without what changes from run to run."""
    while isinstance(given, partial):
        given = given.func
    named = given if hasattr(given, "__qualname__") else type(given)
    module = getattr(named, "__module__", None)  # methods of built-in types have none
    return f"{module}:{named.__qualname__}" if module else str(named.__qualname__)


def _yields_async(function: Any) -> bool:
    while isinstance(function, partial):
        function = function.func
    return inspect.isasyncgenfunction(function)


def _query_place(
    function: Callable[..., Any], parameters: list[Parameter]
) -> tuple[bool, Parameter | None]:
    """Find where the query goes: whether by place, and to which parameter, if it has a name."""
    first = next((p for p in parameters if p.kind in _BY_PLACE), None)
    kinds = {p.kind for p in parameters}
    if first is not None or Parameter.VAR_POSITIONAL in kinds:
        return True, first
    named = next((p for p in parameters if p.name in QUERY), None)
    if named is None and Parameter.VAR_KEYWORD not in kinds:
        raise InputError(
            f"{shown(function)} takes no query",
            field="retriever",
            hint="let its first parameter be the text of the query",
        )
    return False, named


def _handed(rest: list[Parameter], search: Search, *, second_by_place: bool) -> dict[str, str]:
    """Return which parameter takes which setting."""
    names = {p.name: p for p in rest if p.kind in _BY_NAME}
    handed: dict[str, str] = {}
    for setting in SEARCH_SETTINGS:
        known = TOP_K if setting == "top_k" else (setting,)
        name = next((name for name in known if name in names), None)
        # A threshold that nobody set leaves the default of the function alone.
        unset = getattr(search, setting) is None and name and not _is_needed(names[name])
        if name is not None and not unset:
            handed[setting] = name
    second = next((p for p in rest if p.kind in _BY_PLACE and second_by_place), None)
    if second and _is_needed(second) and second.name not in handed.values():
        handed.setdefault("top_k", second.name)
    return handed


def _only_by_place(name: str, rest: list[Parameter]) -> bool:
    return any(p.name == name and p.kind is Parameter.POSITIONAL_ONLY for p in rest)


def _is_needed(parameter: Parameter) -> bool:
    return parameter.default is Parameter.empty and parameter.kind not in (
        Parameter.VAR_POSITIONAL,
        Parameter.VAR_KEYWORD,
    )
