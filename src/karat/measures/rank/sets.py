"""Measures of the top of the list as a set: how much of it is relevant, how much was found."""

from __future__ import annotations

import numpy as np

from karat.match.hits import Floats, Hits
from karat.measures.arrays import divide
from karat.measures.declare import REL, Param, measure, one_of

DENOMINATOR = Param(
    "denominator",
    "k",
    "k, or retrieved: the places the list really has up to k",
    one_of("k", "retrieved"),
)


@measure(
    "P",
    aliases=("precision", "set_P"),
    title="Precision",
    formula="relevant items in the top k / k; without k, / the length of the list",
    params=(REL, DENOMINATOR),
    counts_repeats=True,
)
def precision(hits: Hits, k: int | None, rel: int, denominator: str) -> Floats:
    found = hits.relevant(rel).within(k).count
    return found / k if k and denominator == "k" else divide(found, hits.slots(k))


@measure(
    "R",
    aliases=("recall", "set_recall"),
    title="Recall",
    formula="relevant items in the top k / all relevant items",
    params=(REL,),
)
def recall(hits: Hits, k: int | None, rel: int) -> Floats:
    return divide(hits.relevant(rel).within(k).count, hits.n_relevant(rel))


@measure(
    "F1",
    aliases=("F", "f_measure", "set_F"),
    title="F1, the balance of precision and recall",
    formula="2·P·R / (P + R), the harmonic mean of precision and recall; 0 if both are 0",
    params=(REL,),
)
def f1(hits: Hits, k: int | None, rel: int) -> Floats:
    p, r = precision(hits, k, rel, "k"), recall(hits, k, rel)
    return divide(2 * p * r, p + r)


@measure(
    "Success",
    aliases=("hit_rate", "hr", "hit"),
    title="Success, also called hit rate",
    formula="1 if a relevant item is in the top k, else 0",
    params=(REL,),
)
def success(hits: Hits, k: int | None, rel: int) -> Floats:
    return (hits.relevant(rel).within(k).count > 0).astype(np.float64)


@measure(
    "Hits",
    aliases=("num_hits", "count_hits"),
    title="Relevant items in the top k",
    formula="the number of relevant items in the top k",
    params=(REL,),
    whole=True,
    no_gold=False,
    counts_repeats=True,
)
def n_hits(hits: Hits, k: int | None, rel: int) -> Floats:
    return hits.relevant(rel).within(k).count.astype(np.float64)


@measure(
    "R_cap",
    aliases=("capped_recall", "recall_cap"),
    title="Capped recall",
    formula="relevant items in the top k / min(k, all relevant items)",
    cutoff="required",
    params=(REL,),
)
def capped_recall(hits: Hits, k: int, rel: int) -> Floats:
    return divide(hits.relevant(rel).within(k).count, np.minimum(k, hits.n_relevant(rel)))


@measure(
    "Rprec",
    aliases=("r_precision",),
    title="R-precision",
    formula="relevant items in the top R / R, R being the number of relevant items",
    cutoff="none",
    params=(REL,),
)
def r_precision(hits: Hits, k: None, rel: int) -> Floats:  # noqa: ARG001
    n_relevant = hits.n_relevant(rel)
    return divide(hits.relevant(rel).within(n_relevant).count, n_relevant)
