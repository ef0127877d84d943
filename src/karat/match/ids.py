"""Matching by id: a retrieved item is a hit if gold judges the same id for the same query.

`match_ids` chooses between two implementations with the same result: `_match_dicts` for gold and
runs that are Python dicts, and `_match_tables` for tables, which joins hashes of (query, item).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain, repeat

import numpy as np
import polars as pl

from karat.arrays import Flags, Floats, Ints
from karat.conventions import Conventions
from karat.data.dict_runs import DictRun, to_32_bits
from karat.data.ranking import QuerySegments
from karat.data.run import Run
from karat.errors import ConventionError, InputError
from karat.match.align import all_distinct, pair_hashes, query_numbers
from karat.match.gold_index import PreparedGold
from karat.match.hits import Alternatives, Hits, RankedRows, judged_only, ranked_rows

_FLAGS_PER_KEY, _MOST_FLAG_BITS = 4, 24
_UNJUDGED = -(1 << 62)
"""The grade of unjudged items in lookups; no reader accepts a grade this low."""


@dataclass(frozen=True)
class Match:
    """Hits, and which queries gold and run share."""

    hits: Hits
    present: Flags
    """Which gold queries are in the run."""
    unknown: int
    """How many queries of the run are not in gold."""


def match_ids(gold: PreparedGold, run: Run, conventions: Conventions) -> Match:
    """Match the retrieved items with the judgments of their query."""
    if gold.mapping is not None and run.lists is not None:
        match = _match_dicts(gold, run.lists)
    else:
        match = _match_tables(gold, run)
    repeats = match.hits.repeats
    if conventions.duplicates == "error" and repeats.query.size:
        raise repeat_error(gold, repeats.query[0], repeats.rank[0])
    if conventions.unjudged == "skip":
        return replace(match, hits=judged_only(match.hits))
    return match


def repeat_error(gold: PreparedGold, query: np.int64, rank: np.int64) -> ConventionError:
    """Return the error for an item that occurs twice in a list."""
    query_id = gold.query_ids[int(query)]
    return ConventionError(
        f"query {query_id!r}: the item at rank {rank} already occurs at an earlier rank",
        field="duplicates",
        hint="remove repeated items from the run, or use duplicates=first",
        query=query_id,
    )


def _match_dicts(gold: PreparedGold, lists: DictRun) -> Match:
    """Match lists of ids, or dicts of scores, with judgments that are dicts."""
    n = gold.query_ids.len()
    query_positions = map(gold.number.get, lists.by_query, repeat(-1))
    numbers = np.fromiter(query_positions, np.int64, lists.lengths.size)
    known = numbers >= 0
    length, present = np.zeros(n, np.int64), np.zeros(n, np.bool_)
    length[numbers[known]] = lists.lengths[known]
    present[numbers[known]] = True
    if lists.scores is None:
        judged, repeats = _match_lists(gold, lists, numbers)
    else:
        judged = _match_scores(gold, lists, lists.scores, numbers)
        repeats = _no_rows(judged)
    hits = Hits(judged, repeats, gold.ideal, length)
    return Match(hits, present, int(np.count_nonzero(~known)))


def _match_lists(
    gold: PreparedGold, lists: DictRun, numbers: Ints
) -> tuple[RankedRows, RankedRows]:
    """Look up every retrieved item; its rank is its position in the list."""
    assert gold.mapping is not None
    n = gold.query_ids.len()
    lookups = (
        map(gold.mapping.get(query, {}).get, items, repeat(_UNJUDGED))
        for query, items in lists.by_query.items()
    )
    lengths = lists.lengths
    grade = np.fromiter(chain.from_iterable(lookups), np.int64, int(lengths.sum()))
    starts = np.cumsum(lengths) - lengths
    query = np.repeat(numbers, lengths)
    rank = np.arange(1, query.size + 1) - np.repeat(starts, lengths)
    is_repeat = np.zeros(query.size, np.bool_)
    for start, items in zip(starts.tolist(), lists.by_query.values(), strict=True):
        if len(set(items)) < len(items):
            seen: set[str] = set()
            for position, item in enumerate(items, start):
                is_repeat[position] = item in seen
                seen.add(item)
    known = query >= 0
    is_hit = known & (grade != _UNJUDGED) & ~is_repeat
    is_repeat &= known
    repeat_grade = np.where(grade[is_repeat] == _UNJUDGED, -1, grade[is_repeat])
    return (
        ranked_rows(n, query[is_hit], rank[is_hit], grade[is_hit]),
        ranked_rows(n, query[is_repeat], rank[is_repeat], repeat_grade),
    )


def _match_scores(gold: PreparedGold, lists: DictRun, scores: Floats, numbers: Ints) -> RankedRows:
    """Look up the scores of the judged items, then count the higher scores to get their ranks."""
    assert gold.mapping is not None
    empty: dict[str, float] = {}
    lookups = (
        map(lists.by_query.get(query, empty).get, judged, repeat(np.nan))
        for query, judged in gold.mapping.items()
    )
    query, grade = gold.flat
    judged_scores = np.fromiter(chain.from_iterable(lookups), np.float64, grade.size)
    if lists.has_32_bit_scores:
        judged_scores = to_32_bits(judged_scores)
    hit = np.flatnonzero(~np.isnan(judged_scores))
    query, grade, judged_scores = query[hit], grade[hit], judged_scores[hit]
    list_of_query = np.zeros(gold.query_ids.len(), np.int64)
    list_of_query[numbers[numbers >= 0]] = np.flatnonzero(numbers >= 0)
    ends = np.cumsum(lists.lengths)
    starts = ends - lists.lengths
    start, end = starts[list_of_query[query]], ends[list_of_query[query]]
    keys = _sort_lists(-scores, starts, ends)
    above = _count_below(keys, -judged_scores, start, end)
    next_key = keys[np.minimum(start + above + 1, end - 1)]
    tied = (above + 1 < end - start) & (next_key == -judged_scores)
    if tied.any():
        judged_ids = list(chain.from_iterable(gold.mapping.values()))
        offsets_by_tie: dict[tuple[int, float], dict[str, int]] = {}
        for row in np.flatnonzero(tied).tolist():
            number, score = int(query[row]), float(judged_scores[row])
            tie = (number, score)
            if tie not in offsets_by_tie:
                items = lists.by_query[gold.query_ids[number]]
                list_scores = scores[start[row] : end[row]]
                offsets_by_tie[tie] = _offsets_in_tie(items, list_scores, score)
            above[row] += offsets_by_tie[tie][judged_ids[hit[row]]]
    return ranked_rows(gold.query_ids.len(), query, above + 1, grade)


def _offsets_in_tie(items: dict[str, float], scores: Floats, score: float) -> dict[str, int]:
    """Order the items with the same score by id, descending as bytes, as trec_eval does.

    Code points sort like their UTF-8 bytes, so strings can be compared directly.
    """
    ids = list(items)
    tied = sorted((ids[at] for at in np.flatnonzero(scores == score)), reverse=True)
    return {item_id: offset for offset, item_id in enumerate(tied)}


def _sort_lists(keys: Floats, starts: Ints, ends: Ints) -> Floats:
    """Sort the keys of each list in place; most lists are sorted already."""
    ascending = keys[:-1] <= keys[1:]
    ascending[starts[(starts > 0) & (starts < keys.size)] - 1] = True
    if not ascending.all():
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
            keys[start:end].sort()
    return keys


def _count_below(keys: Floats, limits: Floats, starts: Ints, ends: Ints) -> Ints:
    """Count the keys below each limit within its range, by bisection of all ranges at once."""
    low, high = starts.copy(), ends.copy()
    while (low < high).any():
        middle = (low + high) // 2
        below = (low < high) & (keys[np.minimum(middle, keys.size - 1)] < limits)
        high = np.where(below, high, middle)
        low = np.where(below, middle + 1, low)
    return low - starts


def _match_tables(gold: PreparedGold, run: Run) -> Match:
    n = gold.query_ids.len()
    results = run.results
    if "item_id" not in results.columns or results["item_id"].null_count():
        raise InputError(
            "rank measures require the id of every retrieved item",
            field="item_id",
            hint="add an id to every result of the run",
        )
    segments = run.segments
    query_of = query_numbers(gold.query_ids, segments.query_ids)
    known = query_of >= 0
    length = np.zeros(n, np.int64)
    length[query_of[known]] = segments.lengths[known]
    present = length > 0
    empty = query_numbers(gold.query_ids, pl.Series(run.empty, dtype=pl.String))
    present[empty[empty >= 0]] = True
    unknown = int(np.count_nonzero(~known) + np.count_nonzero(empty < 0))

    # Lists of queries that are not in gold get numbers above those of gold, so nothing matches.
    number = np.where(known, query_of, n + np.arange(query_of.size)).astype(np.uint64)
    pairs = pair_hashes(results["item_id"], number, segments.lengths)
    row, judgment = _join_pairs(results["item_id"], pairs, gold.table)
    query = gold.table["query"].to_numpy()[judgment]
    start_of = np.zeros(n, np.int64)
    start_of[query_of[known]] = segments.starts[known]
    rank = row - start_of[query] + 1
    judged = ranked_rows(n, query, rank, gold.table["grade"].to_numpy()[judgment])
    alternatives = _ranked_alternatives(gold, judgment, rank)
    if all_distinct(pairs, segments.starts):
        repeats = _no_rows(judged)
    else:
        repeated = _repeated_rows(results["item_id"], segments)
        judged, repeats = _split_repeats(judged, repeated, query_of, segments.starts)
    hits = Hits(judged, repeats, gold.ideal, length, alternatives=alternatives)
    return Match(hits, present, unknown)


def _no_rows(rows: RankedRows) -> RankedRows:
    return rows.where(np.zeros(rows.query.size, np.bool_))


def _ranked_alternatives(gold: PreparedGold, judgment: Ints, rank: Ints) -> Alternatives | None:
    """Return the alternatives of gold with the first rank of each item."""
    if gold.alternatives is None:
        return None
    first = np.zeros(gold.table.height, np.int64)
    # Assign from the last rank to the first, so that the first rank of a repeated item remains.
    order = np.argsort(-rank, kind="stable")
    first[judgment[order]] = rank[order]
    return replace(gold.alternatives, rank=first[gold.alternatives.rank])


def _join_pairs(items: pl.Series, pairs: pl.Series, judged: pl.DataFrame) -> tuple[Ints, Ints]:
    """Return the rows of judged items, and the rows of their judgments.

    Hashes select the candidates, and the ids decide. Equal hashes and equal ids imply equal
    queries: the hash contains the query number times an odd number, and no two numbers have the
    same product modulo 2^64.
    """
    # Most pairs have no judgment. A table of flags that fits into the cache rules out most of them.
    n_bits = min((_FLAGS_PER_KEY * judged.height).bit_length(), _MOST_FLAG_BITS)
    mask = np.uint64((1 << n_bits) - 1)
    has_key: Flags = np.zeros(int(mask) + 1, np.bool_)
    has_key[judged["key"].to_numpy() & mask] = True
    candidates = np.flatnonzero(has_key[pairs.to_numpy() & mask])
    joined = (
        pl.LazyFrame({"key": pairs.to_numpy()[candidates], "row": candidates})
        .join(judged.lazy().select("key").with_row_index("judgment"), on="key", how="inner")
        .select(pl.col("row", "judgment").cast(pl.Int64))
        .collect()
    )
    row, judgment = joined["row"].to_numpy(), joined["judgment"].to_numpy()
    same = (items.gather(row) == judged["item_id"].gather(judgment)).to_numpy()
    return row[same], judgment[same]


def _repeated_rows(items: pl.Series, segments: QuerySegments) -> Ints:
    """Return the rows of items that already occur earlier in their list."""
    segment = np.repeat(np.arange(segments.lengths.size), segments.lengths)
    pairs = pl.DataFrame({"segment": segment, "item": items})
    first = pairs.select(pl.struct(pl.all()).is_first_distinct()).to_series()
    return np.flatnonzero(~first.to_numpy())


def _split_repeats(
    judged: RankedRows, repeated: Ints, query_of: Ints, starts: Ints
) -> tuple[RankedRows, RankedRows]:
    """Return the judged items at their first rank, and all repeated items, judged or not."""
    segment = np.searchsorted(starts, repeated, side="right") - 1
    query, rank = query_of[segment], repeated - starts[segment] + 1
    query, rank = query[query >= 0], rank[query >= 0]
    width = max(int(judged.rank.max(initial=0)), int(rank.max(initial=0))) + 1
    judged_key, repeated_key = judged.query * width + judged.rank, query * width + rank
    is_repeat = np.isin(judged_key, repeated_key)
    unjudged = ~np.isin(repeated_key, judged_key)
    judged_repeats = judged.where(is_repeat)
    repeats = ranked_rows(
        judged.n_queries,
        np.concatenate((judged_repeats.query, query[unjudged])),
        np.concatenate((judged_repeats.rank, rank[unjudged])),
        np.concatenate((judged_repeats.grade, np.full(np.count_nonzero(unjudged), -1))),
    )
    return judged.where(~is_repeat), repeats
