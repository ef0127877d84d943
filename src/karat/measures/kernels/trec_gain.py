"""Experimental gain measures of trec_eval, which look at several ranks of the list."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from karat.arrays import Floats, Ints
from karat.match.hits import Hits, RankedRows
from karat.measures.array_math import (
    discount,
    divide,
    gain_of_grades,
    logarithm,
    running_sum,
    running_sum_at,
)
from karat.measures.kernels.ndcg import sort_by_gain
from karat.measures.kernels.references import JARVELIN
from karat.measures.registry import GAIN, REL, measure
from karat.measures.trace import trace_numbers, trace_rows


@measure(
    "nDCGrel",
    title="nDCG averaged over relevant items",
    cites=(JARVELIN,),
    formula="the mean of nDCG at the rank of each relevant item; for an item that is not "
    "retrieved, DCG of the whole list / DCG of the whole ideal list",
    edges="an experimental measure of trec_eval; relevant means a gain above 0",
    differs="trec_eval's ndcg_rel agrees",
    cutoff="none",
    params=(GAIN,),
)
def ndcg_at_relevant(hits: Hits, k: None, gain: Any) -> Floats:  # noqa: ARG001
    listed, best = _Curve.of_list(hits, gain), _Curve.of_ideal(hits, gain)
    is_relevant = listed.gains > 0
    relevant_hits = listed.rows.where(is_relevant)
    ndcg = divide(listed.sums[is_relevant], best.at(relevant_hits.query, relevant_hits.rank))
    trace_rows(relevant_hits, DCG=listed.sums[is_relevant], nDCG=ndcg)
    n_relevant = best.rows.count
    missed = divide((n_relevant - relevant_hits.count) * listed.total, best.total)
    trace_numbers(
        sum_at_found=relevant_hits.total(ndcg), sum_of_missed=missed, all_relevant=n_relevant
    )
    return divide(relevant_hits.total(ndcg) + missed, n_relevant)


@measure(
    "RnDCG",
    title="nDCG averaged over gain levels",
    formula="the mean of nDCG at each last rank of a gain level in the ideal list, and at the end "
    "of the list if it is at least two ranks longer than the ideal list",
    edges="an experimental measure of trec_eval; with grades 3, 3, 1 the ranks are 2 and 3",
    differs="trec_eval's Rndcg agrees",
    cutoff="none",
    params=(GAIN,),
)
def ndcg_at_levels(hits: Hits, k: None, gain: Any) -> Floats:  # noqa: ARG001
    listed, best = _Curve.of_list(hits, gain), _Curve.of_ideal(hits, gain)
    ends = np.ones(best.gains.size, np.bool_)
    same_query = best.rows.query[1:] == best.rows.query[:-1]
    ends[:-1] = ~(same_query & (best.gains[1:] == best.gains[:-1]))
    levels = best.rows.where(ends)
    ndcg = listed.at(levels.query, levels.rank) / best.sums[ends]
    trace_rows(listed.rows, DCG=listed.sums, contribution=listed.contribution)
    trace_rows(levels, ideal=True, level_ends=best.gains[ends], nDCG=ndcg)
    goes_on = hits.length > best.rows.count + 1
    at_end = np.where(goes_on, divide(listed.total, best.total), 0.0)
    points = levels.count + goes_on
    trace_numbers(sum_at_levels=levels.total(ndcg), at_the_end=at_end, points=points)
    return divide(levels.total(ndcg) + at_end, points)


@measure(
    "G",
    aliases=("normalised_gain",),
    title="Normalised gain",
    formula="(Σ gain / log2(2 + c − s)) / the sum of all gains, where s is the sum of the gains "
    "of the list up to this rank, and c that of the ideal list with at least 1 for each rank",
    edges="an experimental measure of trec_eval, between AP and nDCG",
    differs="trec_eval's G agrees",
    cutoff="none",
    params=(GAIN,),
)
def normalised_gain(hits: Hits, k: None, gain: Any) -> Floats:  # noqa: ARG001
    gain_hits = hits.found
    gains = gain_of_grades(gain_hits.grade, gain)
    gain_hits, gains = gain_hits.where(gains != 0), gains[gains != 0]
    best, ideal_gains = _with_gain(sort_by_gain(hits.gold, gain), gain)
    cost = running_sum_at(
        best, running_sum(best, np.maximum(ideal_gains, 1.0)), gain_hits.query, gain_hits.rank
    ) + np.maximum(gain_hits.rank - best.count[gain_hits.query], 0)
    # With large gains, a 2 that is added first would be lost to rounding.
    distance = 2 + (cost - running_sum(gain_hits, gains))
    contribution = gains / logarithm(distance, math.log2)
    trace_rows(gain_hits, gain=gains, log2_of=distance, contribution=contribution)
    trace_numbers(
        sum_of_contributions=gain_hits.total(contribution), all_gain=best.total(ideal_gains)
    )
    return divide(gain_hits.total(contribution), best.total(ideal_gains))


@measure(
    "binG",
    title="Binary gain",
    formula="(Σ over relevant items retrieved of 1 / log2(2 + irrelevant or unjudged items "
    "above)) / all relevant items",
    edges="an experimental measure of trec_eval; G with a gain of 1 for all relevant items",
    differs="trec_eval's binG agrees",
    cutoff="none",
    params=(REL,),
)
def binary_gain(hits: Hits, k: None, rel: int) -> Floats:  # noqa: ARG001
    relevant_hits = hits.relevant(rel)
    above = relevant_hits.rank - relevant_hits.ordinal
    contribution = 1.0 / discount(above + 1)
    trace_rows(relevant_hits, others_above=above, contribution=contribution)
    trace_numbers(
        sum_of_contributions=relevant_hits.total(contribution), all_relevant=hits.n_relevant(rel)
    )
    return divide(relevant_hits.total(contribution), hits.n_relevant(rel))


class _Curve:
    """DCG at every rank with a gain."""

    def __init__(self, rows: RankedRows, gains: Floats) -> None:
        self.rows, self.gains = rows, gains
        self.contribution = gains / discount(rows.rank)
        self.sums = running_sum(rows, self.contribution)
        self.total = rows.total(self.contribution)

    @classmethod
    def of_list(cls, hits: Hits, gain: Any) -> _Curve:
        gains = gain_of_grades(hits.found.grade, gain)
        return cls(hits.found.where(gains != 0), gains[gains != 0])

    @classmethod
    def of_ideal(cls, hits: Hits, gain: Any) -> _Curve:
        return cls(*_with_gain(sort_by_gain(hits.gold, gain), gain))

    def at(self, query: Ints, rank: Ints) -> Floats:
        """Return DCG at these ranks of these queries."""
        return running_sum_at(self.rows, self.sums, query, rank)


def _with_gain(ideal: RankedRows, gain: Any) -> tuple[RankedRows, Floats]:
    gains = gain_of_grades(ideal.grade, gain)
    return ideal.where(gains > 0), gains[gains > 0]
