"""Targets: the gold spans or evidence texts to be found, and which retrieved items cover them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from karat.arrays import Flags, Ints
from karat.match.hits import RankedRows


@dataclass(frozen=True, eq=False)
class Targets:
    """Pairs of an item and a target that it covers, sorted by query and rank.

    Targets are numbered over all queries, and `target_query` is the query of each. `query`, `rank`
    and `target` describe the pairs. In the `RankedRows` that the properties return, `grade` is a
    number of targets.
    """

    n_queries: int
    target_query: Ints
    query: Ints
    rank: Ints
    target: Ints

    @cached_property
    def count(self) -> Ints:
        """The number of targets of each query."""
        return np.bincount(self.target_query, minlength=self.n_queries)

    @cached_property
    def covering(self) -> RankedRows:
        """The items that cover at least one target; `grade` is the number of targets."""
        return self._count_by_item(np.ones(self.target.size, np.bool_))

    @cached_property
    def newly_covered(self) -> RankedRows:
        """The items that cover new targets (no earlier rank covers them); `grade` counts these."""
        first = np.zeros(self.target.size, np.bool_)
        # Pairs are in rank order within a query, and a target belongs to one query.
        first[np.unique(self.target, return_index=True)[1]] = True
        return self._count_by_item(first)

    def _count_by_item(self, keep: Flags) -> RankedRows:
        query, rank = self.query[keep], self.rank[keep]
        starts = _group_starts(query, rank)
        counts = np.diff(np.append(np.flatnonzero(starts), query.size))
        return RankedRows(self.n_queries, query[starts], rank[starts], counts)

    @cached_property
    def ideal(self) -> RankedRows:
        """The best order of the retrieved items, then each target that is left at its own rank.

        The order is greedy: next comes the item that covers the most targets that are still
        uncovered, the first of several. All queries take each step together. Once no item adds
        two targets or more, every remaining target takes a rank of its own.
        """
        steps: list[tuple[Ints, Ints]] = []
        uncovered = np.ones(self.target_query.size, np.bool_)
        item = np.cumsum(_group_starts(self.query, self.rank)) - 1
        query, target = self.query, self.target
        while True:
            gain = np.bincount(item)
            several = gain[item] > 1
            query, item, target = query[several], item[several], target[several]
            if not item.size:
                break
            best = _best_items(query, item, gain)
            steps.append((query[np.searchsorted(item, best)], gain[best]))
            uncovered[target[np.isin(item, best)]] = False
            keep = uncovered[target]
            query, item, target = query[keep], item[keep], target[keep]
        rest = self.target_query[uncovered]
        queries = np.concatenate([*(step_query for step_query, _ in steps), np.sort(rest)])
        counts = np.concatenate([*(step_gain for _, step_gain in steps), np.ones_like(rest)])
        order = np.argsort(queries, kind="stable")
        rows = RankedRows(self.n_queries, queries[order], counts[order], counts[order])
        return RankedRows(self.n_queries, rows.query, rows.ordinal, rows.grade)


def _best_items(query: Ints, item: Ints, gain: Ints) -> Ints:
    """Return the item of each query with the largest gain, the first of several."""
    candidates, first = np.unique(item, return_index=True)
    queries = query[first]
    order = np.lexsort((candidates, -gain[candidates], queries))
    best = _group_starts(queries[order])
    return np.sort(candidates[order][best])


def _group_starts(*keys: Ints) -> Flags:
    """Return where a new combination of keys starts; equal combinations must be adjacent."""
    starts = np.ones(keys[0].size, np.bool_)
    starts[1:] = np.logical_or.reduce([key[1:] != key[:-1] for key in keys])
    return starts
