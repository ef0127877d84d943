"""Measures that users declare."""

from __future__ import annotations

import inspect
import re
import traceback
from collections.abc import Callable, Iterable, Mapping
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
# Read as a cutoff, in the spelling of trec_eval or of benchmark scripts: Mine_10, mine_at_10.
_WITH_CUTOFF = re.compile(r".*_(?:(?:at|in_top)_)?\d+", re.IGNORECASE)
_COLUMNS = ("query_id", "query", "run", "measure")
"""Names of columns in tables of scores."""
_RESERVED = ("cutoff", "judged_only")
"""Parameters that the parser of names reads itself."""
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
    """Declare a measure: decorate the function that computes it.

    Afterwards the function itself or its name can be used wherever a measure is named. On the
    command line, `-m my_package.measures:mine@10` imports it.

    The function gets `hits`, the judged items of the ranked lists of all queries
    (`karat.measures.Hits`), and returns one finite number per query, in the order of the queries.
    If it has a parameter `k`, the measure takes a cutoff: an integer, or None for the whole list.
    All other parameters are parameters of the measure. They need a default, which is a bool, an
    int, a float or a str and decides which values are accepted.

    Args:
        name: The name that is printed and that finds the measure again: letters and digits, which
            `_` or `-` may separate. Names and aliases of other measures are refused.
        title: What `karat explain` and the reports call it. Default: the name.
        formula: How it is calculated, in one sentence. Default: the first line of the docstring.
        aliases: Other names.
        params: For each parameter, what it is for, as `karat explain` shows it.
        over_queries: How the values of the queries are combined: "mean", "geometric", "sum",
            "median", "p50", "p90", "p99" or "max".
        higher_is_better: Whether a higher value is better. Decides what "improved" means in
            comparisons, and whether a gate takes max_drop or max_rise.
        bounded: Whether all values are between 0 and 1. Such values are shown as bars, their
            intervals stay within 0 and 1, and other values are an error.
        binary: Whether all values are 0 or 1; other values are an error.
        edges: The value in edge cases, as `karat explain` shows it.
        differs: How the values of other tools differ, as `karat explain` shows it.
        cites: The publications that define it.

    Raises:
        MeasureError: If the name is not valid or taken, or the function cannot be used. Declaring
            the same function again, as in a notebook, replaces the earlier declaration.

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
    given = (name, *([aliases] if isinstance(aliases, str) else aliases))
    spellings = tuple({folded(str(each)): each for each in reversed(given)}.values())[::-1]
    if over_queries not in get_args(OverQueries):
        known = ", ".join(get_args(OverQueries))
        raise MeasureError(
            f"{over_queries!r} does not combine values of queries",
            field=f"{name}(over_queries=)",
            hint=f"choose one of {known}",
        )

    def declare(function: Function) -> Function:
        replaced = _replaced(function, spellings)
        takes_cutoff, found = _params(name, function, params or {})
        first_line = (inspect.getdoc(function) or "").partition("\n")[0]
        where = f"{getattr(function, '__module__', '?')}:{_qualified_name(function)}"

        def kernel(hits: Hits, k: int | None, **given: Any) -> Any:
            arguments = {"k": k, **given} if takes_cutoff else given
            return function(hits, **arguments)

        declaration = Declaration(
            name=name,
            title=title or name,
            formula=formula or first_line or f"see {where}",
            kernel=kernel,
            edges=edges,
            differs=differs,
            cutoff="optional" if takes_cutoff else "none",
            params=found,
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


def checked_values(measure: Measure, hits: Hits, query_ids: pl.Series, given: Flags) -> Floats:
    """Return the values of a measure that a user declared, or raise an error that names it."""
    try:
        returned = measure.declaration.kernel(hits.read_only(), measure.cutoff, **measure.params)
        values = np.asarray(returned)
    except Exception as error:
        raise _failed(measure, error) from error
    place = _place(measure)
    if values.shape != (hits.n_queries,) or values.dtype.kind not in "biuf":
        if values.shape == (hits.n_queries,):
            what = f"values of type {values.dtype}"
        elif values.ndim == 1:
            what = counted(values.size, "value")
        elif values.ndim == 0:
            what = f"one {type(returned).__name__}"
        else:
            what = f"an array of shape {values.shape}"
        raise MeasureError(
            f"the measure returned {what} for {counted(hits.n_queries, 'query')}",
            field=measure.name,
            hint="return one number per query: a list or an array, as long as hits.n_queries",
            **place,
        )
    values = values.astype(np.float64)
    declaration = measure.declaration
    wrong, hint = ~np.isfinite(values), "return a finite number; 0 if there is nothing to divide by"
    if not wrong[given].any() and declaration.binary:
        wrong, hint = (values != 0) & (values != 1), "return 0 or 1, or declare it without binary"
    elif not wrong[given].any() and declaration.bounded:
        wrong = (values < 0) | (values > 1 + 1e-9)
        hint = "return a number between 0 and 1, or declare it with bounded=False"
    if (wrong & given).any():
        at = int((wrong & given).argmax())
        raise MeasureError(
            f"the measure returned {values[at]:.6g} for query {query_ids[at]!r}",
            field=measure.name,
            hint=hint,
            **place,
        )
    return values


def _failed(measure: Measure, error: Exception) -> MeasureError:
    """Name the measure and the line of its code that failed."""
    frames = traceback.extract_tb(error.__traceback__)
    file = _place(measure).get("path")
    own = [frame for frame in frames if frame.filename == file]
    reason = f"{type(error).__name__}: {error}".removesuffix(": ")
    return MeasureError(
        f"the measure failed: {reason}",
        path=file,
        line=own[-1].lineno if own else None,
        field=measure.name,
        hint="karat --debug COMMAND … shows the traceback; in Python it is the cause of this error",
    )


def _place(measure: Measure) -> dict[str, Any]:
    """Return file and line of the function of a measure."""
    code = getattr(measure.declaration.function, "__code__", None)
    return {} if code is None else {"path": code.co_filename, "line": code.co_firstlineno}


def _params(name: str, function: Any, texts: Mapping[str, str]) -> tuple[bool, tuple[Param, ...]]:
    """Return whether a function takes a cutoff, and its other parameters."""
    try:
        hits, *others = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        raise MeasureError(
            f"{function!r} is not a function of hits",
            field=name,
            hint="write def mine(hits, k): …",
        ) from None
    by_name = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
    if hits.kind not in (inspect.Parameter.POSITIONAL_ONLY, by_name[0]):
        others.insert(0, hits)
    params = []
    for each in others:
        if each.name == "k" and each.kind in by_name:
            continue
        check = REL.convert if each.name == "rel" else _CHECKS.get(type(each.default))
        valid = each.kind in by_name and each.name.islower() and each.name not in _RESERVED
        if check is None or not valid or each.default is each.empty:
            raise MeasureError(
                f"the parameter {each.name!r} cannot be used",
                field=name,
                hint="besides hits and k, each parameter needs a name in lower case other than "
                f"{' and '.join(_RESERVED)}, and a default that is a bool, an int, a float or a "
                "str",
            )
        text = REL.help if each.name == "rel" else "see the function of the measure"
        params.append(Param(each.name, each.default, texts.get(each.name, text), check))
    unknown = [key for key in texts if key not in {param.name for param in params}]
    if unknown:
        raise MeasureError(
            f"its function has no parameter {unknown[0]!r}",
            field=f"{name}(params=)",
            hint="describe the parameters of the function, without hits and k",
        )
    return any(each.name == "k" for each in others), tuple(params)


def _replaced(function: Any, spellings: tuple[str, ...]) -> Declaration | None:
    """Check the names of a measure; return the earlier declaration of the same function."""
    for spelling in spellings:
        _check_name(spelling)
        known = declared(spelling)
        if known is None:
            continue
        if known.function is None:
            raise MeasureError(
                f"{spelling!r} is a measure of karat: {known.title}", hint="choose another name"
            )
        if known.name != spellings[0] or not _is_same(known.function, function):
            raise MeasureError(
                f"{spelling!r} is already declared, as {known.name} by "
                f"{known.function.__module__}:{_qualified_name(known.function)}",
                hint="choose another name",
            )
    return declared(spellings[0])


def _check_name(name: Any) -> None:
    is_name = isinstance(name, str) and _NAME.fullmatch(name)
    if not is_name or _WITH_CUTOFF.fullmatch(name) or name.lower() in _COLUMNS:
        raise MeasureError(
            f"{name!r} cannot be the name of a measure",
            hint="use letters and digits, with _ or - between them; a number at the end is a "
            f"cutoff, and {', '.join(_COLUMNS)} are columns of tables",
        )


def _is_same(old: Any, new: Any) -> bool:
    """Return whether a function is the same one, defined again: a notebook cell that ran twice."""
    if old is new:
        return True
    names = [(getattr(each, "__module__", None), _qualified_name(each)) for each in (old, new)]
    if names[0] != names[1]:
        return False
    if "<" not in names[0][1]:
        return True
    # Functions inside functions, and lambdas, share their names: their code must be the same.
    codes = [getattr(each, "__code__", each) for each in (old, new)]
    return codes[0] == codes[1] and new.__closure__ is None


def _qualified_name(function: Any) -> str:
    return getattr(function, "__qualname__", type(function).__qualname__)
