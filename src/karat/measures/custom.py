"""Measures that users declare with `@karat.measure`."""

from __future__ import annotations

import inspect
import re
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Literal, TypeVar, get_args

import numpy as np
import polars as pl

from karat.arrays import Flags, Floats
from karat.errors import MeasureError, counted
from karat.match.hits import Hits
from karat.measures.registry import (
    REL,
    Declaration,
    Measure,
    Param,
    declared,
    flag,
    folded,
    integer,
    number,
    register,
    word,
)

OverQueries = Literal["mean", "geometric", "sum", "median", "p50", "p90", "p99", "max"]
Function = TypeVar("Function", bound=Callable[..., Any])

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:[_-][A-Za-z0-9]+)*")
# These endings are parsed as cutoffs: Mine_10 as in trec_eval, mine_at_10 as in scripts.
_WITH_CUTOFF = re.compile(r".*_(?:(?:at|in_top)_)?\d+", re.IGNORECASE)
_COLUMNS = ("query_id", "query", "run", "measure")
"""Columns in tables of scores, which cannot be names of measures."""
_RESERVED = ("cutoff", "judged_only")
"""Parameters that the name parser handles itself."""
_CHECKS: dict[type, Callable[[Any], Any]] = {bool: flag, int: integer, float: number, str: word}


def measure(
    name: str,
    *,
    title: str | None = None,
    formula: str | None = None,
    aliases: Iterable[str] = (),
    params: Mapping[str, str] | None = None,
    over_queries: OverQueries = "mean",
    higher_is_better: bool = True,
    bounded: bool = True,
    binary: bool = False,
    edges: str = "as its function defines them",
    differs: str = "a measure of your own",
    cites: Iterable[str] = (),
) -> Callable[[Function], Function]:
    """Declare a measure by decorating the function that computes it.

    The function itself or its name can then be used wherever a measure is expected. On the command
    line, `-m my_package.measures:mine@10` imports it.

    The first argument of the function is `hits`, the judged items in the ranked lists of all
    queries (`karat.measures.Hits`). It returns one finite number per query, in the order of the
    queries. If it has a parameter `k`, the measure takes a cutoff: an integer, or None for the
    whole list. All other parameters are parameters of the measure. They need a default that is a
    bool, an int, a float or a str; its type determines which values are accepted.

    Parameters
    ----------
    name : str
        The name of the measure: letters and digits, with `_` or `-` between them. It must not be a
        name or an alias of another measure.
    title : str, optional
        The title in `karat explain` and reports. Default: the name.
    formula : str, optional
        How the value is computed, in one sentence. Default: the first line of the docstring.
    aliases : iterable of str, default ()
        Other names of the measure.
    params : mapping of str to str, optional
        A description of each parameter, for `karat explain`.
    over_queries : str, default "mean"
        How the values of the queries are combined: "mean", "geometric", "sum", "median", "p50",
        "p90", "p99" or "max".
    higher_is_better : bool, default True
        Whether higher values are better. Determines what "improved" means in comparisons, and
        whether a gate uses max_drop or max_rise.
    bounded : bool, default True
        Whether all values are between 0 and 1. If so, other values are an error, values are shown
        as bars, and confidence intervals stay between 0 and 1.
    binary : bool, default False
        Whether all values are 0 or 1. If so, other values are an error.
    edges : str, default "as its function defines them"
        The value in edge cases, for `karat explain`.
    differs : str, default "a measure of your own"
        How it differs from the measures of other tools, for `karat explain`.
    cites : iterable of str, default ()
        The publications that define the measure.

    Returns
    -------
    callable
        A decorator that returns the function unchanged.

    Raises
    ------
    MeasureError
        If the name is not valid or already in use, or if the function cannot be used. Declaring
        the same function again, as in a notebook, replaces the earlier declaration.

    Examples
    --------
    >>> import karat
    >>> @karat.measure("BestGrade", bounded=False)
    ... def best_grade(hits, k):
    ...     "The highest grade in the top k, or 0."
    ...     return [max(grades, default=0) for grades in hits.grades(k)]
    >>> gold, run = {"q1": {"a": 1, "b": 3}}, {"q1": ["a", "x", "b"]}
    >>> scores = karat.evaluate(gold, run, ["P@2", best_grade, "BestGrade@2"])
    >>> scores["BestGrade"], scores["BestGrade@2"]
    (3.0, 1.0)
    """
    spellings = _distinct_spellings(name, [aliases] if isinstance(aliases, str) else aliases)
    if over_queries not in get_args(OverQueries):
        raise MeasureError(
            f"must be one of {', '.join(get_args(OverQueries))}, got {over_queries!r}",
            field=f"{name}: over_queries",
            hint='use the default, "mean", if you are not sure',
        )

    def declare(function: Function) -> Function:
        replaced = _replaced(function, spellings)
        takes_cutoff, declared_params = _params(name, function, params or {})
        first_line = (inspect.getdoc(function) or "").partition("\n")[0]
        import_path = f"{getattr(function, '__module__', '?')}:{_qualified_name(function)}"

        def kernel(hits: Hits, k: int | None, **arguments: Any) -> Any:
            if takes_cutoff:
                return function(hits, k=k, **arguments)
            return function(hits, **arguments)

        declaration = Declaration(
            name=name,
            title=title or name,
            formula=formula or first_line or f"see {import_path}",
            kernel=kernel,
            edges=edges,
            differs=differs,
            cutoff="optional" if takes_cutoff else "none",
            params=declared_params,
            aliases=spellings[1:],
            cites=tuple(cites),
            combine=over_queries,
            higher_is_better=higher_is_better,
            binary=binary,
            unbounded=not bounded and not binary,
            function=function,
        )
        register(declaration, replaced)
        return function

    return declare


def checked_values(measure: Measure, hits: Hits, query_ids: pl.Series, is_used: Flags) -> Floats:
    """Return the values of a measure that a user declared, or raise an error that names it.

    Only the values of queries in `is_used` must be valid.
    """
    try:
        returned = measure.declaration.kernel(hits.read_only(), measure.cutoff, **measure.params)
        values = np.asarray(returned)
    except Exception as error:
        raise _failed(measure, error) from error
    if values.shape != (hits.n_queries,) or values.dtype.kind not in "biuf":
        raise MeasureError(
            f"the measure returned {_describe(returned, values, hits.n_queries)} for "
            f"{counted(hits.n_queries, 'query')}",
            field=measure.name,
            hint="return a list or an array with one number per query (hits.n_queries)",
            **_location(measure),
        )
    values = values.astype(np.float64)
    for is_wrong, hint in _value_checks(measure.declaration, values):
        if (is_wrong & is_used).any():
            at = int((is_wrong & is_used).argmax())
            raise MeasureError(
                f"the measure returned {values[at]:.6g} for query {query_ids[at]!r}",
                field=measure.name,
                hint=hint,
                query=query_ids[at],
                **_location(measure),
            )
    return values


def _describe(returned: Any, values: np.ndarray[Any, Any], n_queries: int) -> str:
    if values.shape == (n_queries,):
        return f"values of type {values.dtype}"
    if values.ndim == 1:
        return counted(values.size, "value")
    if values.ndim == 0:
        return f"one {type(returned).__name__}"
    return f"an array of shape {values.shape}"


def _value_checks(declaration: Declaration, values: Floats) -> Iterator[tuple[Flags, str]]:
    """Yield which values are not valid, and how to fix them."""
    yield ~np.isfinite(values), "return a finite number, for example 0 instead of dividing by 0"
    if declaration.binary:
        is_other: Flags = (values != 0) & (values != 1)
        yield is_other, "return 0 or 1, or remove binary=True from the declaration"
    elif declaration.bounded:
        is_outside: Flags = (values < 0) | (values > 1 + 1e-9)
        yield (
            is_outside,
            ("return a number between 0 and 1, or declare the measure with bounded=False"),
        )


def _distinct_spellings(name: str, aliases: Iterable[str]) -> tuple[str, ...]:
    """Return the name and its aliases, without aliases that only repeat another spelling."""
    spellings: dict[str, str] = {}
    for spelling in (name, *aliases):
        spellings.setdefault(folded(str(spelling)), spelling)
    return tuple(spellings.values())


def _failed(measure: Measure, error: Exception) -> MeasureError:
    """Return the error for a measure that raised an exception, with the line of its code."""
    frames = traceback.extract_tb(error.__traceback__)
    file = _location(measure).get("path")
    own_frames = [frame for frame in frames if frame.filename == file]
    reason = f"{type(error).__name__}: {error}".removesuffix(": ")
    return MeasureError(
        f"the measure raised {reason}",
        path=file,
        line=own_frames[-1].lineno if own_frames else None,
        field=measure.name,
        hint="run `karat --debug COMMAND …` to show the traceback; in Python, the original "
        "exception is the __cause__ of this error",
    )


def _location(measure: Measure) -> dict[str, Any]:
    """Return the file and line where the function of a measure is defined."""
    code = getattr(measure.declaration.function, "__code__", None)
    return {} if code is None else {"path": code.co_filename, "line": code.co_firstlineno}


def _params(
    name: str, function: Any, descriptions: Mapping[str, str]
) -> tuple[bool, tuple[Param, ...]]:
    """Return whether a function takes a cutoff, and its other parameters."""
    arguments = _arguments_after_hits(name, function)
    params = tuple(
        _param(name, argument, descriptions) for argument in arguments if not _is_cutoff(argument)
    )
    param_names = {param.name for param in params}
    for described in descriptions:
        if described not in param_names:
            raise MeasureError(
                f"the function has no parameter {described!r}",
                field=f"{name}: params",
                hint="describe only parameters of the function other than hits and k",
            )
    return any(argument.name == "k" for argument in arguments), params


_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def _arguments_after_hits(name: str, function: Any) -> list[inspect.Parameter]:
    try:
        hits, *arguments = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        raise MeasureError(
            f"a measure must be a function with the parameter hits, got {function!r}",
            field=name,
            hint="write def mine(hits, k): …",
        ) from None
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return arguments if hits.kind in positional else [hits, *arguments]


def _is_cutoff(argument: inspect.Parameter) -> bool:
    return argument.name == "k" and argument.kind in _BY_NAME


def _param(name: str, argument: inspect.Parameter, descriptions: Mapping[str, str]) -> Param:
    is_rel = argument.name == "rel"
    check = REL.convert if is_rel else _CHECKS.get(type(argument.default))
    is_valid_name = argument.name.islower() and argument.name not in _RESERVED
    has_default = argument.default is not argument.empty
    if check is None or argument.kind not in _BY_NAME or not is_valid_name or not has_default:
        raise MeasureError(
            f"the parameter {argument.name!r} of the function is not supported",
            field=name,
            hint="every parameter except hits and k needs a lower-case name "
            f"(not {' or '.join(_RESERVED)}) and a default of type bool, int, float or str",
        )
    default_help = REL.help if is_rel else "see the function that defines the measure"
    help_text = descriptions.get(argument.name, default_help)
    return Param(argument.name, argument.default, help_text, check)


def _replaced(function: Any, spellings: tuple[str, ...]) -> Declaration | None:
    """Check the names of a measure; return the earlier declaration of the same function."""
    for spelling in spellings:
        _check_name(spelling)
        earlier = declared(spelling)
        if earlier is None:
            continue
        if earlier.function is None:
            raise MeasureError(
                f"{spelling!r} is a built-in measure: {earlier.title}", hint="choose another name"
            )
        if earlier.name != spellings[0] or not _is_same(earlier.function, function):
            raise MeasureError(
                f"the name {spelling!r} is already used by another measure, declared by "
                f"{earlier.function.__module__}:{_qualified_name(earlier.function)}",
                hint="choose another name",
            )
    return declared(spellings[0])


def _check_name(name: Any) -> None:
    is_name = isinstance(name, str) and _NAME.fullmatch(name)
    if not is_name or _WITH_CUTOFF.fullmatch(name) or name.lower() in _COLUMNS:
        raise MeasureError(
            f"{name!r} is not a valid name for a measure",
            hint="use letters and digits, with _ or - between them; the name must not end with a "
            f"cutoff such as _10, and must not be one of {', '.join(_COLUMNS)}",
        )


def _is_same(old: Any, new: Any) -> bool:
    """Return whether two functions are the same one, defined twice by a notebook cell."""
    if old is new:
        return True
    if getattr(old, "__module__", None) != getattr(new, "__module__", None):
        return False
    if _qualified_name(old) != _qualified_name(new):
        return False
    if "<" not in _qualified_name(old):
        return True
    # Lambdas and functions inside functions can have the same name: their code must be the same.
    is_same_code: bool = getattr(old, "__code__", old) == getattr(new, "__code__", new)
    return is_same_code and new.__closure__ is None


def _qualified_name(function: Any) -> str:
    return getattr(function, "__qualname__", type(function).__qualname__)
