"""The numbers that gold gives its queries."""

from __future__ import annotations

import numpy as np
import polars as pl

from karat.arrays import Flags, Ints
from karat.data.run import Run


def numbers_of(query_ids: pl.Series, wanted: pl.Series) -> Ints:
    """Return the number of each wanted query in gold, -1 where gold does not know it."""
    numbered = query_ids.alias("query_id").to_frame().with_row_index("number")
    joined = (
        wanted.alias("query_id")
        .to_frame()
        .join(numbered, on="query_id", how="left", maintain_order="left")
    )
    numbers: Ints = joined["number"].cast(pl.Int64).fill_null(-1).to_numpy()
    return numbers


def listed(query_ids: pl.Series, run: Run) -> tuple[Ints, Ints]:
    """Return for each result of a run the number of its query in gold, or -1, and its rank."""
    segments = run.segments
    query = np.repeat(numbers_of(query_ids, segments.query_ids), segments.lengths)
    rank = np.arange(1, query.size + 1) - np.repeat(segments.starts, segments.lengths)
    return query, rank


def asked(query_ids: pl.Series, run: Run) -> tuple[Flags, int]:
    """Tell which gold queries a run was asked, and how many of its queries gold does not know."""
    number = numbers_of(query_ids, run.query_ids)
    present = np.zeros(query_ids.len(), np.bool_)
    present[number[number >= 0]] = True
    return present, int(np.count_nonzero(number < 0))


def failed(query_ids: pl.Series, run: Run) -> Flags:
    """Return which gold queries the retriever failed on."""
    if run.errors is None:
        return np.zeros(query_ids.len(), np.bool_)
    flags: Flags = query_ids.is_in(run.errors["query_id"].implode()).to_numpy()
    return flags
