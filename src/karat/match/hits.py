"""Hits: where each query's list meets gold, flat arrays that every rank measure reads."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from karat.arrays import Flags, Floats, Ints


@dataclass(frozen=True, eq=False)
class RankedRows:
    """Some ranked places, sorted by query and rank."""

    n_queries: int
    query: Ints
    rank: Ints
    grade: Ints

    @cached_property
    def count(self) -> Ints:
        """How many there are in each query."""
        return np.bincount(self.query, minlength=self.n_queries)

    @cached_property
    def ordinal(self) -> Ints:
        """The how-manieth each is in its query, from 1."""
        return _ordinal(self.query, self.count)

    @cached_property
    def first_rank(self) -> Ints:
        """The rank of the first in each query, 0 where there is none."""
        first = np.zeros(self.n_queries, np.int64)
        leads = self.ordinal == 1
        first[self.query[leads]] = self.rank[leads]
        return first

    @cached_property
    def first_gap(self) -> Ints:
        """The first rank in each query at which none of them stands."""
        # As long as no rank was passed over, each is the how-manieth its rank says.
        unbroken = self.query[self.rank == self.ordinal]
        return np.bincount(unbroken, minlength=self.n_queries) + 1

    def within(self, cutoff: int | Ints | None) -> RankedRows:
        """Keep the ranks up to a cutoff: one for all queries, or one for each."""
        if cutoff is None:
            return self
        limit = cutoff if isinstance(cutoff, int) else cutoff[self.query]
        return self.where(self.rank <= limit)

    def where(self, keep: Flags) -> RankedRows:
        """Keep some of the places."""
        return RankedRows(self.n_queries, self.query[keep], self.rank[keep], self.grade[keep])

    def read_only(self) -> RankedRows:
        """Return the same places with arrays that nobody can change."""
        arrays = [each.view() for each in (self.query, self.rank, self.grade)]
        for each in arrays:
            each.flags.writeable = False
        return RankedRows(self.n_queries, *arrays)

    def total(self, weights: Floats) -> Floats:
        """Sum weights in each query, one after the other in rank order, never across queries.

        `np.bincount` adds in the order of the array, so the digits do not depend on what other
        queries are scored beside.
        """
        return np.bincount(self.query, weights, self.n_queries).astype(np.float64, copy=False)


@dataclass(frozen=True, eq=False)
class Alternatives:
    """Groups of interchangeable items, of which one is enough.

    `query`, `rank` (0 where it was not retrieved) and `grade` describe the items that are in any
    group, each once per query. `member` and `group` are pairs: this item is in this group.
    `group_query` is the query of each group.
    """

    query: Ints
    rank: Ints
    grade: Ints
    member: Ints
    group: Ints
    group_query: Ints

    def counted(self, needed: Ints, reached: Ints, k: int | None, rel: int) -> tuple[Ints, Ints]:
        """Count a group as one item, among all relevant items and among those in the top k."""
        relevant = self.grade >= rel
        found = relevant & (self.rank > 0)
        if k is not None:
            found &= self.rank <= k
        n_queries, n_groups = needed.size, self.group_query.size

        def with_groups(count: Ints, items: Flags) -> Ints:
            groups = np.bincount(self.group[items[self.member]], minlength=n_groups) > 0
            alone = count - np.bincount(self.query[items], minlength=n_queries)
            return alone + np.bincount(self.group_query[groups], minlength=n_queries)

        return with_groups(needed, relevant), with_groups(reached, found)


@dataclass(frozen=True, eq=False)
class Hits:
    """Every retrieved item that is judged, and per query what the list and gold amount to.

    `found` holds the judged items at their first place, grade 0 and below included. `repeats`
    holds the places where an item stands again (grade -1 where it is not judged). `gold` holds
    the grades of all judgments, highest first, `rank` being the place in that ideal list.
    """

    found: RankedRows
    repeats: RankedRows
    gold: RankedRows
    length: Ints
    largest_grade: int | None = None
    alternatives: Alternatives | None = None
    _relevant: dict[int, RankedRows] = field(default_factory=dict, repr=False)
    _n_relevant: dict[int, Ints] = field(default_factory=dict, repr=False)
    _ruled_out: dict[int, RankedRows] = field(default_factory=dict, repr=False)

    @property
    def n_queries(self) -> int:
        """How many queries there are."""
        return self.found.n_queries

    def relevant(self, rel: int) -> RankedRows:
        """Return the hits of this grade or higher."""
        if rel not in self._relevant:
            self._relevant[rel] = self.found.where(self.found.grade >= rel)
        return self._relevant[rel]

    def n_relevant(self, rel: int) -> Ints:
        """Return how many items of this grade or higher gold holds."""
        if rel not in self._n_relevant:
            self._n_relevant[rel] = self.gold.where(self.gold.grade >= rel).count
        return self._n_relevant[rel]

    def ruled_out(self, rel: int) -> RankedRows:
        """Return the places at which nothing counts, whatever the unjudged items turn out to be.

        Items judged below this grade stand there, or items that stand again.
        """
        if rel not in self._ruled_out:
            irrelevant = self.judged.where(self.judged.grade < rel)
            self._ruled_out[rel] = merge_rows(irrelevant, self.repeats)
        return self._ruled_out[rel]

    @cached_property
    def judged(self) -> RankedRows:
        """The hits with a grade of 0 or more; a grade below 0 is a judgment not made."""
        return self.found.where(self.found.grade >= 0)

    def grades(self, k: int | None = None, unjudged: int = 0) -> list[Ints]:
        """Return one array per query: the grade at each rank up to k.

        Items without a judgment have the grade `unjudged`, repeated items 0.
        """
        length = self.slots(k)
        start = np.cumsum(length) - length
        flat = np.full(int(length.sum()), unjudged)
        for places, grades in ((self.judged, self.judged.grade), (self.repeats, 0)):
            top = places.rank <= length[places.query]
            at = start[places.query[top]] + places.rank[top] - 1
            flat[at] = grades[top] if isinstance(grades, np.ndarray) else grades
        return np.split(flat, start[1:])

    def gold_grades(self) -> list[Ints]:
        """Return one array per query: the grades of its judgments, highest first."""
        count = self.gold.count
        return np.split(self.gold.grade.copy(), (np.cumsum(count) - count)[1:])

    def read_only(self) -> Hits:
        """Return the same hits with arrays that nobody can change."""
        length = self.length.view()
        length.flags.writeable = False
        found, repeats, gold = (each.read_only() for each in (self.found, self.repeats, self.gold))
        return Hits(found, repeats, gold, length, self.largest_grade, self.alternatives)

    def slots(self, cutoff: int | None) -> Ints:
        """Return how many places the list has, up to a cutoff."""
        return self.length if cutoff is None else np.minimum(self.length, cutoff)

    def items(self, cutoff: int | None) -> Ints:
        """Return how many different items the list has, up to a cutoff."""
        return self.slots(cutoff) - self.repeats.within(cutoff).count

    def within(self, cutoff: int | None) -> Hits:
        """Return what would be left if lists ended at a cutoff."""
        found, repeats = self.found.within(cutoff), self.repeats.within(cutoff)
        return Hits(
            found, repeats, self.gold, self.slots(cutoff), self.largest_grade, self.alternatives
        )

    def counting_repeats(self) -> Hits:
        """Return hits in which an item that stands again is found again, like any other."""
        if not self.repeats.query.size:
            return self
        none = self.repeats.where(np.zeros(self.repeats.query.size, np.bool_))
        return Hits(
            merge_rows(self.found, self.repeats),
            none,
            self.gold,
            self.length,
            self.largest_grade,
            self.alternatives,
        )


def ranked_rows(n_queries: int, query: Ints, rank: Ints, grade: Ints) -> RankedRows:
    """Sort places by query and rank."""
    # One key for both sorts three times faster than two keys would.
    order = np.argsort(query * (rank.max(initial=0) + 1) + rank)
    return RankedRows(n_queries, query[order], rank[order], grade[order])


def merge_rows(one: RankedRows, other: RankedRows) -> RankedRows:
    """Bring the places of both together, sorted by query and rank."""
    if not other.query.size:
        return one
    return ranked_rows(
        one.n_queries,
        np.concatenate((one.query, other.query)),
        np.concatenate((one.rank, other.rank)),
        np.concatenate((one.grade, other.grade)),
    )


def ideal_rows(n_queries: int, query: Ints, grade: Ints) -> RankedRows:
    """Order the grades of each query from the highest: the best list there could be."""
    top = int(grade.max(initial=0))
    span = top - int(grade.min(initial=0)) + 1
    keys = query * span + (top - grade)
    if n_queries * span <= 16 * keys.size:  # grades are few: counting them beats sorting
        keys = np.repeat(np.arange(n_queries * span), np.bincount(keys, minlength=n_queries * span))
    else:
        keys = np.sort(keys)
    query = keys // span
    count = np.bincount(query, minlength=n_queries)
    return RankedRows(n_queries, query, _ordinal(query, count), top - (keys - query * span))


def _ordinal(query: Ints, count: Ints) -> Ints:
    return np.arange(1, query.size + 1) - (np.cumsum(count) - count)[query]


def judged_only(hits: Hits) -> Hits:
    """Return what would be left if lists held judged items only, ranks closed up."""
    again = hits.repeats.where(hits.repeats.grade >= 0)
    both = merge_rows(hits.judged, again)
    is_again = np.isin(_keys(both), _keys(again))
    closed = RankedRows(both.n_queries, both.query, both.ordinal, both.grade)
    alternatives = hits.alternatives
    if alternatives is not None:
        ranks = _closed_up(alternatives, both)
        alternatives = replace(alternatives, rank=ranks)
    return Hits(
        closed.where(~is_again),
        closed.where(is_again),
        hits.gold,
        both.count,
        hits.largest_grade,
        alternatives,
    )


def _closed_up(alternatives: Alternatives, judged: RankedRows) -> Ints:
    """Return the ranks of alternatives in lists of judged items only; 0 where one is not there."""
    keys = np.append(_keys(judged), -1)
    wanted = (alternatives.query << 32) | alternatives.rank
    at = np.searchsorted(keys[:-1], wanted)
    return np.where(keys[at] == wanted, np.append(judged.ordinal, 0)[at], 0)


def _keys(places: RankedRows) -> Ints:
    return (places.query << 32) | places.rank
