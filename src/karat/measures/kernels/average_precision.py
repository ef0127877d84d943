"""Average precision and its kin."""

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
    "relevant: all relevant items; hits: those in the top k; min: the lesser of k and all",
    one_of("relevant", "hits", "min"),
)
INFERRED_EPSILON = 0.00001  # Yilmaz and Aslam's smoothing, with trec_eval's value


@measure(
    "AP",
    aliases=("map", "map_cut", "average_precision", "mean_average_precision"),
    several=("map_cut",),
    title="Average precision",
    cites=(MANNING,),
    formula="Σ precision at the rank of each relevant item in the top k / all relevant items",
    edges="a relevant item that is not retrieved adds 0; nothing relevant in gold gives 0",
    differs="trec_eval, ranx and ir_measures divide by all relevant items too; torchmetrics by "
    "those retrieved (denominator=hits), Kaggle's MAP@k by min(k, R) (denominator=min)",
    params=(REL, DENOMINATOR),
)
def average_precision(hits: Hits, k: int | None, rel: int, denominator: str) -> Floats:
    found = hits.relevant(rel).within(k)
    precision = found.ordinal / found.rank
    trace_rows(found, precision=precision)
    total = found.total(precision)
    divisor = hits.n_relevant(rel)
    if denominator == "hits":
        divisor = found.count
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
    edges="a query's own value is its AP; an AP under 0.00001 counts as that",
    differs="trec_eval's gm_map is this, and prints no value for a single query",
    cutoff="none",
    params=(REL,),
    combine="geometric",
)
def geometric_ap(hits: Hits, k: None, rel: int) -> Floats:
    return average_precision(hits, k, rel, "relevant")


@measure(
    "YAAP",
    title="Yet another average precision",
    formula="log((1 + s) / (1 + R − s)); s: Σ precision at the rank of each relevant item, "
    "R: all relevant items",
    edges="0 where half of the precision there could be is reached, below 0 under it",
    differs="trec_eval's yaap is this (Robertson, ECIR 2012)",
    cutoff="none",
    params=(REL,),
    unbounded=True,
    no_gold=False,
)
def smoothed_ap(hits: Hits, k: None, rel: int) -> Floats:  # noqa: ARG001
    found = hits.relevant(rel)
    precision = found.ordinal / found.rank
    trace_rows(found, precision=precision)
    total = found.total(precision)
    trace_numbers(sum_of_precisions=total, all_relevant=hits.n_relevant(rel))
    return logarithm((1.0 + total) / (1.0 + hits.n_relevant(rel) - total), math.log)


@measure(
    "Bpref",
    title="Binary preference",
    cites=(BUCKLEY,),
    formula="Σ over relevant hits of 1 − min(n, R) / min(N, R), / R; n: judged irrelevant items "
    "above it, N: all judged irrelevant items, R: all relevant items",
    edges="unjudged items and grades below 0 are passed over; N = 0 makes every hit count 1",
    differs="trec_eval since 8.0 and ir_measures agree; the first paper divides by R alone",
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
    trace_rows(found, irrelevant_above=above, contribution=1.0 - lost)
    trace_numbers(judged_irrelevant=n_irrelevant, all_relevant=n_relevant)
    return divide(found.total(1.0 - lost), n_relevant)


@measure(
    "GMBpref",
    title="Geometric mean of binary preference",
    formula="exp of the mean over queries of log max(Bpref, 0.00001)",
    edges="a query's own value is its Bpref; one under 0.00001 counts as that",
    differs="trec_eval's gm_bpref is this, and prints no value for a single query",
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
    formula="Σ over relevant hits of 1/r + (r−1)/r · in pool above/(r−1) · (relevant above + ε) / "
    "(judged above + 2ε), / all relevant items; r: the rank, ε = 0.00001",
    edges="a grade below 0 means in the pool but not judged; an item gold does not name was not "
    "in the pool; at rank 1 the term is 1",
    differs="trec_eval's infAP and ir_measures agree; with every pooled item judged it is near AP",
    cutoff="none",
    params=(REL,),
)
def inferred_ap(hits: Hits, k: None, rel: int) -> Floats:  # noqa: ARG001
    pooled = hits.found
    is_relevant = pooled.grade >= rel
    found = pooled.where(is_relevant)
    above = found.rank - 1.0
    in_pool = pooled.ordinal[is_relevant] - 1
    relevant = found.ordinal - 1
    judged = hits.judged.ordinal[hits.judged.grade >= rel] - 1
    with np.errstate(invalid="ignore"):  # nothing stands above rank 1
        inferred = 1.0 / (above + 1.0) + (above / (above + 1.0)) * (in_pool / above) * (
            (relevant + INFERRED_EPSILON) / (judged + 2 * INFERRED_EPSILON)
        )
    inferred = np.where(above == 0, 1.0, inferred)
    trace_rows(
        found,
        in_pool_above=in_pool,
        judged_above=judged,
        relevant_above=relevant,
        contribution=inferred,
    )
    trace_numbers(all_relevant=hits.n_relevant(rel))
    return divide(found.total(inferred), hits.n_relevant(rel))
