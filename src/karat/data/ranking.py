"""The order of a ranked list: settled once, on the way in, so that position is rank afterwards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from karat.data.frames import Locate, row_error

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class QuerySegments:
    """Where each query's rows stand in a table whose queries are contiguous."""

    query_ids: pl.Series
    starts: NDArray[np.int64]
    lengths: NDArray[np.int64]

    @classmethod
    def of(cls, query_ids: pl.Series) -> QuerySegments:
        """Find the stretches of equal query ids."""
        stretches = query_ids.rle()
        lengths = stretches.struct.field("len").cast(pl.Int64).to_numpy()
        values = stretches.struct.field("value").alias("query_id")
        return cls(values, np.cumsum(lengths) - lengths, lengths)

    @property
    def contiguous(self) -> bool:
        """Whether each query stands in one stretch only."""
        return self.query_ids.n_unique() == self.query_ids.len()


def ranked_by_score(results: pl.DataFrame) -> pl.DataFrame:
    """Order each list by score descending, ties by item id descending compared as bytes.

    This is trec_eval's rule; values published by NIST come out only this way. Lists that stand
    in order already, as nearly all do, are left where they are.
    """
    segments = QuerySegments.of(results["query_id"])
    if not segments.contiguous:
        results = results.sort("query_id", maintain_order=True)
        segments = QuerySegments.of(results["query_id"])
    astray = _lists_out_of_order(results, segments)
    if not astray.size:
        return results
    lengths = segments.lengths[astray]
    rows = np.arange(lengths.sum()) + np.repeat(
        segments.starts[astray] - (np.cumsum(lengths) - lengths), lengths
    )
    # Adding 0.0 turns -0.0 into 0.0, which must tie. Items without ids tie as they stand.
    keys = [pl.col("list"), pl.col("score") + 0.0, *map(pl.col, _tie_columns(results))]
    mended = (
        results.select("score", *_tie_columns(results))[rows]
        .with_columns(list=np.repeat(astray, lengths), row=rows)
        .sort(keys, descending=[False, True, True][: len(keys)], maintain_order=True)
    )
    order = np.arange(results.height)
    order[rows] = mended["row"].to_numpy()
    return results[order]


def ranked_by_rank(results: pl.DataFrame, locate: Locate = row_error) -> pl.DataFrame:
    """Order each list by its rank column, which only orders; a repeated rank is an error."""
    results = results.with_row_index("row").sort("query_id", "rank", maintain_order=True)
    query, rank = results["query_id"], results["rank"]
    repeated = (query == query.shift()) & (rank == rank.shift())
    if repeated.any():
        at = repeated.arg_max() or 0
        raise locate(
            int(results["row"][at]) + 1,
            "rank",
            f"query {query[at]!r} has two items at rank {rank[at]}",
            "renumber the ranks, or drop the column and keep the scores",
        )
    return results.drop("row", "rank")


def ranked_as_listed(results: pl.DataFrame) -> pl.DataFrame:
    """Keep the order of the rows; only bring the rows of a query together."""
    if QuerySegments.of(results["query_id"]).contiguous:
        return results
    return results.sort("query_id", maintain_order=True)


def contradictions(results: pl.DataFrame) -> int:
    """Count the neighbours in a listed ranking whose scores rise."""
    if "score" not in results.columns:
        return 0
    rises = results.select(
        (pl.col("score") > pl.col("score").shift())
        & (pl.col("query_id") == pl.col("query_id").shift())
    ).to_series()
    return int(rises.sum() or 0)


def scores_give_order(results: pl.DataFrame) -> bool:
    """Tell whether the scores alone would give back the order of the lists."""
    stated = "score" in results.columns and results["score"].null_count() == 0
    return stated and not _lists_out_of_order(results, QuerySegments.of(results["query_id"])).size


def with_scores_that_order(results: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
    """Return results whose scores give their order, n…1 if need be, and what that replaced."""
    if scores_give_order(results):
        return results, []
    replaced = ["scores that do not give the order of the lists (n…1 are written instead)"]
    falling = pl.int_range(pl.len(), 0, -1).over("query_id").cast(pl.Float64)
    return results.with_columns(score=falling), replaced if "score" in results.columns else []


def _lists_out_of_order(results: pl.DataFrame, segments: QuerySegments) -> NDArray[np.int64]:
    """Return the numbers of the lists that their scores and ids would order otherwise."""
    score: NDArray[Any] = results["score"].to_numpy()
    falls = score[:-1] > score[1:]
    falls[segments.starts[1:] - 1] = True
    suspects = np.flatnonzero(~falls)
    astray = score[suspects] < score[suspects + 1]
    if _tie_columns(results):
        items = results["item_id"]
        before, after = items.gather(suspects), items.gather(suspects + 1)
        astray |= (before <= after).to_numpy()
    lists: NDArray[np.int64] = np.searchsorted(segments.starts, suspects[astray], "right") - 1
    return np.unique(lists)


def _tie_columns(results: pl.DataFrame) -> list[str]:
    return ["item_id"] if "item_id" in results.columns else []
