"""Matching straight from Python dicts and lists: the fastest way when the data is in memory."""

from __future__ import annotations

from itertools import chain, repeat
from typing import Any

import numpy as np

from karat.data.lists import Lists
from karat.match.hits import Flags, Floats, Hits, Ints, Places, places
from karat.match.prepared import PreparedGold

# Stands for 'not judged' where grades are looked up; no reader lets such a grade in.
_UNJUDGED = -(1 << 62)
# From this many retrieved items for each judged one, looking the judged ones up in the list is
# cheaper than looking every retrieved one up in gold.
_DEEP = 4


def match_dicts(gold: PreparedGold, lists: Lists) -> tuple[Hits, Flags, int]:
    """Find the judged items of each list and their ranks."""
    n = gold.query_ids.len()
    number = gold.number
    numbers = np.fromiter(
        (number.get(q, -1) for q in lists.by_query), np.int64, len(lists.by_query)
    )
    known = numbers >= 0
    length, present = np.zeros(n, np.int64), np.zeros(n, np.bool_)
    length[numbers[known]] = lists.lengths[known]
    present[numbers[known]] = True
    if lists.scores is None:
        found, repeats = _from_ids(gold, lists, numbers)
    else:
        found, repeats = _from_scores(gold, lists, lists.scores, numbers), None
    if repeats is None:
        repeats = found.where(np.zeros(found.query.size, np.bool_))
    return Hits(found, repeats, gold.ideal, length), present, int(np.count_nonzero(~known))


def _from_ids(gold: PreparedGold, lists: Lists, numbers: Ints) -> tuple[Places, Places]:
    """Look every retrieved item up; its rank is its place in the list."""
    assert gold.mapping is not None
    n = gold.query_ids.len()
    judged = [gold.mapping.get(query, {}) for query in lists.by_query]
    lookups = (
        map(grades.get, items, repeat(_UNJUDGED))
        for grades, items in zip(judged, lists.by_query.values(), strict=True)
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
    """Find each judged item's rank by counting the scores above its own."""
    assert gold.mapping is not None
    ends = np.cumsum(lists.lengths)
    query: list[int] = []
    rank: list[Ints] = []
    grade: list[int] = []
    rows = zip(lists.by_query.items(), numbers.tolist(), ends.tolist(), strict=True)
    start = 0
    for (name, items), number, end in rows:
        own, start = scores[start:end], end
        judged = gold.mapping.get(name)
        if not judged or number < 0:
            continue
        if len(items) > _DEEP * len(judged):
            hits = list(items.keys() & judged.keys())
        else:
            hits = [item for item in items if item in judged]
        if hits:
            query += [number] * len(hits)
            grade += [judged[item] for item in hits]
            rank.append(_ranks(hits, items, own))
    return places(
        gold.query_ids.len(),
        np.array(query, np.int64),
        np.concatenate(rank) if rank else np.zeros(0, np.int64),
        np.array(grade, np.int64),
    )


def _ranks(hits: list[str], items: dict[str, Any], scores: Floats) -> Ints:
    """Rank by score descending, ties by id descending (code points sort as UTF-8 bytes do)."""
    rising = np.sort(scores)
    own = np.array([items[item] for item in hits], np.float64)
    above = scores.size - np.searchsorted(rising, own, side="right")
    tied = above + 1 < scores.size - np.searchsorted(rising, own, side="left")
    if tied.any():
        names = list(items)
        for at in np.flatnonzero(tied).tolist():
            rivals = np.flatnonzero(scores == own[at]).tolist()
            above[at] += sum(names[rival] > hits[at] for rival in rivals)
    ranks: Ints = above + 1
    return ranks
