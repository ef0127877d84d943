"""Matching by id: an item is found when gold judges the same string for the same query."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from karat.arrays import Flags, Ints
from karat.conventions import Conventions
from karat.data.order import Segments
from karat.data.run import Run
from karat.errors import ConventionError, InputError
from karat.match.dicts import match_dicts
from karat.match.hits import Hits, Places, judged_only, places
from karat.match.keys import keys, surely_distinct
from karat.match.numbers import numbers_of
from karat.match.prepared import PreparedGold


@dataclass(frozen=True)
class Match:
    """Hits, and what is known of each gold query and of the run beside them."""

    hits: Hits
    present: Flags
    """Which gold queries the run was asked."""
    unknown: int
    """How many queries of the run are not in gold."""


def match_ids(gold: PreparedGold, run: Run, conventions: Conventions) -> Match:
    """Bring gold and run together; only what is judged is ever looked at twice."""
    if gold.mapping is not None and run.lists is not None:
        hits, present, unknown = match_dicts(gold, run.lists)
    else:
        hits, present, unknown = _match_tables(gold, run)
    if conventions.duplicates == "error" and hits.repeats.query.size:
        raise stands_again(gold, hits.repeats.query[0], hits.repeats.rank[0])
    if conventions.unjudged == "skip":
        hits = judged_only(hits)
    return Match(hits, present, unknown)


def stands_again(gold: PreparedGold, query: np.int64, rank: np.int64) -> ConventionError:
    """Make the error for an item that stands again where none may."""
    return ConventionError(
        f"query {gold.query_ids[int(query)]!r} has an item again at rank {rank}",
        field="duplicates",
        hint="drop the repeats, or choose duplicates=first",
    )


def _match_tables(gold: PreparedGold, run: Run) -> tuple[Hits, Flags, int]:
    n = gold.query_ids.len()
    results = run.results
    if "item_id" not in results.columns or results["item_id"].null_count():
        raise InputError(
            "rank measures need the id of every retrieved item",
            field="item_id",
            hint="add ids to the run",
        )
    segments = run.segments
    query_of = numbers_of(gold.query_ids, segments.query_ids)
    known = query_of >= 0
    length = np.zeros(n, np.int64)
    length[query_of[known]] = segments.lengths[known]
    present = length > 0
    asked = numbers_of(gold.query_ids, pl.Series(run.empty, dtype=pl.String))
    present[asked[asked >= 0]] = True
    unknown = int(np.count_nonzero(~known) + np.count_nonzero(asked < 0))

    # Lists that gold does not know are numbered after those it knows, and so match nothing.
    number = np.where(known, query_of, n + np.arange(query_of.size)).astype(np.uint64)
    pairs = keys(results["item_id"], number, segments.lengths)
    row, judgment = _same_pairs(results["item_id"], pairs, gold.table)
    query = gold.table["query"].to_numpy()[judgment]
    start_of = np.zeros(n, np.int64)
    start_of[query_of[known]] = segments.starts[known]
    rank = row - start_of[query] + 1
    found = places(n, query, rank, gold.table["grade"].to_numpy()[judgment])
    alternatives = None
    if gold.alternatives is not None:
        first = np.zeros(gold.table.height, np.int64)
        # A repeated item counts at its first rank, so assign ranks from the last to the first.
        order = np.argsort(-rank, kind="stable")
        first[judgment[order]] = rank[order]
        alternatives = replace(gold.alternatives, rank=first[gold.alternatives.rank])
    if surely_distinct(pairs, segments.starts):
        repeats = found.where(np.zeros(found.query.size, np.bool_))
    else:
        again = _repeated_rows(results["item_id"], segments)
        found, repeats = _split_repeats(found, again, query_of, segments.starts, n)
    hits = Hits(found, repeats, gold.ideal, length, alternatives=alternatives)
    return hits, present, unknown


def _same_pairs(items: pl.Series, pairs: pl.Series, judged: pl.DataFrame) -> tuple[Ints, Ints]:
    """Return the rows that are judged, and their judgments.

    The small side goes into the large one, so only judged rows ever come out; they are found by
    key, and the ids themselves decide. Where key and id are the same, so is the query: its number
    went in times an odd number, and no two numbers give the same product modulo 2^64.
    """
    joined = (
        pairs.to_frame()
        .lazy()
        .with_row_index("row")
        .join(judged.lazy().select("key").with_row_index("judgment"), on="key", how="inner")
        .select(pl.col("row", "judgment").cast(pl.Int64))
        .collect()
    )
    row, judgment = joined["row"].to_numpy(), joined["judgment"].to_numpy()
    same = (items.gather(row) == judged["item_id"].gather(judgment)).to_numpy()
    return row[same], judgment[same]


def _repeated_rows(items: pl.Series, segments: Segments) -> Ints:
    """Return the rows whose item stands earlier in the same list."""
    segment = np.repeat(np.arange(segments.lengths.size), segments.lengths)
    pairs = pl.DataFrame({"segment": segment, "item": items})
    first = pairs.select(pl.struct(pl.all()).is_first_distinct()).to_series()
    return np.flatnonzero(~first.to_numpy())


def _split_repeats(
    found: Places, again: Ints, query_of: Ints, starts: Ints, n: int
) -> tuple[Places, Places]:
    segment = np.searchsorted(starts, again, side="right") - 1
    query, rank = query_of[segment], again - starts[segment] + 1
    query, rank = query[query >= 0], rank[query >= 0]
    width = max(int(found.rank.max(initial=0)), int(rank.max(initial=0))) + 1
    found_key, again_key = found.query * width + found.rank, query * width + rank
    is_repeat = np.isin(found_key, again_key)
    unjudged = ~np.isin(again_key, found_key)
    judged = found.where(is_repeat)
    repeats = places(
        n,
        np.concatenate((judged.query, query[unjudged])),
        np.concatenate((judged.rank, rank[unjudged])),
        np.concatenate((judged.grade, np.full(np.count_nonzero(unjudged), -1))),
    )
    return found.where(~is_repeat), repeats
