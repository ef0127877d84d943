"""The same numbers for groups of queries."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

import polars as pl

from karat.errors import InputError
from karat.measures.table import ScoreTable
from karat.stats.summary import SUMMARY, summary


def by(table: ScoreTable, queries: pl.DataFrame, fields: Sequence[str]) -> pl.DataFrame:
    """Summarise the table for each value of the fields, sorted by them."""
    fields = list(dict.fromkeys(fields))
    if not fields:
        raise InputError("no field is named", field="by", hint="name a field of the queries")
    known = [name for name in queries.columns if name not in ("query_id", "text")]
    for field in fields:
        if field in known and (queries[field].dtype.is_nested() or field in SUMMARY):
            raise InputError(
                f"queries cannot be grouped by {field!r}",
                field="by",
                hint="rename the field, and give each query one plain value",
            )
        if field not in known:
            near = get_close_matches(field, known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else None
            raise InputError(
                f"the queries of gold have no field {field!r}",
                field="by",
                hint=hint or f"they have {', '.join(known) or 'no fields'}",
            )
    labelled = (
        table.frame.select("query_id")
        .join(queries.select("query_id", *fields), on="query_id", how="left", maintain_order="left")
        .with_row_index(":row")
    )
    groups = labelled.partition_by(fields, as_dict=True, maintain_order=True)
    parts = []
    for key, part in groups.items():
        rows = summary(table.rows(part[":row"]))
        labels = [
            pl.lit(value, dtype=labelled.schema[field]).alias(field)
            for field, value in zip(fields, key, strict=True)
        ]
        parts.append(rows.select(*labels, pl.all()))
    return pl.concat(parts).sort(fields, maintain_order=True, nulls_last=True)
