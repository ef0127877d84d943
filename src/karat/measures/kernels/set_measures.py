"""Measures of all that was retrieved, as a set without any order."""

from __future__ import annotations

from karat.arrays import Floats
from karat.match.hits import Hits
from karat.measures.array_math import divide
from karat.measures.kernels.precision_recall import precision, recall
from karat.measures.kernels.references import MANNING
from karat.measures.registry import (
    REL,
    Param,
    measure,
    number,
    number_above_zero,
    whole_number_from,
)
from karat.measures.trace import trace_numbers, trace_rows

WEIGHT = Param(
    "weight",
    1.0,
    "how much recall weighs against precision, trec_eval's x and the square of the usual β",
    number_above_zero,
)


@measure(
    "SetF",
    tail="weight",
    title="F of the whole list",
    cites=(MANNING,),
    formula="(weight + 1)·P·R / (weight·P + R) of all retrieved items",
    edges="0 if nothing relevant is retrieved",
    differs="trec_eval's set_F takes weight, not β, and so does ir_measures' SetF(beta=…)",
    cutoff="none",
    params=(REL, WEIGHT),
)
def set_f(hits: Hits, k: None, rel: int, weight: float) -> Floats:
    p, r = precision(hits, k, rel, "k"), recall(hits, k, rel)
    trace_numbers(precision=p, recall=r)
    return divide((weight + 1.0) * p * r, weight * p + r)


@measure(
    "SetAP",
    aliases=("set_map",),
    title="Precision times recall of the whole list",
    formula="(relevant items retrieved)² / (items retrieved · all relevant items)",
    edges="0 if nothing is retrieved or relevant",
    differs="trec_eval's set_map and ir_measures' SetAP are this; no order goes into it",
    cutoff="none",
    params=(REL,),
)
def set_ap(hits: Hits, k: None, rel: int) -> Floats:
    found = hits.relevant(rel)
    trace_rows(found)
    trace_numbers(
        relevant_retrieved=found.count, retrieved=hits.slots(k), all_relevant=hits.n_relevant(rel)
    )
    return divide(found.count * found.count, hits.slots(k) * hits.n_relevant(rel))


@measure(
    "Utility",
    title="Utility of the whole list",
    formula="a·relevant retrieved + b·other retrieved + c·relevant not retrieved + "
    "d·(documents − all of these)",
    edges="a sum of worths, so it may be below 0; d weighs what is left of documents, so say how "
    "many there are where d is not 0",
    differs="trec_eval's utility.a,b,c,d with -N documents is this",
    cutoff="none",
    params=(
        REL,
        Param("a", 1.0, "the worth of a relevant item retrieved", number),
        Param("b", -1.0, "the worth of any other item retrieved", number),
        Param("c", 0.0, "the worth of a relevant item that is missed", number),
        Param("d", 0.0, "the worth of any other document left alone", number),
        Param("documents", 0, "how many documents there are in all", whole_number_from(0)),
    ),
    unbounded=True,
    no_gold=False,
)
def utility(
    hits: Hits, k: None, rel: int, a: float, b: float, c: float, d: float, documents: int
) -> Floats:
    found = hits.relevant(rel)
    trace_rows(found)
    other = hits.items(k) - found.count
    missed = hits.n_relevant(rel) - found.count
    rest = documents + found.count - hits.items(k) - hits.n_relevant(rel)
    trace_numbers(
        relevant_retrieved=found.count, other_retrieved=other, relevant_missed=missed, rest=rest
    )
    worth: Floats = a * found.count + b * other + c * missed + d * rest
    return worth
