"""Groups of queries: summaries per group, and groups that differ from the other queries.

`group_queries` splits queries by fields or by functions, `summary_by` summarises a score table per
group, and `outlying_groups` tests which groups score higher or lower than the rest.
"""

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
"""The name of a field of the queries, or a function that returns a label for a query."""
FEW = 5
"""Groups of fewer queries are marked as small: their values are unreliable."""
_RESERVED = (*SUMMARY, "small")
"""Names of columns of the result, which cannot be names of fields."""


def fields_of(by: Field | Sequence[Field] | None) -> tuple[Field, ...]:
    """Return the fields as a tuple; a single field need not be in a list."""
    if by is None:
        return ()
    if isinstance(by, str) or callable(by):
        return (by,)
    return tuple(by)


def summary_by(
    table: ScoreTable,
    queries: pl.DataFrame,
    fields: Sequence[Field],
    *,
    intervals: bool = True,
) -> pl.DataFrame:
    """Return a summary of the table per group of queries, sorted by the fields.

    The column `small` marks values of fewer than 5 queries.
    """
    scored = queries.filter(pl.col("query_id").is_in(table.frame["query_id"].implode()))
    parts = [
        summary(select_queries(table, query_ids), intervals=intervals).select(*labels, pl.all())
        for labels, query_ids in group_queries(scored, fields)
    ]
    return pl.concat(parts).with_columns((pl.col("n") < FEW).alias("small"))


def select_queries(table: ScoreTable, query_ids: pl.Series) -> ScoreTable:
    """Return the rows of these queries."""
    return table.rows(table.frame["query_id"].is_in(query_ids.implode()).arg_true())


def group_queries(
    queries: pl.DataFrame, fields: Sequence[Field], reserved: Collection[str] = _RESERVED
) -> Iterator[tuple[list[pl.Expr], pl.Series]]:
    """Yield the labels (as columns) and the query ids of each group, sorted by label.

    `reserved` are names of other columns of the result, which the labels cannot use.
    """
    labelled = _label_queries(queries, list(dict.fromkeys(fields)), reserved)
    if labelled.is_empty():
        raise InputError(
            "no queries to group",
            field="by",
            hint="check that gold and run contain the same query ids",
        )
    names = labelled.columns[1:]
    labelled = labelled.sort(names, nulls_last=True)
    for key, part in labelled.partition_by(names, as_dict=True, maintain_order=True).items():
        labels = [
            pl.lit(value, dtype=labelled.schema[name]).alias(name)
            for name, value in zip(names, key, strict=True)
        ]
        yield labels, part["query_id"]


def _label_queries(
    queries: pl.DataFrame, fields: Sequence[Field], reserved: Collection[str]
) -> pl.DataFrame:
    """Return the id of each query and one column of labels per field."""
    if not fields:
        raise InputError(
            "at least one field is required", field="by", hint="name a field of the queries"
        )
    columns = {"query_id": queries["query_id"]}
    field_names = [field for field in fields if isinstance(field, str)]
    for field in fields:
        if isinstance(field, str):
            columns[field] = _field_column(queries, field, reserved)
        else:
            name = _function_name(field, {*reserved, *columns, *field_names, "text"})
            columns[name] = _function_column(queries, field)
    return pl.DataFrame(columns)


def _field_column(queries: pl.DataFrame, field: str, reserved: Collection[str]) -> pl.Series:
    available = [name for name in queries.columns if name not in ("query_id", "text")]
    if field not in available:
        raise InputError(
            f"queries have no field {field!r}", field="by", hint=_field_hint(field, available)
        )
    if field in reserved:
        raise InputError(
            f"queries cannot be grouped by {field!r}: the result has a column of this name",
            field="by",
            hint="rename the field",
        )
    if not groupable(queries, field, reserved):
        raise InputError(
            f"queries cannot be grouped by {field!r}: its values are lists or objects",
            field="by",
            hint="use a field with one string, number or bool per query",
        )
    return queries[field]


def groupable(queries: pl.DataFrame, field: str, reserved: Collection[str] = _RESERVED) -> bool:
    """Return whether queries can be grouped by a field: its values are plain, its name is free."""
    return field not in reserved and not queries[field].dtype.is_nested()


def _field_hint(field: str, available: list[str]) -> str:
    listed = [name.strip() for name in field.split(",")]
    if len(listed) > 1 and set(listed) <= set(available):
        return f"use one option per field: {' '.join(f'--by {name}' for name in listed)}"
    fields = f"available fields: {', '.join(available)}" if available else "queries have no fields"
    return did_you_mean(field, available) or fields


def _function_name(function: Callable[..., Any], reserved: Collection[str]) -> str:
    """Return the name of a function, or `group`, `group_2`, … if it cannot name a column."""
    name = getattr(function, "__name__", "group")
    if name.isidentifier() and name not in reserved:
        return name
    numbered = (f"group_{number}" for number in count(2))
    return next(name for name in chain(["group"], numbered) if name not in reserved)


def _function_column(
    queries: pl.DataFrame, function: Callable[[Mapping[str, Any]], Any]
) -> pl.Series:
    """Return the label of each query; an Enum is replaced by its value."""
    labels = [function(query) for query in queries.iter_rows(named=True)]
    plain = [label.value if isinstance(label, Enum) else label for label in labels]
    try:
        column = pl.Series(plain, strict=True)
    except (TypeError, pl.exceptions.PolarsError):
        column = pl.Series([None], dtype=pl.Object)
    if column.dtype == pl.Object or column.dtype.is_nested():
        raise InputError(
            "the function must return a string, a number or None for every query",
            field="by",
            hint="return labels of one type, for example with str(label)",
        )
    return column


@dataclass(frozen=True)
class GroupDifference:
    """The difference between a group and all other queries."""

    label: str
    n: int
    mean: float
    difference: float
    """Mean of the group − mean of all other queries."""
    p: float
    """The p-value of Welch's t-test, corrected for all groups that were tested."""


def outlying_groups(groups: Mapping[str, Floats]) -> list[GroupDifference]:
    """Return the groups that differ significantly from all other queries, the lowest first.

    Groups of at least 5 queries are tested with Welch's t-test, with Bonferroni's correction.

    >>> low, high = np.array([0.1, 0.2, 0.1, 0.2, 0.3]), np.array([0.8, 0.9, 0.7, 0.9, 0.8, 1.0])
    >>> outlying = outlying_groups({"a": low, "b": high})
    >>> [(group.label, round(group.difference, 2)) for group in outlying]
    [('a', -0.67), ('b', 0.67)]
    """
    tested = [label for label, values in groups.items() if values.size >= FEW]
    outlying = []
    for label in tested:
        values = groups[label]
        other_groups = [other for name, other in groups.items() if name != label]
        rest = np.concatenate([np.empty(0), *other_groups])
        if rest.size < FEW:
            continue
        mean = math.fsum(values) / values.size
        difference = mean - math.fsum(rest) / rest.size
        p = _welch_test(values, rest, difference)
        if p is not None and p * len(tested) < ALPHA:
            group = GroupDifference(label, values.size, mean, difference, p * len(tested))
            outlying.append(group)
    return sorted(outlying, key=lambda group: (group.difference, group.label))


def _welch_test(one: Floats, other: Floats, difference: float) -> float | None:
    """Return the two-sided p-value; None if neither group varies, which p = 0 would overstate."""
    from scipy.special import stdtr

    variances = [float(values.var(ddof=1)) / values.size for values in (one, other)]
    total = sum(variances)
    if total == 0:
        return None
    sizes = (one.size, other.size)
    degrees_of_freedom = total**2 / sum(
        variance**2 / (n - 1) for variance, n in zip(variances, sizes, strict=True)
    )
    return float(2 * stdtr(degrees_of_freedom, -abs(difference) / math.sqrt(total)))
