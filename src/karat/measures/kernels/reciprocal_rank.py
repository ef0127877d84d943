"""Measures of the first relevant item."""

from __future__ import annotations

import numpy as np

from karat.arrays import Floats
from karat.match.hits import Hits
from karat.measures.array_math import divide
from karat.measures.kernels.references import VOORHEES
from karat.measures.registry import REL, measure
from karat.measures.trace import trace_numbers, trace_rows


def reciprocal_rank_at_most(hits: Hits, k: int | None, rel: int) -> Floats:
    first = hits.ruled_out(rel).first_gap
    return np.where(first <= hits.slots(k), 1.0 / first, 0.0)


@measure(
    "RR",
    aliases=("recip_rank", "mrr", "reciprocal_rank", "mean_reciprocal_rank"),
    title="Reciprocal rank",
    cites=(VOORHEES,),
    formula="1 / rank of the first relevant item, 0 if there is none",
    edges="its mean over queries is what others call MRR",
    differs="trec_eval's recip_rank has no cutoff, -M 10 makes it RR@10; ranx (mrr) agrees",
    params=(REL,),
    bound=reciprocal_rank_at_most,
)
def reciprocal_rank(hits: Hits, k: int | None, rel: int) -> Floats:
    found = hits.relevant(rel).within(k)
    first = found.where(found.ordinal == 1)
    trace_rows(first, reciprocal=1.0 / first.rank)
    trace_numbers(first_relevant_rank_or_zero=found.first_rank)
    return divide(1.0, found.first_rank)


@measure(
    "FirstRelevant",
    aliases=("first_relevant_position", "first_relevant_rank"),
    title="First relevant rank",
    formula="the rank of the first relevant item, null if there is none; median over queries",
    edges="queries without a relevant item in the top k are left out, and counted",
    differs="no other common tool has it",
    params=(REL,),
    combine="median",
    higher_is_better=False,
    whole=True,
    no_gold=False,
)
def first_relevant(hits: Hits, k: int | None, rel: int) -> Floats:
    found = hits.relevant(rel).within(k)
    trace_rows(found.where(found.ordinal == 1))
    return np.where(found.first_rank > 0, found.first_rank, np.nan)
