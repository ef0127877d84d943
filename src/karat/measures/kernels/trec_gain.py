"""trec_eval's experimental measures of gain, which look at more than one point of the list."""

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
    formula="the mean over all items with gain of nDCG at their rank; for one that is not "
    "retrieved, DCG of the list / DCG of the ideal list",
    edges="an experimental measure of trec_eval's; relevant means a gain above 0",
    differs="trec_eval's ndcg_rel is this",
    cutoff="none",
    params=(GAIN,),
)
def ndcg_at_relevant(hits: Hits, k: None, gain: Any) -> Floats:  # noqa: ARG001
    listed, best = _Curve.of_list(hits, gain), _Curve.of_ideal(hits, gain)
    relevant = listed.gains > 0
    found = listed.places.where(relevant)
    ndcg = divide(listed.sums[relevant], best.at(found.query, found.rank))
    trace_rows(found, DCG=listed.sums[relevant], nDCG=ndcg)
    n_relevant = best.places.count
    missed = divide((n_relevant - found.count) * listed.whole, best.whole)
    trace_numbers(sum_at_found=found.total(ndcg), sum_of_missed=missed, all_relevant=n_relevant)
    return divide(found.total(ndcg) + missed, n_relevant)


@measure(
    "RnDCG",
    title="nDCG averaged at the ends of gain levels",
    formula="the mean of nDCG at the ranks where the ideal list ends one gain and starts a lower "
    "one, and at the end of the list if it goes on beyond the next rank",
    edges="an experimental measure of trec_eval's; with grades 3, 3, 1 the ranks are 2 and 3",
    differs="trec_eval's Rndcg is this",
    cutoff="none",
    params=(GAIN,),
)
def ndcg_at_levels(hits: Hits, k: None, gain: Any) -> Floats:  # noqa: ARG001
    listed, best = _Curve.of_list(hits, gain), _Curve.of_ideal(hits, gain)
    ends = np.ones(best.gains.size, np.bool_)
    same_query = best.places.query[1:] == best.places.query[:-1]
    ends[:-1] = ~(same_query & (best.gains[1:] == best.gains[:-1]))
    levels = best.places.where(ends)
    ndcg = listed.at(levels.query, levels.rank) / best.sums[ends]
    trace_rows(listed.places, DCG=listed.sums, contribution=listed.contribution)
    trace_rows(levels, ideal=True, level_ends=best.gains[ends], nDCG=ndcg)
    goes_on = hits.length > best.places.count + 1
    at_end = np.where(goes_on, divide(listed.whole, best.whole), 0.0)
    points = levels.count + goes_on
    trace_numbers(sum_at_levels=levels.total(ndcg), at_the_end=at_end, points=points)
    return divide(levels.total(ndcg) + at_end, points)


@measure(
    "G",
    aliases=("normalised_gain",),
    title="Normalised gain",
    formula="Σ gain / log2(2 + c − s), / the sum of all gains; s: the gains of the list up to "
    "here, c: those of the ideal list, of which each rank counts at least 1",
    edges="an experimental measure of trec_eval's, between AP and nDCG",
    differs="trec_eval's G is this",
    cutoff="none",
    params=(GAIN,),
)
def normalised_gain(hits: Hits, k: None, gain: Any) -> Floats:  # noqa: ARG001
    found = hits.found
    gains = gain_of_grades(found.grade, gain)
    found, gains = found.where(gains != 0), gains[gains != 0]
    best, ideal_gains = _with_gain(sort_by_gain(hits.gold, gain), gain)
    cost = running_sum_at(
        best, running_sum(best, np.maximum(ideal_gains, 1.0)), found.query, found.rank
    ) + np.maximum(found.rank - best.count[found.query], 0)
    distance = 2 + (cost - running_sum(found, gains))  # the gains alone may be too large for a 2
    contribution = gains / logarithm(distance, math.log2)
    trace_rows(found, gain=gains, log2_of=distance, contribution=contribution)
    trace_numbers(sum_of_contributions=found.total(contribution), all_gain=best.total(ideal_gains))
    return divide(found.total(contribution), best.total(ideal_gains))


@measure(
    "binG",
    title="Binary gain",
    formula="Σ over relevant hits of 1 / log2(2 + irrelevant or unjudged items above), / R; "
    "R: all relevant items",
    edges="an experimental measure of trec_eval's; G with a gain of 1 for all relevant items",
    differs="trec_eval's binG is this",
    cutoff="none",
    params=(REL,),
)
def binary_gain(hits: Hits, k: None, rel: int) -> Floats:  # noqa: ARG001
    found = hits.relevant(rel)
    above = found.rank - found.ordinal
    contribution = 1.0 / discount(above + 1)
    trace_rows(found, others_above=above, contribution=contribution)
    trace_numbers(sum_of_contributions=found.total(contribution), all_relevant=hits.n_relevant(rel))
    return divide(found.total(contribution), hits.n_relevant(rel))


class _Curve:
    """DCG at every rank where there is a gain."""

    def __init__(self, places: RankedRows, gains: Floats) -> None:
        self.places, self.gains = places, gains
        self.contribution = gains / discount(places.rank)
        self.sums = running_sum(places, self.contribution)
        self.whole = places.total(self.contribution)

    @classmethod
    def of_list(cls, hits: Hits, gain: Any) -> _Curve:
        gains = gain_of_grades(hits.found.grade, gain)
        return cls(hits.found.where(gains != 0), gains[gains != 0])

    @classmethod
    def of_ideal(cls, hits: Hits, gain: Any) -> _Curve:
        return cls(*_with_gain(sort_by_gain(hits.gold, gain), gain))

    def at(self, query: Ints, rank: Ints) -> Floats:
        """Return DCG at given ranks of given queries."""
        return running_sum_at(self.places, self.sums, query, rank)


def _with_gain(ideal: RankedRows, gain: Any) -> tuple[RankedRows, Floats]:
    gains = gain_of_grades(ideal.grade, gain)
    return ideal.where(gains > 0), gains[gains > 0]
