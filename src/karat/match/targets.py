"""Pieces of gold, spans or texts, and which retrieved items cover which of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from karat.arrays import Flags, Ints
from karat.match.hits import RankedRows


@dataclass(frozen=True, eq=False)
class Targets:
    """Pairs of an item and a piece that it covers, sorted by query and rank.

    Pieces are numbered over all queries; `whose` is the query of each. In the places below,
    `grade` counts pieces.
    """

    n_queries: int
    whose: Ints
    query: Ints
    rank: Ints
    piece: Ints

    @cached_property
    def count(self) -> Ints:
        """How many pieces gold holds in each query."""
        return np.bincount(self.whose, minlength=self.n_queries)

    @cached_property
    def covering(self) -> RankedRows:
        """The items that cover a piece at all, with how many."""
        return self._places(np.ones(self.piece.size, np.bool_))

    @cached_property
    def new(self) -> RankedRows:
        """The items that cover a piece that none before them covers, with how many such."""
        first = np.zeros(self.piece.size, np.bool_)
        # Pairs stand in rank order within a query, and a piece belongs to one query.
        first[np.unique(self.piece, return_index=True)[1]] = True
        return self._places(first)

    def _places(self, keep: Flags) -> RankedRows:
        query, rank = self.query[keep], self.rank[keep]
        opens = _opens(query, rank)
        counts = np.diff(np.append(np.flatnonzero(opens), query.size))
        return RankedRows(self.n_queries, query[opens], rank[opens], counts)

    @cached_property
    def ideal(self) -> RankedRows:
        """The items that were retrieved in a better order, then each other piece at its own rank.

        The better order is greedy: next comes the item that covers most of what is still
        uncovered, of equal ones the first. All queries take their next step together. From the
        step on at which no item brings two pieces, every piece that is left takes a rank.
        """
        steps: list[tuple[Ints, Ints]] = []
        left = np.ones(self.whose.size, np.bool_)
        item = np.cumsum(_opens(self.query, self.rank)) - 1
        query, piece = self.query, self.piece
        while True:
            worth = np.bincount(item)
            several = worth[item] > 1
            query, item, piece = query[several], item[several], piece[several]
            if not item.size:
                break
            best = _best(query, item, worth)
            taken = np.isin(item, best)
            steps.append((query[np.searchsorted(item, best)], worth[best]))
            left[piece[taken]] = False
            keep = left[piece]
            query, item, piece = query[keep], item[keep], piece[keep]
        rest = self.whose[left]
        queries = np.concatenate([*(chosen for chosen, _ in steps), np.sort(rest)])
        counts = np.concatenate([*(brought for _, brought in steps), np.ones(rest.size, np.int64)])
        order = np.argsort(queries, kind="stable")
        ranked = RankedRows(self.n_queries, queries[order], counts[order], counts[order])
        return RankedRows(self.n_queries, ranked.query, ranked.ordinal, ranked.grade)


def _best(query: Ints, item: Ints, worth: Ints) -> Ints:
    """Return the item of each query that is worth most, of equal ones the first."""
    candidates, at = np.unique(item, return_index=True)
    queries = query[at]
    order = np.lexsort((candidates, -worth[candidates], queries))
    leads = _opens(queries[order])
    return np.sort(candidates[order][leads])


def _opens(*keys: Ints) -> Flags:
    """Tell where a sorted row of keys begins anew."""
    opens = np.ones(keys[0].size, np.bool_)
    opens[1:] = np.logical_or.reduce([key[1:] != key[:-1] for key in keys])
    return opens
