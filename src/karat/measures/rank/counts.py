"""Plain counts, summed over queries."""

from __future__ import annotations

import numpy as np

from karat.match.hits import Floats, Hits
from karat.measures.declare import REL, measure


@measure(
    "NumQ",
    title="Queries",
    formula="the number of queries scored",
    cutoff="none",
    combine="sum",
    whole=True,
    no_gold=False,
)
def n_queries(hits: Hits, k: None) -> Floats:  # noqa: ARG001
    return np.ones(hits.n_queries)


@measure(
    "NumRet",
    title="Retrieved items",
    formula="the number of different items retrieved",
    cutoff="none",
    combine="sum",
    whole=True,
    no_gold=False,
)
def n_retrieved(hits: Hits, k: None) -> Floats:  # noqa: ARG001
    return hits.items(None).astype(np.float64)


@measure(
    "NumRel",
    title="Relevant items",
    formula="the number of relevant items in gold",
    cutoff="none",
    params=(REL,),
    combine="sum",
    whole=True,
    no_gold=False,
)
def n_relevant(hits: Hits, k: None, rel: int) -> Floats:  # noqa: ARG001
    return hits.n_relevant(rel).astype(np.float64)


@measure(
    "NumRelRet",
    title="Relevant items retrieved",
    formula="the number of relevant items retrieved",
    cutoff="none",
    params=(REL,),
    combine="sum",
    whole=True,
    no_gold=False,
)
def n_relevant_retrieved(hits: Hits, k: None, rel: int) -> Floats:  # noqa: ARG001
    return hits.relevant(rel).count.astype(np.float64)
