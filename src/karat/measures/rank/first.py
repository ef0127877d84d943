"""Measures of the first relevant item."""

from __future__ import annotations

import numpy as np

from karat.match.hits import Floats, Hits
from karat.measures.arrays import divide
from karat.measures.declare import REL, measure


@measure(
    "RR",
    aliases=("recip_rank", "mrr", "reciprocal_rank", "mean_reciprocal_rank"),
    title="Reciprocal rank",
    formula="1 / rank of the first relevant item, 0 if there is none",
    params=(REL,),
)
def reciprocal_rank(hits: Hits, k: int | None, rel: int) -> Floats:
    first = hits.relevant(rel).within(k).first_rank
    return divide(1.0, first)


@measure(
    "FirstRelevant",
    aliases=("first_relevant_position", "first_relevant_rank"),
    title="First relevant rank",
    formula="the rank of the first relevant item, null if there is none; median over queries",
    params=(REL,),
    combine="median",
    higher_is_better=False,
    whole=True,
    no_gold=False,
)
def first_relevant(hits: Hits, k: int | None, rel: int) -> Floats:
    first = hits.relevant(rel).within(k).first_rank
    return np.where(first > 0, first, np.nan)
