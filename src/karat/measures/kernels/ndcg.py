"""Discounted cumulative gain: DCG, IDCG and nDCG."""

from __future__ import annotations

from typing import Any

import numpy as np

from karat.arrays import Floats
from karat.match.hits import Hits, RankedRows
from karat.measures.array_math import discount, divide, gain_of_grades
from karat.measures.kernels.references import JARVELIN
from karat.measures.registry import GAIN, measure
from karat.measures.trace import trace_numbers, trace_rows


@measure(
    "DCG",
    title="Discounted cumulative gain",
    cites=(JARVELIN,),
    formula="Σ gain / log2(rank + 1) over the top k, where the gain is the grade, or 2^grade − 1 "
    "with gain=exp2",
    edges="grades below 0 have a gain of 0",
    differs="dcg of ranx and of trec_eval agree; dcg_burges of ranx is DCG(gain=exp2)",
    params=(GAIN,),
    unbounded=True,
    no_gold=False,
)
def dcg(hits: Hits, k: int | None, gain: Any) -> Floats:
    return _discounted(hits.found.within(k), gain_of_grades(hits.found.within(k).grade, gain))


@measure(
    "IDCG",
    aliases=("ideal_dcg",),
    title="Ideal discounted cumulative gain",
    cites=(JARVELIN,),
    formula="DCG@k of all judged items in the best order",
    edges="does not depend on what was retrieved",
    differs="trec_eval's ideal_dcg agrees",
    params=(GAIN,),
    unbounded=True,
    no_gold=False,
)
def ideal_dcg(hits: Hits, k: int | None, gain: Any) -> Floats:
    best = sort_by_gain(hits.gold, gain).within(k)
    return _discounted(best, np.maximum(gain_of_grades(best.grade, gain), 0.0), ideal=True)


@measure(
    "nDCG",
    aliases=("ndcg_cut",),
    several=("ndcg_cut",),
    title="Normalised discounted cumulative gain",
    cites=(JARVELIN,),
    formula="DCG@k / DCG@k of all judged items in the best order",
    edges="0 if gold has no gain; the best order includes items that were not retrieved",
    differs="trec_eval, ranx (ndcg), ir_measures and BEIR agree with gain=linear; LightGBM, "
    "ndcg_burges of ranx and most papers on learning to rank use gain=exp2; scikit-learn averages "
    "over all orders of tied scores; trec_eval sorts gains of {grade: gain} wrongly if they differ "
    "by less than 1",
    params=(GAIN,),
)
def ndcg(hits: Hits, k: int | None, gain: Any) -> Floats:
    actual, ideal = dcg(hits, k, gain), ideal_dcg(hits, k, gain)
    trace_numbers(DCG=actual, ideal_DCG=ideal)
    return divide(actual, ideal)


def sort_by_gain(gold: RankedRows, gain: Any) -> RankedRows:
    """Sort gold by gain.

    Gold is already sorted by grade, but in {grade: gain} a higher grade can have a lower gain.
    """
    if not isinstance(gain, dict):
        return gold
    order = np.lexsort((-gain_of_grades(gold.grade, gain), gold.query))
    return RankedRows(gold.n_queries, gold.query, gold.rank, gold.grade[order])


def _discounted(rows: RankedRows, gains: Floats, *, ideal: bool = False) -> Floats:
    discounts = discount(rows.rank)
    contribution = gains / discounts
    trace_rows(rows, ideal=ideal, gain=gains, discount=discounts, contribution=contribution)
    return rows.total(contribution)
