"""Measures of the whole list as a set, without its order."""

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
    "the weight of recall relative to precision, which is β² in the usual F measure",
    number_above_zero,
)


@measure(
    "SetF",
    tail="weight",
    title="F measure of the whole list",
    cites=(MANNING,),
    formula="(weight + 1)·P·R / (weight·P + R), where P and R are precision and recall of the "
    "whole list",
    edges="0 if nothing relevant is retrieved",
    differs="trec_eval's set_F and SetF(beta=…) of ir_measures agree; their parameter is also β², "
    "not β",
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
    title="Precision × recall of the whole list",
    formula="(relevant items retrieved)² / (items retrieved · all relevant items)",
    edges="0 if nothing is retrieved, or gold has nothing relevant",
    differs="trec_eval's set_map and SetAP of ir_measures agree",
    cutoff="none",
    params=(REL,),
)
def set_ap(hits: Hits, k: None, rel: int) -> Floats:
    relevant = hits.relevant(rel)
    trace_rows(relevant)
    trace_numbers(
        relevant_retrieved=relevant.count,
        retrieved=hits.slots(k),
        all_relevant=hits.n_relevant(rel),
    )
    return divide(relevant.count * relevant.count, hits.slots(k) * hits.n_relevant(rel))


@measure(
    "Utility",
    title="Utility of the whole list",
    formula="a·relevant retrieved + b·other retrieved + c·relevant not retrieved + "
    "d·(documents − all of these)",
    edges="it may be negative; if d is not 0, set documents too",
    differs="trec_eval's utility.a,b,c,d with -N documents agrees",
    cutoff="none",
    params=(
        REL,
        Param("a", 1.0, "the value of a relevant item that is retrieved", number),
        Param("b", -1.0, "the value of another item that is retrieved", number),
        Param("c", 0.0, "the value of a relevant item that is not retrieved", number),
        Param("d", 0.0, "the value of another document that is not retrieved", number),
        Param("documents", 0, "the number of documents in the collection", whole_number_from(0)),
    ),
    unbounded=True,
    no_gold=False,
)
def utility(
    hits: Hits, k: None, rel: int, a: float, b: float, c: float, d: float, documents: int
) -> Floats:
    relevant = hits.relevant(rel)
    trace_rows(relevant)
    other = hits.items(k) - relevant.count
    missed = hits.n_relevant(rel) - relevant.count
    rest = documents + relevant.count - hits.items(k) - hits.n_relevant(rel)
    trace_numbers(
        relevant_retrieved=relevant.count, other_retrieved=other, relevant_missed=missed, rest=rest
    )
    total: Floats = a * relevant.count + b * other + c * missed + d * rest
    return total
