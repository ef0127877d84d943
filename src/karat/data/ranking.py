"""The order of ranked lists, including ties.

It is determined once, when a run is read. From then on, the position in the list is the rank.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from karat.data.frames import Locate, row_error

if TYPE_CHECKING:
    from numpy.typing import NDArray


_FIRST_ROWS = 10_000


@dataclass(frozen=True)
class QuerySegments:
    """The position and the number of each query's rows, in a table sorted by query."""

    query_ids: pl.Series
    starts: NDArray[np.int64]
    lengths: NDArray[np.int64]

    @classmethod
    def of(cls, query_ids: pl.Series) -> QuerySegments:
        """Find the segments of equal query ids."""
        segments = query_ids.rle()
        lengths = segments.struct.field("len").cast(pl.Int64).to_numpy()
        values = segments.struct.field("value").alias("query_id")
        return cls(values, np.cumsum(lengths) - lengths, lengths)

    @property
    def contiguous(self) -> bool:
        """Whether the rows of each query are contiguous."""
        return self.query_ids.n_unique() == self.query_ids.len()


def ranked_by_score(results: pl.DataFrame) -> pl.DataFrame:
    """Sort each list by score, descending; ties are broken by item id, descending, as bytes.

    This is the rule of trec_eval, which is needed to reproduce the values published by NIST. Most
    lists are sorted already, and only the others are sorted here.
    """
    segments = _segments_if_grouped(results["query_id"])
    if segments is None:
        results, segments = _grouped_by_score(results)
    unsorted = _lists_out_of_order(results, segments)
    if not unsorted.size:
        return results
    lengths = segments.lengths[unsorted]
    rows = np.arange(lengths.sum()) + np.repeat(
        segments.starts[unsorted] - (np.cumsum(lengths) - lengths), lengths
    )
    # Adding 0.0 turns -0.0 into 0.0, so that both tie. Without ids, ties keep their order.
    keys = [pl.col("list"), pl.col("score") + 0.0, *map(pl.col, _tie_columns(results))]
    sorted_rows = (
        results.select("score", *_tie_columns(results))[rows]
        .with_columns(list=np.repeat(unsorted, lengths), row=rows)
        .sort(keys, descending=[False, True, True][: len(keys)], maintain_order=True)
    )
    order = np.arange(results.height)
    order[rows] = sorted_rows["row"].to_numpy()
    return results[order]


def _segments_if_grouped(query_ids: pl.Series) -> QuerySegments | None:
    """Return the segments, or None if the rows of a query are not contiguous."""
    # The first rows are enough to recognise shuffled rows, which have slow segments.
    if not QuerySegments.of(query_ids.head(_FIRST_ROWS)).contiguous:
        return None
    segments = QuerySegments.of(query_ids)
    return segments if segments.contiguous else None


def _grouped_by_score(results: pl.DataFrame) -> tuple[pl.DataFrame, QuerySegments]:
    """Sort by query id, then roughly by score, descending; tied items keep their order.

    One number per row sorts several times as fast as an id and a score. Its first bits are the
    position of the query among all queries, the others are the first bits of the score. Scores that
    differ only in the last bits are left in their order, which is checked afterwards in any case.
    """
    distinct = results["query_id"].unique().sort()
    query = results["query_id"].cast(pl.Enum(distinct)).to_physical().to_numpy()
    n_bits = (distinct.len() - 1).bit_length()
    keys = _descending_bits(results["score"].to_numpy() + 0.0)  # -0.0 becomes 0.0
    keys >>= np.uint64(n_bits)
    keys |= query.astype(np.uint64) << np.uint64(64 - n_bits) if n_bits else np.uint64(0)
    rows = pl.DataFrame({"key": keys}).with_row_index("row").sort("key", maintain_order=True)["row"]
    lengths = np.bincount(query, minlength=distinct.len())
    segments = QuerySegments(distinct, np.cumsum(lengths) - lengths, lengths)
    ids = distinct.gather(np.repeat(np.arange(distinct.len()), lengths))
    others = results.drop("query_id")[rows]
    return others.insert_column(results.get_column_index("query_id"), ids), segments


def _descending_bits(values: NDArray[np.float64]) -> NDArray[np.uint64]:
    """Return unsigned integers whose ascending order is the descending order of the values."""
    bits = values.view(np.uint64)
    # IEEE 754: as integers, positive numbers ascend and negative numbers descend.
    sign = np.uint64(1 << 63)
    return np.where(bits & sign, bits, ~bits ^ sign)


def ranked_by_rank(results: pl.DataFrame, locate: Locate = row_error) -> pl.DataFrame:
    """Sort each list by its rank column. Gaps are allowed; a repeated rank is an error.

    If the results are part of a table, the column `row` has their position in it, from 0.
    """
    if "row" not in results.columns:
        results = results.with_row_index("row")
    results = results.sort("query_id", "rank", maintain_order=True)
    query, rank = results["query_id"], results["rank"]
    repeated = (query == query.shift()) & (rank == rank.shift())
    if repeated.any():
        index = repeated.arg_max() or 0
        raise locate(
            int(results["row"][index]) + 1,
            "rank",
            f"query {query[index]!r} has two items at rank {rank[index]}",
            "renumber the ranks, or remove the column and keep the scores",
        )
    return results.drop("row", "rank")


def ranked_as_listed(results: pl.DataFrame) -> pl.DataFrame:
    """Keep the order of the rows, but make the rows of each query contiguous."""
    if QuerySegments.of(results["query_id"]).contiguous:
        return results
    return results.sort("query_id", maintain_order=True)


def contradictions(results: pl.DataFrame) -> int:
    """Return how many items have a higher score than the item before them in the same list."""
    if "score" not in results.columns:
        return 0
    rises = results.select(
        (pl.col("score") > pl.col("score").shift())
        & (pl.col("query_id") == pl.col("query_id").shift())
    ).to_series()
    return int(rises.sum() or 0)


def scores_give_order(results: pl.DataFrame) -> bool:
    """Return whether sorting by score would give the same order of the lists."""
    has_scores = "score" in results.columns and results["score"].null_count() == 0
    return (
        has_scores and not _lists_out_of_order(results, QuerySegments.of(results["query_id"])).size
    )


def with_scores_that_order(results: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
    """Return results with scores that give their order, and what was replaced.

    Scores that do not give the order, and missing scores, are replaced by n, n−1, …, 1.
    """
    if scores_give_order(results):
        return results, []
    replaced = []
    if "score" in results.columns:
        replaced.append(
            "the original scores, because some are missing or do not match the order of the "
            "results (for a query with n results, the new scores are n, n-1, …, 1)"
        )
    descending = pl.int_range(pl.len(), 0, -1).over("query_id").cast(pl.Float64)
    return results.with_columns(score=descending), replaced


def _lists_out_of_order(results: pl.DataFrame, segments: QuerySegments) -> NDArray[np.int64]:
    """Return the indices of the lists that are not sorted by score and id."""
    score: NDArray[Any] = results["score"].to_numpy()
    falls = score[:-1] > score[1:]
    falls[segments.starts[1:] - 1] = True
    suspects = np.flatnonzero(~falls)
    unsorted = score[suspects] < score[suspects + 1]
    if _tie_columns(results):
        items = results["item_id"]
        before, after = items.gather(suspects), items.gather(suspects + 1)
        unsorted |= (before <= after).to_numpy()
    lists: NDArray[np.int64] = np.searchsorted(segments.starts, suspects[unsorted], "right") - 1
    return np.unique(lists)


def _tie_columns(results: pl.DataFrame) -> list[str]:
    return ["item_id"] if "item_id" in results.columns else []
