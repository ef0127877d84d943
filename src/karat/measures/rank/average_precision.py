"""Average precision, and bpref, which asks the same of judged items only."""

from __future__ import annotations

import numpy as np

from karat.match.hits import Floats, Hits
from karat.measures.arrays import divide
from karat.measures.declare import REL, Param, measure, one_of

DENOMINATOR = Param(
    "denominator",
    "relevant",
    "relevant: all relevant items; hits: those in the top k; min: the lesser of k and all",
    one_of("relevant", "hits", "min"),
)


@measure(
    "AP",
    aliases=("map", "map_cut", "average_precision", "mean_average_precision"),
    title="Average precision",
    formula="Σ precision at the rank of each relevant item in the top k / all relevant items",
    params=(REL, DENOMINATOR),
)
def average_precision(hits: Hits, k: int | None, rel: int, denominator: str) -> Floats:
    found = hits.relevant(rel).within(k)
    total = found.total(found.ordinal / found.rank)
    relevant = hits.n_relevant(rel)
    if denominator == "hits":
        return divide(total, found.count)
    return divide(total, np.minimum(k, relevant) if k and denominator == "min" else relevant)


@measure(
    "Bpref",
    title="Binary preference",
    formula="Σ over relevant hits of 1 − min(n, R) / min(N, R), / R; n: judged irrelevant items "
    "above it, N: all judged irrelevant items, R: all relevant items",
    cutoff="none",
    params=(REL,),
)
def bpref(hits: Hits, k: None, rel: int) -> Floats:  # noqa: ARG001
    judged = hits.judged
    relevant = judged.grade >= rel
    found = judged.where(relevant)
    above = judged.ordinal[relevant] - found.ordinal
    n_relevant = hits.n_relevant(rel)
    n_irrelevant = hits.gold.where((hits.gold.grade >= 0) & (hits.gold.grade < rel)).count
    bound = n_relevant[found.query]
    lost = divide(np.minimum(above, bound), np.minimum(n_irrelevant[found.query], bound))
    return divide(found.total(1.0 - lost), n_relevant)
