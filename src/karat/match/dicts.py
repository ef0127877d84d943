"""Matching straight from Python dicts and lists: the fastest way when the data is in memory."""

from __future__ import annotations

from itertools import chain, repeat

import numpy as np

from karat.arrays import Flags, Floats, Ints
from karat.data.lists import Lists
from karat.match.hits import Hits, Places, places
from karat.match.prepared import PreparedGold

# Stands for 'not judged' where grades are looked up; no reader lets such a grade in.
_UNJUDGED = -(1 << 62)


def match_dicts(gold: PreparedGold, lists: Lists) -> tuple[Hits, Flags, int]:
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


def _from_ids(gold: PreparedGold, lists: Lists, numbers: Ints) -> tuple[Places, Places]:
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
        places(n, query[hit], rank[hit], grade[hit]),
        places(n, query[again], rank[again], grade_again),
    )


def _from_scores(gold: PreparedGold, lists: Lists, scores: Floats, numbers: Ints) -> Places:
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
    return places(gold.query_ids.len(), query, above + 1, grade)


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
