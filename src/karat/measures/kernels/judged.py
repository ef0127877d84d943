"""The shares of judged and unjudged items in a list."""

from __future__ import annotations

import numpy as np

from karat.arrays import Floats
from karat.match.hits import Hits
from karat.measures.array_math import divide
from karat.measures.registry import measure
from karat.measures.trace import trace_numbers, trace_others, trace_rows


def judged_share(hits: Hits, k: int | None) -> Floats:
    """Return Judged@k without recording it in the trace of another measure."""
    return divide(hits.judged.within(k).count, hits.items(k))


@measure(
    "Judged",
    title="Judged share",
    formula="judged items in the top k / items in the top k",
    edges="an item with a grade below 0 is not judged; 0 for an empty list",
    differs="ir_measures agrees, and also divides by the length of a list that is shorter than k",
    no_gold=False,
)
def judged(hits: Hits, k: int | None) -> Floats:
    judged_hits = hits.judged.within(k)
    trace_rows(judged_hits)
    trace_numbers(judged_in_the_top=judged_hits.count, items=hits.items(k))
    return judged_share(hits, k)


@measure(
    "Unjudged",
    aliases=("hole", "unj"),
    several=("unj",),
    title="Unjudged share",
    formula="unjudged items in the top k / k; without a cutoff, k is the length of the list",
    edges="if a list is shorter than k, the missing items do not count as unjudged",
    differs="unj of trec_eval 10.0 agrees; hole of BEIR counts only items that are judged for no "
    "query",
    higher_is_better=False,
    no_gold=False,
)
def unjudged(hits: Hits, k: int | None) -> Floats:
    judged_hits = hits.judged.within(k)
    trace_others(judged_hits, k)
    n_unjudged = hits.items(k) - judged_hits.count
    slots = hits.slots(k) if k is None else np.full(hits.n_queries, k)
    trace_numbers(unjudged_in_the_top=n_unjudged, places=slots)
    return divide(n_unjudged, slots)
