"""Measures of the top k as a set: precision, recall, F1, success, and R-precision."""

from __future__ import annotations

import numpy as np

from karat.arrays import Flags, Floats, Ints
from karat.match.hits import Hits
from karat.measures.array_math import divide
from karat.measures.kernels.references import MANNING
from karat.measures.registry import REL, Param, measure, number_above_zero, one_of
from karat.measures.trace import trace_numbers, trace_rows

DENOMINATOR = Param(
    "denominator",
    "k",
    "the divisor, either k or the number of items in the top k (retrieved)",
    one_of("k", "retrieved"),
)
MULTIPLE = Param(
    "multiple",
    1.0,
    "the cutoff is multiple · R + 0.9, rounded down (R: the number of relevant items)",
    number_above_zero,
)


def precision_upper_bound(hits: Hits, k: int | None, rel: int, denominator: str) -> Floats:
    not_ruled_out = hits.slots(k) - hits.ruled_out(rel).within(k).count
    return divide(not_ruled_out, _precision_denominator(hits, k, denominator))


@measure(
    "P",
    aliases=("precision", "set_P"),
    title="Precision",
    cites=(MANNING,),
    formula="relevant items in the top k / k; without a cutoff, k is the length of the list",
    edges="the denominator is k even if the list is shorter; 0 for an empty list",
    differs="trec_eval, ranx and ir_measures agree; context precision in Ragas and DeepEval is "
    "mostly a kind of average precision, judged by a language model",
    params=(REL, DENOMINATOR),
    counts_repeats=True,
    bound=precision_upper_bound,
)
def precision(hits: Hits, k: int | None, rel: int, denominator: str) -> Floats:
    relevant = hits.relevant(rel).within(k)
    trace_rows(relevant)
    divisor = _precision_denominator(hits, k, denominator)
    trace_numbers(relevant_in_the_top=relevant.count, places=divisor)
    return divide(relevant.count, divisor)


def _precision_denominator(hits: Hits, k: int | None, denominator: str) -> Ints:
    if k and denominator == "k":
        return np.full(hits.n_queries, k)
    return hits.slots(k)


@measure(
    "R",
    aliases=("recall", "set_recall", "set_R"),
    title="Recall",
    cites=(MANNING,),
    formula="relevant items in the top k / all relevant items",
    edges="0 if gold has nothing relevant, unless the convention no_gold sets another value",
    differs="trec_eval, ranx and ir_measures agree; context recall in Ragas is mostly the share of "
    "claims of a reference answer that a language model finds in the contexts",
    params=(REL,),
    recall=True,
)
def recall(hits: Hits, k: int | None, rel: int) -> Floats:
    relevant = hits.relevant(rel).within(k)
    trace_rows(relevant)
    trace_numbers(relevant_in_the_top=relevant.count, all_relevant=hits.n_relevant(rel))
    return divide(relevant.count, hits.n_relevant(rel))


@measure(
    "F1",
    aliases=("F", "f_measure"),
    title="F1, the mean of precision and recall",
    cites=(MANNING,),
    formula="2·P·R / (P + R), the harmonic mean of precision P and recall R; 0 if both are 0",
    edges="the denominator of P is k even if the list is shorter, unless denominator=retrieved",
    differs="ranx agrees; over queries, it is the mean of F1, not F1 of the mean P and the mean R",
    params=(REL, DENOMINATOR),
)
def f1(hits: Hits, k: int | None, rel: int, denominator: str) -> Floats:
    p, r = precision(hits, k, rel, denominator), recall(hits, k, rel)
    trace_numbers(precision=p, recall=r)
    return divide(2 * p * r, p + r)


def success_upper_bound(hits: Hits, k: int | None, rel: int) -> Floats:
    return (hits.ruled_out(rel).first_gap <= hits.slots(k)).astype(np.float64)


@measure(
    "Success",
    aliases=("hit_rate", "hr", "hit", "any"),
    title="Success, also called hit rate",
    formula="1 if a relevant item is in the top k, else 0",
    edges="without a cutoff, the whole list counts",
    differs="trec_eval, ranx (hit_rate) and ir_measures agree",
    params=(REL,),
    bound=success_upper_bound,
    binary=True,
)
def success(hits: Hits, k: int | None, rel: int) -> Floats:
    relevant = hits.relevant(rel).within(k)
    trace_rows(relevant)
    trace_numbers(relevant_in_the_top=relevant.count)
    return (relevant.count > 0).astype(np.float64)


@measure(
    "Full",
    aliases=("all_relevant", "full_recall"),
    title="All relevant items retrieved",
    formula="1 if every relevant item is in the top k, else 0",
    edges="one item of each group of interchangeable items (any_of in gold) is enough; 0 if gold "
    "has nothing relevant",
    differs="without groups, it is 1 if R@k is 1; evidence.full and span.full are the same for "
    "evidence texts and spans",
    params=(REL,),
    binary=True,
)
def full(hits: Hits, k: int | None, rel: int) -> Floats:
    relevant = hits.relevant(rel).within(k)
    trace_rows(relevant)
    needed, retrieved = hits.n_relevant(rel), relevant.count
    if hits.alternatives is not None:
        needed, retrieved = hits.alternatives.counted(needed, retrieved, k, rel)
    trace_numbers(needed=needed, needed_in_the_top=retrieved)
    is_full: Flags = (retrieved == needed) & (needed > 0)
    return is_full.astype(np.float64)


@measure(
    "Hits",
    aliases=("num_hits", "count_hits"),
    title="Relevant items in the top k",
    formula="the number of relevant items in the top k",
    edges="the value over queries is the mean; for the sum, use NumRelRet",
    differs="hits of ranx agrees",
    params=(REL,),
    whole=True,
    no_gold=False,
    counts_repeats=True,
)
def n_hits(hits: Hits, k: int | None, rel: int) -> Floats:
    relevant = hits.relevant(rel).within(k)
    trace_rows(relevant)
    return relevant.count.astype(np.float64)


@measure(
    "R_cap",
    aliases=("capped_recall", "recall_cap", "relative_P", "set_relative_P"),
    several=("relative_P",),
    title="Capped recall, or relative precision",
    formula="relevant items in the top k / min(k, all relevant items); without a cutoff, k is the "
    "length of the list",
    edges="precision if k is at most the number of relevant items, otherwise recall; 0 if gold has "
    "nothing relevant",
    differs="BEIR's R_cap@k and trec_eval's relative_P and set_relative_P agree",
    params=(REL,),
    recall=True,
)
def capped_recall(hits: Hits, k: int | None, rel: int) -> Floats:
    relevant = hits.relevant(rel).within(k)
    trace_rows(relevant)
    best = np.minimum(hits.length if k is None else k, hits.n_relevant(rel))
    trace_numbers(relevant_in_the_top=relevant.count, most_possible=best)
    return divide(relevant.count, best)


@measure(
    "Rprec",
    aliases=("r_precision", "Rprec_mult"),
    several=("Rprec_mult",),
    tail="multiple",
    title="R-precision, also at multiples of R",
    cites=(MANNING,),
    formula="relevant items in the top R / R, where R is the number of relevant items; with "
    "multiple, the cutoff is multiple · R instead of R",
    edges="0 if the cutoff is 0; the denominator is the cutoff even if the list is shorter",
    differs="trec_eval's Rprec and Rprec_mult agree; ranx (r_precision) agrees with multiple=1",
    cutoff="none",
    params=(REL, MULTIPLE),
)
def r_precision(hits: Hits, k: None, rel: int, multiple: float) -> Floats:  # noqa: ARG001
    cutoff = (multiple * hits.n_relevant(rel) + 0.9).astype(np.int64)
    relevant = hits.relevant(rel).within(cutoff)
    trace_rows(relevant)
    trace_numbers(
        all_relevant=hits.n_relevant(rel), cutoff=cutoff, relevant_in_the_top=relevant.count
    )
    return divide(relevant.count, cutoff)
