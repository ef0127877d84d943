"""Hits: the judged items in the list of each query, as flat arrays that rank measures read."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from karat.arrays import Flags, Floats, Ints


@dataclass(frozen=True, eq=False)
class RankedRows:
    """Rows with a query, a rank and a grade, sorted by query and rank."""

    n_queries: int
    query: Ints
    rank: Ints
    grade: Ints

    @cached_property
    def count(self) -> Ints:
        """The number of rows of each query."""
        return np.bincount(self.query, minlength=self.n_queries)

    @cached_property
    def ordinal(self) -> Ints:
        """The position of each row among the rows of its query, from 1."""
        return _ordinal(self.query, self.count)

    @cached_property
    def first_rank(self) -> Ints:
        """The rank of the first row of each query, 0 if it has none."""
        first = np.zeros(self.n_queries, np.int64)
        is_first = self.ordinal == 1
        first[self.query[is_first]] = self.rank[is_first]
        return first

    @cached_property
    def first_gap(self) -> Ints:
        """The first rank of each query that has no row."""
        # Up to the first gap, the rank of a row equals its position.
        unbroken = self.query[self.rank == self.ordinal]
        return np.bincount(unbroken, minlength=self.n_queries) + 1

    def within(self, cutoff: int | Ints | None) -> RankedRows:
        """Keep the ranks up to a cutoff, which is one number or one per query."""
        if cutoff is None:
            return self
        limit = cutoff if isinstance(cutoff, int) else cutoff[self.query]
        return self.where(self.rank <= limit)

    def where(self, keep: Flags) -> RankedRows:
        """Keep the rows that a mask selects."""
        return RankedRows(self.n_queries, self.query[keep], self.rank[keep], self.grade[keep])

    def read_only(self) -> RankedRows:
        """Return the same rows with read-only arrays."""
        arrays = [array.view() for array in (self.query, self.rank, self.grade)]
        for array in arrays:
            array.flags.writeable = False
        return RankedRows(self.n_queries, *arrays)

    def total(self, weights: Floats) -> Floats:
        """Sum the weights of each query, in rank order.

        `np.bincount` adds in the order of the array, so the digits of a query do not depend on
        which other queries are scored.
        """
        return np.bincount(self.query, weights, self.n_queries).astype(np.float64, copy=False)


@dataclass(frozen=True, eq=False)
class Alternatives:
    """Groups of interchangeable items: finding one item of a group is enough.

    `query`, `rank` (0 if not retrieved) and `grade` have one entry per query and item that is in a
    group. `member` and `group` form pairs: the item `member` is in the group `group`.
    `group_query` is the query of each group.
    """

    query: Ints
    rank: Ints
    grade: Ints
    member: Ints
    group: Ints
    group_query: Ints

    def counted(self, needed: Ints, reached: Ints, k: int | None, rel: int) -> tuple[Ints, Ints]:
        """Correct two counts of items so that each group counts as one item.

        `needed` is the number of relevant items per query, `reached` the number in the top k.
        """
        relevant = self.grade >= rel
        retrieved = relevant & (self.rank > 0)
        if k is not None:
            retrieved &= self.rank <= k
        n_queries, n_groups = needed.size, self.group_query.size

        def with_groups(count: Ints, items: Flags) -> Ints:
            groups = np.bincount(self.group[items[self.member]], minlength=n_groups) > 0
            alone = count - np.bincount(self.query[items], minlength=n_queries)
            return alone + np.bincount(self.group_query[groups], minlength=n_queries)

        return with_groups(needed, relevant), with_groups(reached, retrieved)


@dataclass(frozen=True, eq=False)
class Hits:
    """The retrieved items that are judged, and the ideal list, for all queries."""

    found: RankedRows
    """The judged items at their first rank, including those of grade 0 or below."""
    repeats: RankedRows
    """The ranks at which an item occurs again; the grade is -1 if the item is unjudged."""
    gold: RankedRows
    """The grades of all judgments, highest first; `rank` is the rank in this ideal list."""
    length: Ints
    """The number of retrieved items of each query."""
    largest_grade: int | None = None
    alternatives: Alternatives | None = None
    _relevant: dict[int, RankedRows] = field(default_factory=dict, repr=False)
    _n_relevant: dict[int, Ints] = field(default_factory=dict, repr=False)
    _ruled_out: dict[int, RankedRows] = field(default_factory=dict, repr=False)

    @property
    def n_queries(self) -> int:
        """The number of queries."""
        return self.found.n_queries

    def relevant(self, rel: int) -> RankedRows:
        """Return the hits with this grade or a higher one."""
        if rel not in self._relevant:
            self._relevant[rel] = self.found.where(self.found.grade >= rel)
        return self._relevant[rel]

    def n_relevant(self, rel: int) -> Ints:
        """Return, per query, the number of items with this grade or a higher one in gold."""
        if rel not in self._n_relevant:
            self._n_relevant[rel] = self.gold.where(self.gold.grade >= rel).count
        return self._n_relevant[rel]

    def ruled_out(self, rel: int) -> RankedRows:
        """Return the ranks that cannot be relevant, however the unjudged items are judged.

        These are the ranks of repeated items and of items judged below this grade.
        """
        if rel not in self._ruled_out:
            irrelevant = self.judged.where(self.judged.grade < rel)
            self._ruled_out[rel] = merge_rows(irrelevant, self.repeats)
        return self._ruled_out[rel]

    @cached_property
    def judged(self) -> RankedRows:
        """The hits with a grade of 0 or more; items with a negative grade count as unjudged."""
        return self.found.where(self.found.grade >= 0)

    def grades(self, k: int | None = None, unjudged: int = 0) -> list[Ints]:
        """Return one array per query: the grade at each rank up to k.

        Items without a judgment have the grade `unjudged`, repeated items 0.
        """
        length = self.slots(k)
        start = np.cumsum(length) - length
        flat = np.full(int(length.sum()), unjudged)
        judged, repeats = (
            rows.where(rows.rank <= length[rows.query]) for rows in (self.judged, self.repeats)
        )
        flat[start[judged.query] + judged.rank - 1] = judged.grade
        flat[start[repeats.query] + repeats.rank - 1] = 0
        return np.split(flat, start[1:])

    def gold_grades(self) -> list[Ints]:
        """Return one array per query: the grades of its judgments, highest first."""
        count = self.gold.count
        return np.split(self.gold.grade.copy(), (np.cumsum(count) - count)[1:])

    def read_only(self) -> Hits:
        """Return the same hits with read-only arrays."""
        length = self.length.view()
        length.flags.writeable = False
        found, repeats, gold = (rows.read_only() for rows in (self.found, self.repeats, self.gold))
        return Hits(found, repeats, gold, length, self.largest_grade, self.alternatives)

    def slots(self, cutoff: int | None) -> Ints:
        """Return the number of ranks of each list, up to a cutoff."""
        return self.length if cutoff is None else np.minimum(self.length, cutoff)

    def items(self, cutoff: int | None) -> Ints:
        """Return the number of distinct items of each list, up to a cutoff."""
        return self.slots(cutoff) - self.repeats.within(cutoff).count

    def within(self, cutoff: int | None) -> Hits:
        """Return the hits of the lists cut at a rank."""
        found, repeats = self.found.within(cutoff), self.repeats.within(cutoff)
        return Hits(
            found, repeats, self.gold, self.slots(cutoff), self.largest_grade, self.alternatives
        )

    def counting_repeats(self) -> Hits:
        """Return hits in which a repeated item counts again at each of its ranks."""
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
    """Build rows from unsorted arrays."""
    # Sorting by one combined key is three times as fast as sorting by two keys.
    order = np.argsort(query * (rank.max(initial=0) + 1) + rank)
    return RankedRows(n_queries, query[order], rank[order], grade[order])


def merge_rows(one: RankedRows, other: RankedRows) -> RankedRows:
    """Return the rows of both, sorted by query and rank."""
    if not other.query.size:
        return one
    return ranked_rows(
        one.n_queries,
        np.concatenate((one.query, other.query)),
        np.concatenate((one.rank, other.rank)),
        np.concatenate((one.grade, other.grade)),
    )


def ideal_rows(n_queries: int, query: Ints, grade: Ints) -> RankedRows:
    """Return the ideal list of each query: its grades, highest first."""
    top = int(grade.max(initial=0))
    n_grades = top - int(grade.min(initial=0)) + 1
    n_keys = n_queries * n_grades
    keys = query * n_grades + (top - grade)
    if n_keys <= 16 * keys.size:  # with few distinct grades, counting is faster than sorting
        keys = np.repeat(np.arange(n_keys), np.bincount(keys, minlength=n_keys))
    else:
        keys = np.sort(keys)
    query = keys // n_grades
    count = np.bincount(query, minlength=n_queries)
    return RankedRows(n_queries, query, _ordinal(query, count), top - (keys - query * n_grades))


def _ordinal(query: Ints, count: Ints) -> Ints:
    return np.arange(1, query.size + 1) - (np.cumsum(count) - count)[query]


def judged_only(hits: Hits) -> Hits:
    """Return the hits of the lists without unjudged items, with the ranks renumbered."""
    repeats = hits.repeats.where(hits.repeats.grade >= 0)
    judged = merge_rows(hits.judged, repeats)
    is_repeat = np.isin(_keys(judged), _keys(repeats))
    renumbered = RankedRows(judged.n_queries, judged.query, judged.ordinal, judged.grade)
    alternatives = hits.alternatives
    if alternatives is not None:
        alternatives = replace(alternatives, rank=_new_ranks(alternatives, judged))
    return Hits(
        renumbered.where(~is_repeat),
        renumbered.where(is_repeat),
        hits.gold,
        judged.count,
        hits.largest_grade,
        alternatives,
    )


def _new_ranks(alternatives: Alternatives, judged: RankedRows) -> Ints:
    """Return the ranks of the alternatives among the judged items, 0 for those not retrieved."""
    keys = np.append(_keys(judged), -1)
    old_keys = (alternatives.query << 32) | alternatives.rank
    position = np.searchsorted(keys[:-1], old_keys)
    return np.where(keys[position] == old_keys, np.append(judged.ordinal, 0)[position], 0)


def _keys(rows: RankedRows) -> Ints:
    return (rows.query << 32) | rows.rank
