"""Interpolated precision: the highest precision at or above a recall level."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import numpy as np

from karat.arrays import Floats, Ints
from karat.match.hits import Hits
from karat.measures.kernels.references import MANNING
from karat.measures.registry import REL, measure
from karat.measures.trace import trace_numbers, trace_rows

Needed = Callable[[Hits, float, int], Ints]
"""Computes how many relevant items reach a recall level, from hits, level and `rel`."""
ELEVEN_POINTS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


@measure(
    "IPrec",
    aliases=("iprec_at_recall",),
    several=("iprec_at_recall",),
    title="Interpolated precision at a recall level",
    cites=(MANNING,),
    formula="the highest precision at any rank k where the top k contains at least r · R relevant "
    "items; r is the recall level, R is the number of relevant items, and r · R is rounded",
    edges="0 if the recall level is never reached; at r = 0, the highest precision at any rank",
    differs="trec_eval 10.0 agrees, and rounds r · R half up; earlier versions, pytrec_eval and "
    "ir_measures truncate r · R + 0.9",
    cutoff="share",
    params=(REL,),
)
def interpolated_precision(hits: Hits, k: float, rel: int) -> Floats:
    value = at_recall(hits, k, rel)
    trace_numbers(relevant_needed=relevant_needed(hits, k, rel), highest_precision_from_there=value)
    return value


@measure(
    "11pt",
    aliases=("11pt_avg", "eleven_point_average"),
    title="Eleven-point interpolated precision",
    cites=(MANNING,),
    formula="the mean of IPrec at the recall levels 0, 0.1, 0.2, …, 1",
    edges="as for IPrec",
    differs="11pt_avg of trec_eval 10.0 agrees; see IPrec for earlier versions",
    cutoff="none",
    params=(REL,),
)
def eleven_point(hits: Hits, k: None, rel: int) -> Floats:  # noqa: ARG001
    return average_at_recall(hits, ELEVEN_POINTS, rel)


def relevant_needed(hits: Hits, point: float, rel: int) -> Ints:
    """Return point · R, rounded half up."""
    exact = point * hits.n_relevant(rel)
    floor = np.floor(exact)
    needed: Ints = (floor + (exact - floor >= 0.5)).astype(np.int64)
    return needed


def average_at_recall(
    hits: Hits, points: tuple[float, ...], rel: int, needed: Needed = relevant_needed
) -> Floats:
    """Return the mean over recall levels, added up from the highest level down."""
    values = {point: at_recall(hits, point, rel, needed) for point in points}
    trace_numbers(**{f"at_recall_{point:.4g}": value for point, value in values.items()})
    total: Floats = reduce(np.add, [values[point] for point in reversed(points)])
    return total / len(points)


def at_recall(hits: Hits, point: float, rel: int, needed: Needed = relevant_needed) -> Floats:
    """Return the highest precision at or above a recall level."""
    relevant = hits.relevant(rel)
    precision = relevant.ordinal / relevant.rank
    trace_rows(relevant, precision=precision)
    ends = np.cumsum(relevant.count)
    begins = ends - relevant.count + np.maximum(needed(hits, point, rel), 1) - 1
    is_reached = begins < ends
    value = np.zeros(hits.n_queries)
    if is_reached.any():
        # Bounds alternate between begin and end, so every other maximum is one of a query.
        bounds = np.column_stack((begins[is_reached], ends[is_reached])).ravel()
        padded = np.append(precision, 0.0)
        value[is_reached] = np.maximum.reduceat(padded, bounds)[::2]
    return value
