"""Measures from models of a user who reads down the list and may stop."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from karat.match.hits import Floats, Hits, Places
from karat.measures.arrays import divide, power
from karat.measures.declare import REL, Param, measure, one_of, share

PERSISTENCE = Param(
    "p", 0.8, "the chance that the user goes on to the next item", share, shown=True
)
BINARY = Param(
    "gain",
    "binary",
    "binary: 1 from grade rel up; linear: there grade / the largest grade of the whole gold",
    one_of("binary", "linear"),
)


@measure(
    "RBP",
    aliases=("rank_biased_precision",),
    title="Rank-biased precision",
    formula="(1 − p) · Σ gain · p^(rank − 1) over the top k",
    params=(PERSISTENCE, REL, BINARY),
    needs_largest_grade=lambda params: params["gain"] == "linear",
)
def rank_biased_precision(hits: Hits, k: int | None, p: float, rel: int, gain: str) -> Floats:
    found = hits.relevant(rel).within(k)
    if gain == "binary":
        return (1 - p) * found.total(power(p, found.rank - 1))
    assert hits.largest_grade is not None
    return (1 - p) * found.total(found.grade / hits.largest_grade * power(p, found.rank - 1))


@measure(
    "ERR",
    aliases=("expected_reciprocal_rank",),
    title="Expected reciprocal rank",
    formula="Σ 1/rank · s · Π (1 − s of the items above) over the top k; "
    "s = (2^grade − 1) / 2^largest grade of the whole gold",
    needs_largest_grade=lambda _: True,
)
def expected_reciprocal_rank(hits: Hits, k: int | None) -> Floats:
    return _cascade(hits.relevant(1).within(k), hits.largest_grade)


@measure(
    "nERR",
    title="Normalised expected reciprocal rank",
    formula="ERR@k / the ERR@k of all judged items in the best order",
    needs_largest_grade=lambda _: True,
)
def normalised_err(hits: Hits, k: int | None) -> Floats:
    best = hits.gold.where(hits.gold.grade >= 1).within(k)
    return divide(expected_reciprocal_rank(hits, k), _cascade(best, hits.largest_grade))


def _cascade(places: Places, largest_grade: int | None) -> Floats:
    """Walk down all lists at once, one relevant item of each query a step."""
    assert largest_grade is not None
    # 2^(g − m) − 2^−m equals (2^g − 1) / 2^m and does not overflow for large grades.
    scale = float(largest_grade)
    stops = np.exp2(places.grade - scale) - np.exp2(-scale)
    total, going = np.zeros(places.n_queries), np.ones(places.n_queries)
    by_step: Any = np.argsort(places.ordinal, kind="stable")
    ends = np.cumsum(np.bincount(places.ordinal))
    for begin, end in pairwise(ends.tolist()):
        step = by_step[begin:end]
        query = places.query[step]
        total[query] += going[query] * stops[step] / places.rank[step]
        going[query] *= 1 - stops[step]
    return total
