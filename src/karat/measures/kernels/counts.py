"""Counts, summed over queries."""

from __future__ import annotations

from functools import partial

import numpy as np

from karat.arrays import Floats
from karat.match.hits import Hits
from karat.measures.registry import REL, measure
from karat.measures.trace import trace_rows

_count = partial(
    measure,
    cutoff="none",
    combine="sum",
    whole=True,
    no_gold=False,
    edges="the value over queries is the sum",
)


@_count(
    "NumQ",
    title="Queries",
    formula="the number of queries scored",
    differs="trec_eval's num_q counts the topics that are in both files, with -c all topics of the "
    "qrels",
)
def n_queries(hits: Hits, k: None) -> Floats:  # noqa: ARG001
    return np.ones(hits.n_queries)


@_count(
    "NumRet",
    title="Retrieved items",
    formula="the number of distinct items retrieved",
    differs="trec_eval's num_ret agrees",
)
def n_retrieved(hits: Hits, k: None) -> Floats:  # noqa: ARG001
    return hits.items(None).astype(np.float64)


@_count(
    "NumRel",
    title="Relevant items",
    formula="the number of relevant items in gold",
    differs="trec_eval's num_rel agrees; with -c, it counts every grade above 0 and ignores -l",
    params=(REL,),
)
def n_relevant(hits: Hits, k: None, rel: int) -> Floats:  # noqa: ARG001
    return hits.n_relevant(rel).astype(np.float64)


@_count(
    "NumRelRet",
    title="Relevant items retrieved",
    formula="the number of relevant items retrieved",
    differs="trec_eval's num_rel_ret agrees",
    params=(REL,),
)
def n_relevant_retrieved(hits: Hits, k: None, rel: int) -> Floats:  # noqa: ARG001
    relevant = hits.relevant(rel)
    trace_rows(relevant)
    return relevant.count.astype(np.float64)


@_count(
    "NumNonrelRet",
    aliases=("num_nonrel_judged_ret",),
    title="Judged irrelevant items retrieved",
    formula="the number of retrieved items that are judged with a grade below rel",
    differs="trec_eval's num_nonrel_judged_ret agrees",
    params=(REL,),
    higher_is_better=False,
)
def n_irrelevant_retrieved(hits: Hits, k: None, rel: int) -> Floats:  # noqa: ARG001
    irrelevant = hits.judged.where(hits.judged.grade < rel)
    trace_rows(irrelevant)
    return irrelevant.count.astype(np.float64)
