"""Which queries tell most, where there are too many to keep the texts of all."""

from __future__ import annotations

import numpy as np

from karat.arrays import Flags, Floats, Ints


def telling(values: Floats, failed: Flags, n: int, *, higher_is_better: bool = True) -> Ints:
    """Return the numbers of the n queries that tell most, in their order.

    Values have a row a run; no number where a query is left out. First come the queries that a
    run failed on; then, by turns, those that even the best run is worst at and those whose value
    moves most from run to run. Of equals, the first.
    """
    n_queries = values.shape[1]
    if n >= n_queries:
        return np.arange(n_queries)
    known = ~np.isnan(values).all(axis=0)
    signed = values if higher_is_better else -values
    best = np.where(known, np.fmax.reduce(signed, axis=0), np.inf)
    moved = np.where(known, best - np.fmin.reduce(signed, axis=0), 0.0)
    worst_first = np.argsort(best, kind="stable")
    most_moved_first = np.argsort(-moved, kind="stable")
    most_moved_first[np.count_nonzero(moved) :] = -1
    by_turns = np.stack((worst_first, most_moved_first), axis=1).ravel()
    order = np.concatenate((np.flatnonzero(failed), by_turns[by_turns >= 0]))
    _, first = np.unique(order, return_index=True)
    return np.sort(order[np.sort(first)][:n])
