"""Measures from models of a user who reads down the list and may stop."""

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
    "p", 0.8, "the chance that the user goes on to the next item", share, always_shown=True
)
BINARY = Param(
    "gain",
    "binary",
    "binary: 1 from grade rel up; linear: grade / max_grade from grade rel up; "
    "query: grade / the query's largest grade from grade rel up",
    one_of("binary", "linear", "query"),
)
MAX_GRADE = Param(
    "max_grade",
    None,
    "the highest grade of the scale; by default the largest grade in the whole gold",
    whole_number_from(1),
)


def rank_biased_precision_at_most(
    hits: Hits, k: int | None, p: float, rel: int, gain: str, max_grade: int | None
) -> Floats:
    """Return RBP if every unjudged item gained 1, and so did all that would follow the list.

    Were every place so, for ever, it would be 1: what is known to gain less is taken from that.
    """
    found, nothing = hits.relevant(rel).within(k), hits.ruled_out(rel).within(k)
    lost = found.total((1 - _scaled(hits, found, gain, max_grade)) * power(p, found.rank - 1))
    return 1 - (1 - p) * (lost + nothing.total(power(p, nothing.rank - 1)))


@measure(
    "RBP",
    aliases=("rank_biased_precision",),
    title="Rank-biased precision",
    cites=(MOFFAT,),
    formula="(1 − p) · Σ gain · p^(rank − 1) over the top k",
    edges="unjudged items gain nothing; RBPresid says how much they could add",
    differs="ir_measures and ranx use gain=binary; trec_eval's rbp is RBP(p=0.9, gain=query)",
    params=(PERSISTENCE, REL, BINARY, MAX_GRADE),
    bound=rank_biased_precision_at_most,
    needs_largest_grade=lambda params: params["gain"] == "linear" and params["max_grade"] is None,
)
def rank_biased_precision(
    hits: Hits, k: int | None, p: float, rel: int, gain: str, max_grade: int | None
) -> Floats:
    found = hits.relevant(rel).within(k)
    gains = _scaled(hits, found, gain, max_grade)
    chance = power(p, found.rank - 1)
    trace_rows(found, gain=gains, seen_with_chance=chance, contribution=gains * chance)
    total = found.total(gains * chance)
    trace_numbers(sum_of_contributions=total, one_minus_p=np.full(hits.n_queries, 1 - p))
    return (1 - p) * total


@measure(
    "RBPresid",
    aliases=("rbp_residual",),
    title="What unjudged items could add to RBP",
    cites=(MOFFAT,),
    formula="p^n + (1 − p) · Σ p^(rank − 1) over unjudged items; n: the length of the list",
    edges="0 if every item of the list is judged, though p^n would be left; an item that stands "
    "again is not counted again",
    differs="trec_eval's rbp_resid is this",
    cutoff="none",
    params=(replace(PERSISTENCE, default=0.9),),
    higher_is_better=False,
    no_gold=False,
)
def rank_biased_residual(hits: Hits, k: None, p: float) -> Floats:
    trace_others(hits.judged, k, seen_with_chance=lambda rank: p ** (rank - 1))
    known = merge_rows(hits.judged, hits.repeats)
    unjudged = hits.length - known.count
    # (1 − p)(p^a + … + p^(b−1)) is p^a − p^b: a stretch of unjudged items costs two powers.
    before = np.where(known.ordinal > 1, np.roll(known.rank, 1), 0)
    stretches = known.total(power(p, before) - power(p, known.rank - 1))
    last = np.zeros(hits.n_queries, np.int64)
    np.maximum.at(last, known.query, known.rank)
    stretches += power(p, last) - power(p, hits.length)
    tail = power(p, hits.length)
    trace_numbers(unjudged=unjudged, of_unjudged_items=stretches, of_the_tail=tail)
    return np.where(unjudged > 0, tail + stretches, 0.0)


@measure(
    "ERR",
    aliases=("expected_reciprocal_rank",),
    title="Expected reciprocal rank",
    cites=(CHAPELLE,),
    formula="Σ 1/rank · s · Π (1 − s of the items above) over the top k; "
    "s = (2^grade − 1) / 2^max_grade",
    edges="without max_grade, the largest grade in the whole gold is used, so the value depends on "
    "which queries gold contains; give max_grade to compare across golden sets",
    differs="gdeval.pl, and ir_measures with it, is ERR(max_grade=4) whatever gold holds",
    params=(MAX_GRADE,),
    needs_largest_grade=lambda params: params["max_grade"] is None,
)
def expected_reciprocal_rank(hits: Hits, k: int | None, max_grade: int | None) -> Floats:
    return _cascade(hits.relevant(1).within(k), _top_of_scale(hits, max_grade))


@measure(
    "nERR",
    title="Normalised expected reciprocal rank",
    formula="ERR@k / the ERR@k of all judged items in the best order",
    edges="0 where nothing is relevant",
    differs="ir_measures' NERR8 to NERR11 are other measures, nearly ERR",
    params=(MAX_GRADE,),
    needs_largest_grade=lambda params: params["max_grade"] is None,
)
def normalised_err(hits: Hits, k: int | None, max_grade: int | None) -> Floats:
    best = hits.gold.where(hits.gold.grade >= 1).within(k)
    reached = expected_reciprocal_rank(hits, k, max_grade)
    ideal = _cascade(best, _top_of_scale(hits, max_grade), True)
    trace_numbers(ERR=reached, ideal_ERR=ideal)
    return divide(reached, ideal)


def _top_of_scale(hits: Hits, max_grade: int | None) -> int:
    """Return the highest grade of the scale: the one given, or the largest in the whole gold."""
    if max_grade is None:
        assert hits.largest_grade is not None
        return hits.largest_grade
    highest = int(hits.gold.grade.max(initial=0))
    if highest > max_grade:
        raise MeasureError(
            f"gold contains grade {highest}, above max_grade={max_grade}",
            field="max_grade",
            hint=f"give max_grade={highest} or more",
        )
    return max_grade


def _scaled(hits: Hits, found: RankedRows, gain: str, max_grade: int | None) -> Floats:
    """Return gains between 0 and 1."""
    if gain == "binary":
        return np.ones(found.rank.size)
    if gain == "query":
        largest = np.ones(hits.n_queries, np.int64)
        top = hits.gold.where(hits.gold.rank == 1)
        largest[top.query] = np.maximum(top.grade, 1)
        return found.grade / largest[found.query]
    return found.grade / _top_of_scale(hits, max_grade)


def _cascade(places: RankedRows, largest_grade: int, ideal: bool = False) -> Floats:
    """Walk down all lists at once, one relevant item of each query per step."""
    # 2^(g − m) − 2^−m equals (2^g − 1) / 2^m and does not overflow for large grades.
    scale = float(largest_grade)
    stops = np.exp2(places.grade - scale) - np.exp2(-scale)
    total, going = np.zeros(places.n_queries), np.ones(places.n_queries)
    contribution = np.zeros(places.rank.size)
    by_step: Any = np.argsort(places.ordinal, kind="stable")
    ends = np.cumsum(np.bincount(places.ordinal))
    for begin, end in pairwise(ends.tolist()):
        step = by_step[begin:end]
        query = places.query[step]
        contribution[step] = going[query] * stops[step] / places.rank[step]
        total[query] += contribution[step]
        going[query] *= 1 - stops[step]
    trace_rows(places, ideal=ideal, stops_with_chance=stops, contribution=contribution)
    return total
