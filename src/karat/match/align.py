"""Align the rows of a run with the queries of gold and with the table of chunks.

Queries are aligned by their position in gold: `query_numbers`, `query_and_rank`,
`answered_queries`, `failed_queries` and `returned_queries`. Items are aligned by hashes of (query,
item) pairs: `pair_hashes` and `all_distinct`. `with_chunk_columns` and `fill_from_chunks` add what
a run lacks from the table of chunks, and `collapse_to_documents` turns a run of chunks into one of
documents.
"""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from karat.arrays import Flags, Ints
from karat.data.chunks import Chunks
from karat.data.run import NO_RESULTS, Run
from karat.errors import InputError

_BLOCK_ROWS = 1 << 16
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
"""Knuth's multiplier for multiplicative hashing: it spreads consecutive query numbers."""


def query_numbers(query_ids: pl.Series, ids: pl.Series) -> Ints:
    """Return the position of each id in `query_ids`, or -1 if it is not there."""
    numbers: Ints
    if ids.len() == query_ids.len() and (ids == query_ids).all():
        numbers = np.arange(ids.len())
        return numbers
    numbered = query_ids.alias("query_id").to_frame().with_row_index("number")
    joined = (
        ids.alias("query_id")
        .to_frame()
        .join(numbered, on="query_id", how="left", maintain_order="left")
    )
    numbers = joined["number"].cast(pl.Int64).fill_null(-1).to_numpy()
    return numbers


def query_and_rank(query_ids: pl.Series, run: Run) -> tuple[Ints, Ints]:
    """Return the query number (-1 if gold does not have the query) and the rank of each result."""
    segments = run.segments
    query = np.repeat(query_numbers(query_ids, segments.query_ids), segments.lengths)
    rank = np.arange(1, query.size + 1) - np.repeat(segments.starts, segments.lengths)
    return query, rank


def answered_queries(query_ids: pl.Series, run: Run) -> tuple[Flags, int]:
    """Return which gold queries are in the run, and how many queries of the run are not in gold."""
    numbers = query_numbers(query_ids, run.query_ids)
    present = np.zeros(query_ids.len(), np.bool_)
    present[numbers[numbers >= 0]] = True
    return present, int(np.count_nonzero(numbers < 0))


def failed_queries(query_ids: pl.Series, run: Run) -> Flags:
    """Return which gold queries the retriever failed on."""
    if run.errors is None:
        return np.zeros(query_ids.len(), np.bool_)
    flags: Flags = query_ids.is_in(run.errors["query_id"].implode()).to_numpy()
    return flags


def returned_queries(query_ids: pl.Series, run: Run) -> Flags:
    """Return for which gold queries the run returned at least one item.

    If the header of the run has a `score_threshold`, items with a lower score do not count.
    """
    threshold = run.score_threshold
    query, _ = query_and_rank(query_ids, run)
    if threshold is not None and "score" in run.results.columns:
        is_counted = (run.results["score"] >= threshold).fill_null(value=True).to_numpy()
        query = query[is_counted]
    returned = np.zeros(query_ids.len(), np.bool_)
    returned[query[query >= 0]] = True
    return returned


def pair_hashes(
    items: pl.Series, query: NDArray[np.uint64], lengths: NDArray[np.int64]
) -> pl.Series:
    """Return a hash of each (query, item) pair.

    `items` holds the lists of all queries one after the other, and `lengths` the length of each.
    Equal pairs have equal hashes. Different pairs may collide, so compare the ids as well.
    """
    hashes = np.repeat(query * _MULTIPLIER, lengths)
    hashes ^= items.hash().to_numpy()
    return pl.Series("key", hashes)


def all_distinct(pairs: pl.Series, starts: NDArray[np.int64]) -> bool:
    """Return True if no list contains a pair twice. A hash collision can cause a wrong False.

    Lists are checked in blocks that fit into the cache, by sorting: NumPy sorts numbers with vector
    instructions, which is several times as fast as a hash table.
    """
    keys = pairs.to_numpy()
    ends = np.append(starts[1:], keys.size)
    first = 0
    while first < starts.size:
        last = max(int(np.searchsorted(ends, starts[first] + _BLOCK_ROWS, "right")), first + 1)
        block = np.sort(keys[starts[first] : ends[last - 1]])
        if (block[1:] == block[:-1]).any():
            return False
        first = last
    return True


def collapse_to_documents(run: Run) -> Run:
    """Replace each list of chunks by the list of their documents, each at its first rank."""
    results = run.results
    if not results.height:
        results = NO_RESULTS.rename({"item_id": "doc_id"})
    if "doc_id" not in results.columns or results["doc_id"].null_count():
        raise InputError(
            "scoring documents requires a doc_id for every result of the run",
            field="doc_id",
            hint="add doc_id to every result, or score items instead (level='item')",
        )
    first = results.unique(["query_id", "doc_id"], keep="first", maintain_order=True)
    return Run(
        first.select("query_id", pl.col("doc_id").alias("item_id")),
        empty=run.empty,
        errors=run.errors,
        name=run.name,
        settings=run.settings,
    )


def with_chunk_columns(run: Run, chunks: Chunks | None, *columns: str) -> pl.DataFrame:
    """Return the results of a run, with missing values filled in from the table of chunks.

    Values of the run take precedence. Raise an InputError if an item is in neither of them.
    """
    results = run.results
    filled = fill_from_chunks(results, chunks, *columns)
    if chunks is None or filled is results:
        return results
    for name in columns:
        if name in chunks.frame.columns and filled[name].null_count():
            unknown = filled.filter(pl.col(name).is_null())
            first = unknown.row(unknown["query_id"].arg_min() or 0, named=True)
            raise InputError(
                f"item {first['item_id']!r} of the run has no {name} "
                "and was not found in the table of chunks",
                field=name,
                hint="use the table of chunks that the run was made with",
                query=first["query_id"],
            )
    return filled


def fill_from_chunks(results: pl.DataFrame, chunks: Chunks | None, *columns: str) -> pl.DataFrame:
    """Fill in missing values from the table of chunks; they stay null for items not in it."""
    missing = [c for c in columns if c not in results.columns or results[c].null_count()]
    if not missing or chunks is None or "item_id" not in results.columns:
        return results
    available = [c for c in missing if c in chunks.frame.columns]
    joined = results.join(
        chunks.frame.select("item_id", *available),
        on="item_id",
        how="left",
        suffix=":chunk",
        maintain_order="left",
    )
    filled = joined.with_columns(
        pl.coalesce(c, f"{c}:chunk").alias(c) for c in available if c in results.columns
    )
    return filled.select(*results.columns, *(c for c in available if c not in results.columns))
