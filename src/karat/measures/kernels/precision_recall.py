"""Measures of the top of the list as a set: how much of it is relevant, how much was found."""

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
    "k, or retrieved: the places the list really has up to k",
    one_of("k", "retrieved"),
)
MULTIPLE = Param(
    "multiple",
    1.0,
    "how many times R to look at: the rank is multiple · R + 0.9, cut to a whole number",
    number_above_zero,
)


def precision_at_most(hits: Hits, k: int | None, rel: int, denominator: str) -> Floats:
    open_places = hits.slots(k) - hits.ruled_out(rel).within(k).count
    return divide(open_places, _places(hits, k, denominator))


@measure(
    "P",
    aliases=("precision", "set_P"),
    title="Precision",
    cites=(MANNING,),
    formula="relevant items in the top k / k; without k, / the length of the list",
    edges="a list shorter than k is still divided by k; an empty list gives 0",
    differs="ranx, ir_measures and trec_eval agree; what Ragas and DeepEval call context precision "
    "is mostly a kind of average precision, judged by a model",
    params=(REL, DENOMINATOR),
    counts_repeats=True,
    bound=precision_at_most,
)
def precision(hits: Hits, k: int | None, rel: int, denominator: str) -> Floats:
    found = hits.relevant(rel).within(k)
    trace_rows(found)
    places = _places(hits, k, denominator)
    trace_numbers(relevant_in_the_top=found.count, places=places)
    return divide(found.count, places)


def _places(hits: Hits, k: int | None, denominator: str) -> Ints:
    return np.full(hits.n_queries, k) if k and denominator == "k" else hits.slots(k)


@measure(
    "R",
    aliases=("recall", "set_recall", "set_R"),
    title="Recall",
    cites=(MANNING,),
    formula="relevant items in the top k / all relevant items",
    edges="nothing relevant in gold gives 0, or what the convention no_gold says",
    differs="trec_eval, ranx and ir_measures agree; Ragas' 'context recall' mostly means which "
    "claims of a reference answer a model finds in the contexts",
    params=(REL,),
    recall=True,
)
def recall(hits: Hits, k: int | None, rel: int) -> Floats:
    found = hits.relevant(rel).within(k)
    trace_rows(found)
    trace_numbers(relevant_in_the_top=found.count, all_relevant=hits.n_relevant(rel))
    return divide(found.count, hits.n_relevant(rel))


@measure(
    "F1",
    aliases=("F", "f_measure"),
    title="F1, the balance of precision and recall",
    cites=(MANNING,),
    formula="2·P·R / (P + R), the harmonic mean of precision and recall; 0 if both are 0",
    edges="a list shorter than k is still divided by k in P, unless denominator=retrieved",
    differs="ranx agrees; it is the mean of each query's F1, not F1 of the mean P and R",
    params=(REL, DENOMINATOR),
)
def f1(hits: Hits, k: int | None, rel: int, denominator: str) -> Floats:
    p, r = precision(hits, k, rel, denominator), recall(hits, k, rel)
    trace_numbers(precision=p, recall=r)
    return divide(2 * p * r, p + r)


def success_at_most(hits: Hits, k: int | None, rel: int) -> Floats:
    return (hits.ruled_out(rel).first_gap <= hits.slots(k)).astype(np.float64)


@measure(
    "Success",
    aliases=("hit_rate", "hr", "hit", "any"),
    title="Success, also called hit rate",
    formula="1 if a relevant item is in the top k, else 0",
    edges="without k the whole list counts",
    differs="trec_eval, ranx (hit_rate) and ir_measures agree",
    params=(REL,),
    bound=success_at_most,
    binary=True,
)
def success(hits: Hits, k: int | None, rel: int) -> Floats:
    found = hits.relevant(rel).within(k)
    trace_rows(found)
    trace_numbers(relevant_in_the_top=found.count)
    return (found.count > 0).astype(np.float64)


@measure(
    "Full",
    aliases=("all_relevant", "full_recall"),
    title="Whether every relevant item was retrieved",
    formula="1 if every relevant item is in the top k, else 0",
    edges="of a group of interchangeable items (any_of in gold) one is enough; nothing relevant "
    "in gold gives 0",
    differs="without groups it is 1 where R@k is 1; evidence.full and span.full are the same for "
    "evidence texts and spans",
    params=(REL,),
    binary=True,
)
def full(hits: Hits, k: int | None, rel: int) -> Floats:
    found = hits.relevant(rel).within(k)
    trace_rows(found)
    needed, reached = hits.n_relevant(rel), found.count
    if hits.alternatives is not None:
        needed, reached = hits.alternatives.counted(needed, reached, k, rel)
    trace_numbers(needed=needed, needed_in_the_top=reached)
    is_full: Flags = (reached == needed) & (needed > 0)
    return is_full.astype(np.float64)


@measure(
    "Hits",
    aliases=("num_hits", "count_hits"),
    title="Relevant items in the top k",
    formula="the number of relevant items in the top k",
    edges="a mean over queries, where NumRelRet is a sum",
    differs="ranx' hits agrees",
    params=(REL,),
    whole=True,
    no_gold=False,
    counts_repeats=True,
)
def n_hits(hits: Hits, k: int | None, rel: int) -> Floats:
    found = hits.relevant(rel).within(k)
    trace_rows(found)
    return found.count.astype(np.float64)


@measure(
    "R_cap",
    aliases=("capped_recall", "recall_cap", "relative_P", "set_relative_P"),
    several=("relative_P",),
    title="Capped recall, or relative precision",
    formula="relevant items in the top k / min(k, all relevant items); without k, the length of "
    "the list stands for it",
    edges="precision up to R, recall after it; nothing relevant in gold gives 0",
    differs="BEIR's R_cap@k and trec_eval's relative_P and set_relative_P are this",
    params=(REL,),
    recall=True,
)
def capped_recall(hits: Hits, k: int | None, rel: int) -> Floats:
    found = hits.relevant(rel).within(k)
    trace_rows(found)
    best = np.minimum(hits.length if k is None else k, hits.n_relevant(rel))
    trace_numbers(relevant_in_the_top=found.count, most_that_could_be=best)
    return divide(found.count, best)


@measure(
    "Rprec",
    aliases=("r_precision", "Rprec_mult"),
    several=("Rprec_mult",),
    tail="multiple",
    title="R-precision, also at multiples of R",
    cites=(MANNING,),
    formula="relevant items in the top R / R, R being the number of relevant items, or the rank "
    "that multiple · R gives",
    edges="a rank of 0 gives 0; a list shorter than the rank is still divided by it",
    differs="trec_eval's Rprec and Rprec_mult are this; ranx (r_precision) agrees at multiple=1",
    cutoff="none",
    params=(REL, MULTIPLE),
)
def r_precision(hits: Hits, k: None, rel: int, multiple: float) -> Floats:  # noqa: ARG001
    rank = (multiple * hits.n_relevant(rel) + 0.9).astype(np.int64)
    found = hits.relevant(rel).within(rank)
    trace_rows(found)
    trace_numbers(
        all_relevant=hits.n_relevant(rel), rank_looked_to=rank, relevant_in_the_top=found.count
    )
    return divide(found.count, rank)
