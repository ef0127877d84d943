"""What a run says only by ids, told by the table of all chunks."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from karat.arrays import Flags, Ints
from karat.data.chunks import Chunks
from karat.data.run import Run
from karat.errors import InputError

_BLOCK = 1 << 16  # rows
_SPREAD = np.uint64(0x9E3779B97F4A7C15)  # Knuth's multiplier: sets the hashes of queries apart


def pair_hashes(
    items: pl.Series, query: NDArray[np.uint64], lengths: NDArray[np.int64]
) -> pl.Series:
    """Return a hash of each item and its query, which stand one after the other.

    Equal pairs have equal keys. Unequal ones may have, by chance: who finds equal keys must still
    compare what they stand for.
    """
    spread = np.repeat(query * _SPREAD, lengths)
    spread ^= items.hash().to_numpy()
    return pl.Series("key", spread)


def all_distinct(pairs: pl.Series, starts: NDArray[np.int64]) -> bool:
    """Tell whether no pair stands twice in its list; a False may be a chance collision.

    Goes by blocks of whole lists, since tables that fit the cache are several times as fast.
    """
    ends = np.append(starts[1:], pairs.len())
    first = 0
    while first < starts.size:
        last = max(int(np.searchsorted(ends, starts[first] + _BLOCK, "right")), first + 1)
        block = pairs.slice(int(starts[first]), int(ends[last - 1] - starts[first]))
        if block.n_unique() < block.len():
            return False
        first = last
    return True


def query_numbers(query_ids: pl.Series, wanted: pl.Series) -> Ints:
    """Return the number of each wanted query in gold, -1 where gold does not know it."""
    numbered = query_ids.alias("query_id").to_frame().with_row_index("number")
    joined = (
        wanted.alias("query_id")
        .to_frame()
        .join(numbered, on="query_id", how="left", maintain_order="left")
    )
    numbers: Ints = joined["number"].cast(pl.Int64).fill_null(-1).to_numpy()
    return numbers


def query_and_rank(query_ids: pl.Series, run: Run) -> tuple[Ints, Ints]:
    """Return for each result of a run the number of its query in gold, or -1, and its rank."""
    segments = run.segments
    query = np.repeat(query_numbers(query_ids, segments.query_ids), segments.lengths)
    rank = np.arange(1, query.size + 1) - np.repeat(segments.starts, segments.lengths)
    return query, rank


def answered_queries(query_ids: pl.Series, run: Run) -> tuple[Flags, int]:
    """Tell which gold queries a run was asked, and how many of its queries gold does not know."""
    number = query_numbers(query_ids, run.query_ids)
    present = np.zeros(query_ids.len(), np.bool_)
    present[number[number >= 0]] = True
    return present, int(np.count_nonzero(number < 0))


def failed_queries(query_ids: pl.Series, run: Run) -> Flags:
    """Return which gold queries the retriever failed on."""
    if run.errors is None:
        return np.zeros(query_ids.len(), np.bool_)
    flags: Flags = query_ids.is_in(run.errors["query_id"].implode()).to_numpy()
    return flags


def collapse_to_documents(run: Run) -> Run:
    """Collapse each list of chunks to the first of each document."""
    results = run.results
    if not results.height:
        return run
    if "doc_id" not in results.columns or results["doc_id"].null_count():
        raise InputError(
            "the run does not say which document each item is from",
            field="doc_id",
            hint="add doc_id to every result, or score items",
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
    """Return the results of a run, with columns that it lacks taken from the table of all chunks.

    What the run says itself counts, item by item.
    """
    results = run.results
    found = fill_from_chunks(results, chunks, *columns)
    if chunks is None or found is results:
        return results
    for name in columns:
        if name in chunks.frame.columns and found[name].null_count():
            unknown = found.filter(pl.col(name).is_null())
            raise InputError(
                f"the run does not say {name} of {unknown['item_id'][0]!r}, "
                "and the table of all chunks does not hold it",
                field=name,
                hint="give the table that the run was made with",
            )
    return found


def fill_from_chunks(results: pl.DataFrame, chunks: Chunks | None, *columns: str) -> pl.DataFrame:
    """Do so as far as the table of all chunks knows the items."""
    lacking = [c for c in columns if c not in results.columns or results[c].null_count()]
    if not lacking or chunks is None or "item_id" not in results.columns:
        return results
    known = chunks.frame.select("item_id", *(c for c in lacking if c in chunks.frame.columns))
    found = results.join(
        known, on="item_id", how="left", suffix=":chunk", maintain_order="left"
    ).with_columns(
        pl.coalesce(c, f"{c}:chunk").alias(c) for c in known.columns[1:] if c in results.columns
    )
    return found.select(*results.columns, *(c for c in known.columns[1:] if c not in results))
