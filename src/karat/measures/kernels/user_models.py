"""Measures that model a user who reads down the list and may stop at any item."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from karat.arrays import Floats
from karat.errors import MeasureError
from karat.match.hits import Hits, RankedRows, merge_rows
from karat.measures.array_math import divide, power
from karat.measures.kernels.references import CHAPELLE, MOFFAT
from karat.measures.registry import REL, Param, measure, one_of, share, whole_number_from
from karat.measures.trace import trace_numbers, trace_others, trace_rows

PERSISTENCE = Param(
    "p", 0.8, "the probability that the user continues to the next item", share, always_shown=True
)
BINARY = Param(
    "gain",
    "binary",
    "the gain of items with a grade of rel or higher: 1 (binary), grade / max_grade (linear), or "
    "grade / the largest grade of the query (query)",
    one_of("binary", "linear", "query"),
)
MAX_GRADE = Param(
    "max_grade",
    None,
    "the highest grade of the scale; default: the largest grade in the whole gold",
    whole_number_from(1),
)


def rank_biased_precision_upper_bound(
    hits: Hits, k: int | None, p: float, rel: int, gain: str, max_grade: int | None
) -> Floats:
    """Return the RBP with a gain of 1 for unjudged items and for ranks after the end of the list.

    RBP is 1 if the gain is 1 at every rank of an endless list. The gains that are known to be
    lower are subtracted from that.
    """
    relevant, irrelevant = hits.relevant(rel).within(k), hits.ruled_out(rel).within(k)
    gains = _scaled_gains(hits, relevant, gain, max_grade)
    lost = relevant.total((1 - gains) * power(p, relevant.rank - 1))
    return 1 - (1 - p) * (lost + irrelevant.total(power(p, irrelevant.rank - 1)))


@measure(
    "RBP",
    aliases=("rank_biased_precision",),
    title="Rank-biased precision",
    cites=(MOFFAT,),
    formula="(1 − p) · Σ gain · p^(rank − 1) over the top k",
    edges="unjudged items have a gain of 0; RBPresid is how much they could add",
    differs="ir_measures and ranx agree with gain=binary; trec_eval's rbp is RBP(p=0.9, "
    "gain=query)",
    params=(PERSISTENCE, REL, BINARY, MAX_GRADE),
    bound=rank_biased_precision_upper_bound,
    needs_largest_grade=lambda params: params["gain"] == "linear" and params["max_grade"] is None,
)
def rank_biased_precision(
    hits: Hits, k: int | None, p: float, rel: int, gain: str, max_grade: int | None
) -> Floats:
    relevant = hits.relevant(rel).within(k)
    gains = _scaled_gains(hits, relevant, gain, max_grade)
    is_seen = power(p, relevant.rank - 1)
    trace_rows(relevant, gain=gains, seen_with_chance=is_seen, contribution=gains * is_seen)
    total = relevant.total(gains * is_seen)
    trace_numbers(sum_of_contributions=total, one_minus_p=np.full(hits.n_queries, 1 - p))
    return (1 - p) * total


@measure(
    "RBPresid",
    aliases=("rbp_residual",),
    title="Residual of RBP, from unjudged items",
    cites=(MOFFAT,),
    formula="p^n + (1 − p) · Σ p^(rank − 1) over unjudged items, where n is the length of the list",
    edges="0 if every item of the list is judged, without p^n; repeated items are not counted "
    "again",
    differs="trec_eval's rbp_resid agrees",
    cutoff="none",
    params=(replace(PERSISTENCE, default=0.9),),
    higher_is_better=False,
    no_gold=False,
)
def rank_biased_residual(hits: Hits, k: None, p: float) -> Floats:
    trace_others(hits.judged, k, seen_with_chance=lambda rank: p ** (rank - 1))
    judged_or_repeated = merge_rows(hits.judged, hits.repeats)
    unjudged = hits.length - judged_or_repeated.count
    # (1 − p)(p^a + … + p^(b−1)) is p^a − p^b, so a run of unjudged items needs only two powers.
    before = np.where(judged_or_repeated.ordinal > 1, np.roll(judged_or_repeated.rank, 1), 0)
    residual = judged_or_repeated.total(power(p, before) - power(p, judged_or_repeated.rank - 1))
    last = np.zeros(hits.n_queries, np.int64)
    np.maximum.at(last, judged_or_repeated.query, judged_or_repeated.rank)
    residual += power(p, last) - power(p, hits.length)
    tail = power(p, hits.length)
    trace_numbers(unjudged=unjudged, of_unjudged_items=residual, of_the_tail=tail)
    return np.where(unjudged > 0, tail + residual, 0.0)


@measure(
    "ERR",
    aliases=("expected_reciprocal_rank",),
    title="Expected reciprocal rank",
    cites=(CHAPELLE,),
    formula="Σ 1/rank · s · Π (1 − s of the items above) over the top k, where "
    "s = (2^grade − 1) / 2^max_grade",
    edges="without max_grade, the value depends on the largest grade in the whole gold; set "
    "max_grade to compare values across golden sets",
    differs="gdeval.pl and ir_measures, which uses it, always compute ERR(max_grade=4)",
    params=(MAX_GRADE,),
    needs_largest_grade=lambda params: params["max_grade"] is None,
)
def expected_reciprocal_rank(hits: Hits, k: int | None, max_grade: int | None) -> Floats:
    return _cascade(hits.relevant(1).within(k), _top_of_scale(hits, max_grade))


@measure(
    "nERR",
    title="Normalised expected reciprocal rank",
    formula="ERR@k / ERR@k of all judged items in the best order",
    edges="0 if gold has nothing relevant",
    differs="NERR8 to NERR11 of ir_measures are different measures, close to ERR",
    params=(MAX_GRADE,),
    needs_largest_grade=lambda params: params["max_grade"] is None,
)
def normalised_err(hits: Hits, k: int | None, max_grade: int | None) -> Floats:
    best = hits.gold.where(hits.gold.grade >= 1).within(k)
    actual = expected_reciprocal_rank(hits, k, max_grade)
    ideal = _cascade(best, _top_of_scale(hits, max_grade), True)
    trace_numbers(ERR=actual, ideal_ERR=ideal)
    return divide(actual, ideal)


def _top_of_scale(hits: Hits, max_grade: int | None) -> int:
    """Return the highest grade of the scale: max_grade, or the largest grade in the whole gold."""
    if max_grade is None:
        assert hits.largest_grade is not None
        return hits.largest_grade
    highest = int(hits.gold.grade.max(initial=0))
    if highest > max_grade:
        raise MeasureError(
            f"gold contains grade {highest}, above max_grade={max_grade}",
            field="max_grade",
            hint=f"set max_grade to {highest} or higher",
        )
    return max_grade


def _scaled_gains(hits: Hits, relevant: RankedRows, gain: str, max_grade: int | None) -> Floats:
    """Return gains between 0 and 1."""
    if gain == "binary":
        return np.ones(relevant.rank.size)
    if gain == "query":
        largest = np.ones(hits.n_queries, np.int64)
        top = hits.gold.where(hits.gold.rank == 1)
        largest[top.query] = np.maximum(top.grade, 1)
        return relevant.grade / largest[relevant.query]
    return relevant.grade / _top_of_scale(hits, max_grade)


def _cascade(rows: RankedRows, largest_grade: int, ideal: bool = False) -> Floats:
    """Compute ERR for all lists at once, one relevant item of each query per step."""
    # 2^(g − m) − 2^−m equals (2^g − 1) / 2^m and does not overflow for large grades.
    scale = float(largest_grade)
    stops = np.exp2(rows.grade - scale) - np.exp2(-scale)
    total, continues = np.zeros(rows.n_queries), np.ones(rows.n_queries)
    contribution = np.zeros(rows.rank.size)
    by_step: Any = np.argsort(rows.ordinal, kind="stable")
    ends = np.cumsum(np.bincount(rows.ordinal))
    for begin, end in pairwise(ends.tolist()):
        step = by_step[begin:end]
        query = rows.query[step]
        contribution[step] = continues[query] * stops[step] / rows.rank[step]
        total[query] += contribution[step]
        continues[query] *= 1 - stops[step]
    trace_rows(rows, ideal=ideal, stops_with_chance=stops, contribution=contribution)
    return total
