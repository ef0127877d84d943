"""The same numbers for groups of queries."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import chain, count
from typing import Any

import numpy as np
import polars as pl

from karat.arrays import Floats
from karat.checks import did_you_mean
from karat.errors import InputError
from karat.measures.score_table import ScoreTable
from karat.stats.power import ALPHA
from karat.stats.summary import SUMMARY, summary

Field = str | Callable[[Mapping[str, Any]], Any]
"""A field of the queries, or a function that makes a label of a query's fields."""
FEW = 5
"""Groups of fewer queries are marked: their numbers say little."""
_TAKEN = (*SUMMARY, "small")


def fields_of(by: Field | Sequence[Field] | None) -> tuple[Field, ...]:
    """Return the fields that are asked for, of which one need not be in a list."""
    if by is None:
        return ()
    return (by,) if isinstance(by, str) or callable(by) else tuple(by)


def summary_by(
    table: ScoreTable,
    queries: pl.DataFrame,
    fields: Sequence[Field],
    *,
    intervals: bool = True,
) -> pl.DataFrame:
    """Summarise the table for each value of the fields, sorted by them.

    `small` marks values that rest on fewer than 5 queries.
    """
    known = queries.filter(pl.col("query_id").is_in(table.frame["query_id"].implode()))
    parts = [
        summary(select_queries(table, members), intervals=intervals).select(*group, pl.all())
        for group, members in group_queries(known, fields)
    ]
    return pl.concat(parts).with_columns((pl.col("n") < FEW).alias("small"))


def select_queries(table: ScoreTable, query_ids: pl.Series) -> ScoreTable:
    """Return the rows of some queries."""
    return table.rows(table.frame["query_id"].is_in(query_ids.implode()).arg_true())


def group_queries(
    queries: pl.DataFrame, fields: Sequence[Field], taken: Collection[str] = _TAKEN
) -> Iterator[tuple[list[pl.Expr], pl.Series]]:
    """Yield each group, sorted: its labels as columns, and the ids of its queries.

    `taken` are the names of the columns that the labels will stand beside.
    """
    labelled = _labelled(queries, list(dict.fromkeys(fields)), taken)
    if labelled.is_empty():
        raise InputError(
            "there is no query to group", field="by", hint="see that gold and run share queries"
        )
    names = labelled.columns[1:]
    labelled = labelled.sort(names, nulls_last=True)
    for key, part in labelled.partition_by(names, as_dict=True, maintain_order=True).items():
        labels = [
            pl.lit(value, dtype=labelled.schema[name]).alias(name)
            for name, value in zip(names, key, strict=True)
        ]
        yield labels, part["query_id"]


def _labelled(
    queries: pl.DataFrame, fields: Sequence[Field], taken: Collection[str]
) -> pl.DataFrame:
    """Return the id of each query and its label by each field."""
    if not fields:
        raise InputError("no field is named", field="by", hint="name a field of the queries")
    columns = {"query_id": queries["query_id"]}
    named = [field for field in fields if isinstance(field, str)]
    for field in fields:
        if isinstance(field, str):
            columns[field] = _held(queries, field, taken)
        else:
            name = _name(field, {*taken, *columns, *named, "text"})
            columns[name] = _made(queries, field)
    return pl.DataFrame(columns)


def _name(function: Callable[..., Any], taken: Collection[str]) -> str:
    """Return what a function is called, or `group`, with a number where that is taken."""
    own = getattr(function, "__name__", "group")
    if own.isidentifier() and own not in taken:
        return own
    numbered = (f"group_{number}" for number in count(2))
    return next(name for name in chain(["group"], numbered) if name not in taken)


def _held(queries: pl.DataFrame, field: str, taken: Collection[str]) -> pl.Series:
    known = [name for name in queries.columns if name not in ("query_id", "text")]
    if field not in known:
        raise InputError(
            f"the queries of gold have no field {field!r}", field="by", hint=_meant(field, known)
        )
    if not groupable(queries, field, taken):
        raise InputError(
            f"queries cannot be grouped by {field!r}",
            field="by",
            hint="rename the field, and give each query one plain value",
        )
    return queries[field]


def groupable(queries: pl.DataFrame, field: str, taken: Collection[str] = _TAKEN) -> bool:
    """Tell whether a field can label groups: by plain values, under a name that is free."""
    return field not in taken and not queries[field].dtype.is_nested()


def _meant(field: str, known: list[str]) -> str:
    """Say which field may be meant by one that is not there."""
    listed = [name.strip() for name in field.split(",")]
    if len(listed) > 1 and set(listed) <= set(known):
        return f"name each by itself: {' '.join(f'--by {name}' for name in listed)}"
    return did_you_mean(field, known) or f"they have {', '.join(known) or 'no fields'}"


def _made(queries: pl.DataFrame, function: Callable[[Mapping[str, Any]], Any]) -> pl.Series:
    """Call a function for each query; an Enum stands for its value."""
    made = [function(query) for query in queries.iter_rows(named=True)]
    plain = [label.value if isinstance(label, Enum) else label for label in made]
    try:
        column = pl.Series(plain, strict=True)
    except (TypeError, pl.exceptions.PolarsError):
        column = pl.Series([None], dtype=pl.Object)
    if column.dtype == pl.Object or column.dtype.is_nested():
        raise InputError(
            "the function that groups queries gives no plain values of one kind",
            field="by",
            hint="let it return a text, a number or None for every query",
        )
    return column


@dataclass(frozen=True)
class GroupDifference:
    """A group, how it compares with all other queries, and how likely that is by chance."""

    label: str
    n: int
    mean: float
    difference: float
    """Its mean less that of the other queries."""
    p: float
    """Corrected for all groups that were looked at."""


def outlying_groups(groups: Mapping[str, Floats]) -> list[GroupDifference]:
    """Return the groups whose mean differs from that of all other queries, the lowest first.

    By Welch's t, corrected by Bonferroni over all groups of 5 queries or more.

    >>> low, high = np.array([0.1, 0.2, 0.1, 0.2, 0.3]), np.array([0.8, 0.9, 0.7, 0.9, 0.8, 1.0])
    >>> [(group.label, round(group.difference, 2)) for group in apart({"a": low, "b": high})]
    [('a', -0.67), ('b', 0.67)]
    """
    looked_at = [label for label, own in groups.items() if own.size >= FEW]
    found = []
    for label in looked_at:
        others = [values for other, values in groups.items() if other != label]
        own, rest = groups[label], np.concatenate([np.empty(0), *others])
        if rest.size < FEW:
            continue
        mean, beside = math.fsum(own) / own.size, math.fsum(rest) / rest.size
        p = _welch(own, rest, mean - beside)
        if p is not None and p * len(looked_at) < ALPHA:
            found.append(GroupDifference(label, own.size, mean, mean - beside, p * len(looked_at)))
    return sorted(found, key=lambda group: (group.difference, group.label))


def _welch(one: Floats, other: Floats, difference: float) -> float | None:
    """Return the two-sided p; None where neither varies, and few queries would look certain."""
    from scipy.special import stdtr

    parts = [float(values.var(ddof=1)) / values.size for values in (one, other)]
    error = sum(parts)
    if error == 0:
        return None
    sizes = (one.size, other.size)
    degrees = error**2 / sum(part**2 / (n - 1) for part, n in zip(parts, sizes, strict=True))
    return float(2 * stdtr(degrees, -abs(difference) / math.sqrt(error)))
