"""How much of a list was judged at all: what the other measures rest on."""

from __future__ import annotations

from karat.match.hits import Floats, Hits
from karat.measures.arrays import divide
from karat.measures.declare import measure


@measure(
    "Judged",
    title="Judged share",
    formula="judged items in the top k / items in the top k",
    no_gold=False,
)
def judged(hits: Hits, k: int | None) -> Floats:
    return divide(hits.judged.within(k).count, hits.items(k))


@measure(
    "Unjudged",
    aliases=("hole",),
    title="Unjudged share",
    formula="unjudged items in the top k / k; without k, / the length of the list",
    higher_is_better=False,
    no_gold=False,
)
def unjudged(hits: Hits, k: int | None) -> Floats:
    found = hits.items(k) - hits.judged.within(k).count
    return found / k if k else divide(found, hits.slots(k))
