"""How much of a list was judged at all: what the other measures rest on."""

from __future__ import annotations

import numpy as np

from karat.arrays import Floats
from karat.match.hits import Hits
from karat.measures.array_math import divide
from karat.measures.registry import measure
from karat.measures.trace import trace_numbers, trace_others, trace_rows


def judged_share(hits: Hits, k: int | None) -> Floats:
    """Return Judged@k, without a note to whoever listens to another measure."""
    return divide(hits.judged.within(k).count, hits.items(k))


@measure(
    "Judged",
    title="Judged share",
    formula="judged items in the top k / items in the top k",
    edges="a grade below 0 is not a judgment; an empty list gives 0",
    differs="ir_measures divides by the items of the list too where it is shorter than k",
    no_gold=False,
)
def judged(hits: Hits, k: int | None) -> Floats:
    found = hits.judged.within(k)
    trace_rows(found)
    trace_numbers(judged_in_the_top=found.count, items=hits.items(k))
    return judged_share(hits, k)


@measure(
    "Unjudged",
    aliases=("hole", "unj"),
    several=("unj",),
    title="Unjudged share",
    formula="unjudged items in the top k / k; without k, / the length of the list",
    edges="places that a short list leaves empty are not unjudged",
    differs="trec_eval 10.0's unj is this; BEIR's hole counts an item only if no query judges it",
    higher_is_better=False,
    no_gold=False,
)
def unjudged(hits: Hits, k: int | None) -> Floats:
    known = hits.judged.within(k)
    trace_others(known, k)
    found = hits.items(k) - known.count
    slots = hits.slots(k) if k is None else np.full(hits.n_queries, k)
    trace_numbers(unjudged_in_the_top=found, places=slots)
    return divide(found, slots)
