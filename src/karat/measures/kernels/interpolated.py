"""Interpolated precision: the best precision from some point of recall on."""

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
"""From hits, a point of recall and the level to how many relevant items reach that point."""
ELEVEN_POINTS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


@measure(
    "IPrec",
    aliases=("iprec_at_recall",),
    several=("iprec_at_recall",),
    title="Interpolated precision at recall r",
    cites=(MANNING,),
    formula="the highest precision at any rank by which r · R relevant items are found; "
    "r: the point of recall, R: all relevant items, r · R rounded to a whole number",
    edges="0 if so many are never found; at r = 0 the highest precision of all",
    differs="trec_eval 10.0 rounds r · R half up and is this; versions before it cut r · R + 0.9, "
    "and so do pytrec_eval and ir_measures",
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
    formula="the mean of IPrec at recall 0, 0.1, 0.2, … 1",
    edges="as IPrec",
    differs="trec_eval 10.0's 11pt_avg is this; see IPrec for older versions",
    cutoff="none",
    params=(REL,),
)
def eleven_point(hits: Hits, k: None, rel: int) -> Floats:  # noqa: ARG001
    return average_at_recall(hits, ELEVEN_POINTS, rel)


def relevant_needed(hits: Hits, point: float, rel: int) -> Ints:
    """Round point · R to a whole number, halves up."""
    exact = point * hits.n_relevant(rel)
    whole = np.floor(exact)
    needed: Ints = (whole + (exact - whole >= 0.5)).astype(np.int64)
    return needed


def average_at_recall(
    hits: Hits, points: tuple[float, ...], rel: int, needed: Needed = relevant_needed
) -> Floats:
    """Average over points of recall, from the highest down."""
    values = {point: at_recall(hits, point, rel, needed) for point in points}
    trace_numbers(**{f"at_recall_{point:.4g}": value for point, value in values.items()})
    total: Floats = reduce(np.add, [values[point] for point in reversed(points)])
    return total / len(points)


def at_recall(hits: Hits, point: float, rel: int, needed: Needed = relevant_needed) -> Floats:
    """Return the highest precision from a point of recall on."""
    found = hits.relevant(rel)
    precision = found.ordinal / found.rank
    trace_rows(found, precision=precision)
    ends = np.cumsum(found.count)
    begins = ends - found.count + np.maximum(needed(hits, point, rel), 1) - 1
    reached = begins < ends
    value = np.zeros(hits.n_queries)
    if reached.any():
        # Pairs of begin and end: every other stretch is the one asked for.
        bounds = np.column_stack((begins[reached], ends[reached])).ravel()
        padded = np.append(precision, 0.0)
        value[reached] = np.maximum.reduceat(padded, bounds)[::2]
    return value
