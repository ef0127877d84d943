"""Which queries of a page are the most informative."""

from __future__ import annotations

import numpy as np

from karat.arrays import Flags, Floats, Ints


def informative_queries(
    values: Floats, failed: Flags, n: int, *, higher_is_better: bool = True
) -> Ints:
    """Return the row numbers of the n most informative queries, in ascending order.

    `values` has one row per run, with NaN where a query is left out. Queries that a run failed on
    come first; then, alternately, the queries with the lowest best value and the queries with the
    largest difference between runs. Ties go to the first query.
    """
    n_queries = values.shape[1]
    if n >= n_queries:
        return np.arange(n_queries)
    has_value = ~np.isnan(values).all(axis=0)
    signed = values if higher_is_better else -values
    best = np.where(has_value, np.fmax.reduce(signed, axis=0), np.inf)
    spread = np.where(has_value, best - np.fmin.reduce(signed, axis=0), 0.0)
    worst_first = np.argsort(best, kind="stable")
    largest_spread_first = np.argsort(-spread, kind="stable")
    largest_spread_first[np.count_nonzero(spread) :] = -1
    alternating = np.stack((worst_first, largest_spread_first), axis=1).ravel()
    order = np.concatenate((np.flatnonzero(failed), alternating[alternating >= 0]))
    _, first = np.unique(order, return_index=True)
    return np.sort(order[np.sort(first)][:n])
