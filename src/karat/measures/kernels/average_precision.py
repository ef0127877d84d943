"""Average precision and related measures."""

from __future__ import annotations

import math

import numpy as np

from karat.arrays import Floats
from karat.match.hits import Hits
from karat.measures.array_math import divide, logarithm
from karat.measures.kernels.references import BUCKLEY, MANNING, ROBERTSON, YILMAZ
from karat.measures.registry import REL, Param, measure, one_of
from karat.measures.trace import trace_numbers, trace_rows

DENOMINATOR = Param(
    "denominator",
    "relevant",
    "what to divide by: all relevant items (relevant), the relevant items in the top k (hits), or "
    "the smaller of k and all relevant items (min)",
    one_of("relevant", "hits", "min"),
)
INFERRED_EPSILON = 0.00001  # the smoothing of Yilmaz and Aslam, with the value of trec_eval


@measure(
    "AP",
    aliases=("map", "map_cut", "average_precision", "mean_average_precision"),
    several=("map_cut",),
    title="Average precision",
    cites=(MANNING,),
    formula="(Σ precision at the rank of each relevant item in the top k) / all relevant items",
    edges="a relevant item that is not retrieved adds 0; 0 if gold has nothing relevant",
    differs="trec_eval, ranx and ir_measures agree; torchmetrics divides by the relevant items "
    "retrieved (denominator=hits), Kaggle's MAP@k by min(k, R) (denominator=min)",
    params=(REL, DENOMINATOR),
)
def average_precision(hits: Hits, k: int | None, rel: int, denominator: str) -> Floats:
    relevant = hits.relevant(rel).within(k)
    precision = relevant.ordinal / relevant.rank
    trace_rows(relevant, precision=precision)
    total = relevant.total(precision)
    divisor = hits.n_relevant(rel)
    if denominator == "hits":
        divisor = relevant.count
    elif k and denominator == "min":
        divisor = np.minimum(k, divisor)
    trace_numbers(sum_of_precisions=total, divided_by=divisor)
    return divide(total, divisor)


@measure(
    "GMAP",
    aliases=("gm_map",),
    title="Geometric mean of average precision",
    cites=(ROBERTSON,),
    formula="exp of the mean over queries of log max(AP, 0.00001)",
    edges="the value of a single query is its AP; an AP below 0.00001 counts as 0.00001",
    differs="trec_eval's gm_map agrees, but prints no values of single queries",
    cutoff="none",
    params=(REL,),
    combine="geometric",
)
def geometric_ap(hits: Hits, k: None, rel: int) -> Floats:
    return average_precision(hits, k, rel, "relevant")


@measure(
    "YAAP",
    title="Yet another average precision",
    formula="log((1 + s) / (1 + R − s)), where s is Σ precision at the rank of each relevant item "
    "and R is the number of relevant items",
    edges="0 if AP is 0.5, negative if AP is lower",
    differs="trec_eval's yaap agrees (Robertson, ECIR 2012)",
    cutoff="none",
    params=(REL,),
    unbounded=True,
    no_gold=False,
)
def smoothed_ap(hits: Hits, k: None, rel: int) -> Floats:  # noqa: ARG001
    relevant = hits.relevant(rel)
    precision = relevant.ordinal / relevant.rank
    trace_rows(relevant, precision=precision)
    total = relevant.total(precision)
    trace_numbers(sum_of_precisions=total, all_relevant=hits.n_relevant(rel))
    return logarithm((1.0 + total) / (1.0 + hits.n_relevant(rel) - total), math.log)


@measure(
    "Bpref",
    title="Binary preference",
    cites=(BUCKLEY,),
    formula="(Σ over relevant items retrieved of 1 − min(n, R) / min(N, R)) / R, where n is the "
    "number of judged irrelevant items above it, N of all judged irrelevant items, R of all "
    "relevant items",
    edges="unjudged items and grades below 0 are ignored; if N = 0, every relevant item adds 1",
    differs="trec_eval since 8.0 and ir_measures agree; the original paper divides by R instead of "
    "min(N, R)",
    cutoff="none",
    params=(REL,),
)
def bpref(hits: Hits, k: None, rel: int) -> Floats:  # noqa: ARG001
    judged = hits.judged
    is_relevant = judged.grade >= rel
    relevant = judged.where(is_relevant)
    above = judged.ordinal[is_relevant] - relevant.ordinal
    n_relevant = hits.n_relevant(rel)
    n_irrelevant = hits.gold.where((hits.gold.grade >= 0) & (hits.gold.grade < rel)).count
    most = n_relevant[relevant.query]
    lost = divide(np.minimum(above, most), np.minimum(n_irrelevant[relevant.query], most))
    trace_rows(relevant, irrelevant_above=above, contribution=1.0 - lost)
    trace_numbers(judged_irrelevant=n_irrelevant, all_relevant=n_relevant)
    return divide(relevant.total(1.0 - lost), n_relevant)


@measure(
    "GMBpref",
    title="Geometric mean of binary preference",
    formula="exp of the mean over queries of log max(Bpref, 0.00001)",
    edges="the value of a single query is its Bpref; a Bpref below 0.00001 counts as 0.00001",
    differs="trec_eval's gm_bpref agrees, but prints no values of single queries",
    cutoff="none",
    params=(REL,),
    combine="geometric",
)
def geometric_bpref(hits: Hits, k: None, rel: int) -> Floats:
    return bpref(hits, k, rel)


@measure(
    "infAP",
    title="Inferred average precision",
    cites=(YILMAZ,),
    formula="(Σ over relevant items retrieved of 1/r + (r−1)/r · (items of the pool above)/(r−1) · "
    "(relevant above + ε) / (judged above + 2ε)) / all relevant items, where r is the rank and "
    "ε = 0.00001",
    edges="an item with a grade below 0 is in the pool but not judged; an item that is not in gold "
    "is not in the pool; a relevant item at rank 1 adds 1",
    differs="trec_eval's infAP and ir_measures agree; close to AP if all items are judged",
    cutoff="none",
    params=(REL,),
)
def inferred_ap(hits: Hits, k: None, rel: int) -> Floats:  # noqa: ARG001
    pooled = hits.found
    is_relevant = pooled.grade >= rel
    relevant = pooled.where(is_relevant)
    above = relevant.rank - 1.0
    in_pool_above = pooled.ordinal[is_relevant] - 1
    relevant_above = relevant.ordinal - 1
    judged_above = hits.judged.ordinal[hits.judged.grade >= rel] - 1
    with np.errstate(invalid="ignore"):  # 0 / 0 at rank 1, replaced below
        inferred = 1.0 / (above + 1.0) + (above / (above + 1.0)) * (in_pool_above / above) * (
            (relevant_above + INFERRED_EPSILON) / (judged_above + 2 * INFERRED_EPSILON)
        )
    inferred = np.where(above == 0, 1.0, inferred)
    trace_rows(
        relevant,
        in_pool_above=in_pool_above,
        judged_above=judged_above,
        relevant_above=relevant_above,
        contribution=inferred,
    )
    trace_numbers(all_relevant=hits.n_relevant(rel))
    return divide(relevant.total(inferred), hits.n_relevant(rel))
