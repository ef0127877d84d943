"""Matching by id: an item is found when gold judges the same string for the same query."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain, repeat

import numpy as np
import polars as pl

from karat.arrays import Flags, Floats, Ints
from karat.conventions import Conventions
from karat.data.dict_runs import DictRun
from karat.data.ranking import QuerySegments
from karat.data.run import Run
from karat.errors import ConventionError, InputError
from karat.match.align import pair_hashes, query_numbers, all_distinct
from karat.match.gold_index import PreparedGold
from karat.match.hits import Hits, RankedRows, judged_only, ranked_rows

# Stands for 'not judged' where grades are looked up; no reader lets such a grade in.
_UNJUDGED = -(1 << 62)


def match_dicts(gold: PreparedGold, lists: DictRun) -> tuple[Hits, Flags, int]:
    """Find the judged items of each list and their ranks."""
    n = gold.query_ids.len()
    found_numbers = map(gold.number.get, lists.by_query, repeat(-1))
    numbers = np.fromiter(found_numbers, np.int64, lists.lengths.size)
    known = numbers >= 0
    length, present = np.zeros(n, np.int64), np.zeros(n, np.bool_)
    length[numbers[known]] = lists.lengths[known]
    present[numbers[known]] = True
    if lists.scores is None:
        found, repeats = _from_ids(gold, lists, numbers)
    else:
        found = _from_scores(gold, lists, lists.scores, numbers)
        repeats = found.where(np.zeros(found.query.size, np.bool_))
    return Hits(found, repeats, gold.ideal, length), present, int(np.count_nonzero(~known))


def _from_ids(gold: PreparedGold, lists: DictRun, numbers: Ints) -> tuple[RankedRows, RankedRows]:
    """Look every retrieved item up; its rank is its place in the list."""
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
    again = np.zeros(query.size, np.bool_)
    for at, items in enumerate(lists.by_query.values()):
        if len(set(items)) < len(items):
            seen: set[str] = set()
            for place, item in enumerate(items):
                again[starts[at] + place] = item in seen
                seen.add(item)
    known = query >= 0
    hit = known & (grade != _UNJUDGED) & ~again
    again &= known
    grade_again = np.where(grade[again] == _UNJUDGED, -1, grade[again])
    return (
        ranked_rows(n, query[hit], rank[hit], grade[hit]),
        ranked_rows(n, query[again], rank[again], grade_again),
    )


def _from_scores(gold: PreparedGold, lists: DictRun, scores: Floats, numbers: Ints) -> RankedRows:
    """Ask each list for the scores of the judged items, then count the scores above them."""
    assert gold.mapping is not None
    empty: dict[str, float] = {}
    lookups = (
        map(lists.by_query.get(query, empty).get, judged, repeat(np.nan))
        for query, judged in gold.mapping.items()
    )
    query, grade = gold.flat
    own = np.fromiter(chain.from_iterable(lookups), np.float64, grade.size)
    hit = np.flatnonzero(~np.isnan(own))
    query, grade, own = query[hit], grade[hit], own[hit]
    at = np.zeros(gold.query_ids.len(), np.int64)
    at[numbers[numbers >= 0]] = np.flatnonzero(numbers >= 0)
    ends = np.cumsum(lists.lengths)
    starts = ends - lists.lengths
    start, end = starts[at[query]], ends[at[query]]
    rising = _rising(-scores, starts, ends)
    above = _count_below(rising, -own, start, end)
    tied = (above + 1 < end - start) & (rising[np.minimum(start + above + 1, end - 1)] == -own)
    if tied.any():
        judged = list(chain.from_iterable(gold.mapping.values()))
        places_of: dict[tuple[int, float], dict[str, int]] = {}
        for tie in np.flatnonzero(tied).tolist():
            key = (int(query[tie]), float(own[tie]))
            if key not in places_of:
                items = lists.by_query[gold.query_ids[key[0]]]
                places_of[key] = _places_in_tie(items, scores[start[tie] : end[tie]], key[1])
            above[tie] += places_of[key][judged[hit[tie]]]
    return ranked_rows(gold.query_ids.len(), query, above + 1, grade)


def _places_in_tie(items: dict[str, float], scores: Floats, score: float) -> dict[str, int]:
    """Give the items of one score their places: ids descending as bytes.

    Code points sort as their UTF-8 bytes do, so plain comparison of strings is right.
    """
    names = list(items)
    tied = sorted((names[at] for at in np.flatnonzero(scores == score)), reverse=True)
    return {name: place for place, name in enumerate(tied)}


def _rising(keys: Floats, starts: Ints, ends: Ints) -> Floats:
    """Sort the keys of each list; most lists come sorted."""
    rises = keys[:-1] <= keys[1:]
    rises[starts[(starts > 0) & (starts < keys.size)] - 1] = True
    if not rises.all():
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
            keys[start:end].sort()
    return keys


def _count_below(rising: Floats, own: Floats, starts: Ints, ends: Ints) -> Ints:
    """Count in each stretch the keys below a given one: bisection, all stretches at once."""
    low, high = starts.copy(), ends.copy()
    while (low < high).any():
        middle = (low + high) // 2
        below = (low < high) & (rising[np.minimum(middle, rising.size - 1)] < own)
        high = np.where(below, high, middle)
        low = np.where(below, middle + 1, low)
    return low - starts


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
        raise repeat_error(gold, hits.repeats.query[0], hits.repeats.rank[0])
    if conventions.unjudged == "skip":
        hits = judged_only(hits)
    return Match(hits, present, unknown)


def repeat_error(gold: PreparedGold, query: np.int64, rank: np.int64) -> ConventionError:
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
    query_of = query_numbers(gold.query_ids, segments.query_ids)
    known = query_of >= 0
    length = np.zeros(n, np.int64)
    length[query_of[known]] = segments.lengths[known]
    present = length > 0
    asked = query_numbers(gold.query_ids, pl.Series(run.empty, dtype=pl.String))
    present[asked[asked >= 0]] = True
    unknown = int(np.count_nonzero(~known) + np.count_nonzero(asked < 0))

    # Lists that gold does not know are numbered after those it knows, and so match nothing.
    number = np.where(known, query_of, n + np.arange(query_of.size)).astype(np.uint64)
    pairs = pair_hashes(results["item_id"], number, segments.lengths)
    row, judgment = _same_pairs(results["item_id"], pairs, gold.table)
    query = gold.table["query"].to_numpy()[judgment]
    start_of = np.zeros(n, np.int64)
    start_of[query_of[known]] = segments.starts[known]
    rank = row - start_of[query] + 1
    found = ranked_rows(n, query, rank, gold.table["grade"].to_numpy()[judgment])
    alternatives = None
    if gold.alternatives is not None:
        first = np.zeros(gold.table.height, np.int64)
        # A repeated item counts at its first rank, so assign ranks from the last to the first.
        order = np.argsort(-rank, kind="stable")
        first[judgment[order]] = rank[order]
        alternatives = replace(gold.alternatives, rank=first[gold.alternatives.rank])
    if all_distinct(pairs, segments.starts):
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


def _repeated_rows(items: pl.Series, segments: QuerySegments) -> Ints:
    """Return the rows whose item stands earlier in the same list."""
    segment = np.repeat(np.arange(segments.lengths.size), segments.lengths)
    pairs = pl.DataFrame({"segment": segment, "item": items})
    first = pairs.select(pl.struct(pl.all()).is_first_distinct()).to_series()
    return np.flatnonzero(~first.to_numpy())


def _split_repeats(
    found: RankedRows, again: Ints, query_of: Ints, starts: Ints, n: int
) -> tuple[RankedRows, RankedRows]:
    segment = np.searchsorted(starts, again, side="right") - 1
    query, rank = query_of[segment], again - starts[segment] + 1
    query, rank = query[query >= 0], rank[query >= 0]
    width = max(int(found.rank.max(initial=0)), int(rank.max(initial=0))) + 1
    found_key, again_key = found.query * width + found.rank, query * width + rank
    is_repeat = np.isin(found_key, again_key)
    unjudged = ~np.isin(again_key, found_key)
    judged = found.where(is_repeat)
    repeats = ranked_rows(
        n,
        np.concatenate((judged.query, query[unjudged])),
        np.concatenate((judged.rank, rank[unjudged])),
        np.concatenate((judged.grade, np.full(np.count_nonzero(unjudged), -1))),
    )
    return found.where(~is_repeat), repeats
