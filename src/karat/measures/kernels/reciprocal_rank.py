"""Measures of the rank of the first relevant item."""

from __future__ import annotations

import numpy as np

from karat.arrays import Floats
from karat.match.hits import Hits
from karat.measures.array_math import divide
from karat.measures.kernels.references import VOORHEES
from karat.measures.registry import REL, measure
from karat.measures.trace import trace_numbers, trace_rows


def reciprocal_rank_upper_bound(hits: Hits, k: int | None, rel: int) -> Floats:
    first = hits.ruled_out(rel).first_gap
    return np.where(first <= hits.slots(k), 1.0 / first, 0.0)


@measure(
    "RR",
    aliases=("recip_rank", "mrr", "reciprocal_rank", "mean_reciprocal_rank"),
    title="Reciprocal rank",
    cites=(VOORHEES,),
    formula="1 / rank of the first relevant item, 0 if there is none",
    edges="the mean over queries is usually called MRR",
    differs="trec_eval's recip_rank agrees; it has no cutoff, but -M 10 gives RR@10; ranx (mrr) "
    "agrees",
    params=(REL,),
    bound=reciprocal_rank_upper_bound,
)
def reciprocal_rank(hits: Hits, k: int | None, rel: int) -> Floats:
    relevant = hits.relevant(rel).within(k)
    first = relevant.where(relevant.ordinal == 1)
    trace_rows(first, reciprocal=1.0 / first.rank)
    trace_numbers(first_relevant_rank_or_zero=relevant.first_rank)
    return divide(1.0, relevant.first_rank)


@measure(
    "FirstRelevant",
    aliases=("first_relevant_position", "first_relevant_rank"),
    title="First relevant rank",
    formula="the rank of the first relevant item in the top k, or null if there is none; over "
    "queries, the median",
    edges="queries without a relevant item in the top k are left out",
    differs="no common tool has it",
    params=(REL,),
    combine="median",
    higher_is_better=False,
    whole=True,
    no_gold=False,
)
def first_relevant(hits: Hits, k: int | None, rel: int) -> Floats:
    relevant = hits.relevant(rel).within(k)
    trace_rows(relevant.where(relevant.ordinal == 1))
    return np.where(relevant.first_rank > 0, relevant.first_rank, np.nan)
