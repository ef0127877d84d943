"""How much of the evidence the retrieved texts cover."""

from __future__ import annotations

from functools import partial

import numpy as np

from karat.arrays import Floats, Ints
from karat.match.evidence import EvidenceMatches
from karat.measures.array_math import divide
from karat.measures.families import EVIDENCE
from karat.measures.kernels import targets
from karat.measures.kernels.references import JARVELIN, VOORHEES
from karat.measures.registry import Param, measure, whole_number_from
from karat.measures.trace import trace_numbers, trace_rows

_evidence = partial(measure, family=EVIDENCE.name)
LEFT_OUT = "a query without evidence is left out, and counted"


def _covered(found: EvidenceMatches, k: int | None) -> Ints:
    """Return how many evidences of each query the top k covers."""
    new = found.targets.newly_covered.within(k)
    trace_rows(new, newly_covered=new.grade)
    covered = np.bincount(new.query, new.grade, new.n_queries).astype(np.int64)
    trace_numbers(covered=covered, evidences=found.targets.count)
    return covered


def _share(found: EvidenceMatches, k: int | None) -> Floats:
    covered, count = _covered(found, k), found.targets.count
    return np.where(count > 0, divide(covered, count), np.nan)


@_evidence(
    "evidence.recall",
    aliases=("EvidenceRecall",),
    title="Evidence found, over all queries",
    formula="distinct evidences covered by the top k / evidences, both summed over queries",
    edges=f"micro: a query counts by its evidences; for one query it is its share; {LEFT_OUT}",
    differs="Ragas and DeepEval call a mean over queries context recall: evidence.coverage",
    combine="micro",
    weight=lambda found: found.targets.count,
    recall=True,
)
def recall(found: EvidenceMatches, k: int | None) -> Floats:
    return _share(found, k)


@_evidence(
    "evidence.coverage",
    aliases=("PerQueryCoverage",),
    title="Evidence found, query by query",
    formula="distinct evidences covered by the top k / evidences of the query",
    edges=f"macro: every query counts the same; {LEFT_OUT}",
    differs="Ragas' non-LLM context recall compares with another distance; LLM judges vary",
    recall=True,
)
def coverage(found: EvidenceMatches, k: int | None) -> Floats:
    return _share(found, k)


@_evidence(
    "evidence.full",
    aliases=("FullCoverageRate",),
    title="All evidence found",
    formula="1 if the top k covers every evidence of the query, else 0",
    edges=LEFT_OUT,
    differs="no other common tool has it",
    binary=True,
)
def full(found: EvidenceMatches, k: int | None) -> Floats:
    covered, count = _covered(found, k), found.targets.count
    return np.where(count > 0, covered == count, np.nan)


@_evidence(
    "evidence.P",
    aliases=("evidence.precision",),
    title="Precision of chunks",
    formula="items of the top k that cover an evidence / k; without a cutoff, / items retrieved",
    edges="the denominator stays k where fewer are retrieved; an id that stands again counts as "
    f"`duplicates` says; {LEFT_OUT}",
    differs="Ragas' context precision is an average precision: evidence.AP",
    counts_repeats=True,
)
def precision(found: EvidenceMatches, k: int | None) -> Floats:
    covering = found.covering_items.within(k)
    slots = found.length if k is None else np.full(found.has_gold.size, k)
    trace_rows(covering, evidences=covering.grade)
    trace_numbers(covering=covering.count, divided_by=slots)
    return np.where(found.targets.count > 0, divide(covering.count, slots), np.nan)


@_evidence(
    "evidence.RankOfFullCoverage",
    title="Rank of full coverage",
    formula="the rank at which every evidence is covered; median over queries",
    edges=f"a query never fully covered in the top k is left out of the median; {LEFT_OUT}",
    differs="no other common tool has it",
    combine="median",
    higher_is_better=False,
    whole=True,
    no_gold=False,
)
def rank_of_full_coverage(found: EvidenceMatches, k: int | None) -> Floats:
    new = found.targets.newly_covered.within(k)
    last = np.zeros(new.n_queries, np.int64)
    last[new.query] = new.rank  # ranks rise within a query, and the last one written stays
    whole = (found.targets.count > 0) & (_covered(found, k) == found.targets.count)
    return np.where(whole, last, np.nan)


_piecewise = partial(measure, family=EVIDENCE.name)


@_piecewise(
    "evidence.RR",
    aliases=("evidence.recip_rank", "evidence.mrr"),
    title="Reciprocal rank of evidence",
    cites=(VOORHEES,),
    formula="1 / rank of the first item that covers an evidence, 0 if there is none",
    edges=LEFT_OUT,
    differs="no other common tool has it for texts",
)
def reciprocal_rank(found: EvidenceMatches, k: int | None) -> Floats:
    return targets.reciprocal_rank(found.targets, k)


@_piecewise(
    "evidence.Success",
    aliases=("evidence.hit_rate", "evidence.hit"),
    title="Evidence found at all",
    formula="1 if an item of the top k covers an evidence, else 0",
    edges=LEFT_OUT,
    differs="no other common tool has it for texts",
    binary=True,
)
def success(found: EvidenceMatches, k: int | None) -> Floats:
    return targets.success(found.targets, k)


@_piecewise(
    "evidence.AP",
    aliases=("evidence.map", "evidence.average_precision"),
    title="Average precision of evidence",
    formula="Σ over ranks of evidences newly covered · ranks so far that brought a new one / rank, "
    "/ evidences",
    edges="never above 1; the usual AP where each item covers one evidence and none is covered "
    f"twice; {LEFT_OUT}",
    differs="Ragas' context precision divides by the relevant items retrieved",
)
def average_precision(found: EvidenceMatches, k: int | None) -> Floats:
    return targets.average_precision(found.targets, k)


@_piecewise(
    "evidence.nDCG",
    title="Normalised discounted gain of evidence",
    cites=(JARVELIN,),
    formula="Σ evidences newly covered / log2(rank + 1) / the same of the best order, at most 1",
    edges="best order: the retrieved items, next always the one that covers most new evidences, "
    f"then each that none covers at a rank of its own; {LEFT_OUT}",
    differs="α-nDCG discounts repeated evidence instead of not counting it",
)
def ndcg(found: EvidenceMatches, k: int | None) -> Floats:
    return targets.ndcg(found.targets, k)


_LEAST = Param(
    "least",
    20,
    "how many characters in a row must be the same to count as held",
    whole_number_from(1),
)


@measure(
    "evidence.union",
    family=EVIDENCE.name,
    title="Evidence held by several items together",
    formula="mean over evidences of the share of its characters that the top k holds word for "
    "word, in stretches of `least` or more; 1 for an evidence that an item covers",
    edges="spaces are not counted; an evidence shorter than `least` must be there whole; never "
    f"below evidence.coverage; {LEFT_OUT}",
    differs="no other common tool has it",
    params=(_LEAST,),
)
def union(found: EvidenceMatches, k: int | None, least: int) -> Floats:
    pieces = found.targets
    piece, rank, characters = found.verbatim_characters(least)
    within = rank <= (np.inf if k is None else k)
    held = np.bincount(piece[within], characters[within], pieces.target_query.size)
    share = divide(held, found.characters)
    covered = pieces.target[pieces.rank <= (np.inf if k is None else k)]
    share[covered] = 1.0
    # From the smallest share up, so that no order of the evidence changes a digit.
    order = np.argsort(share, kind="stable")
    total = np.bincount(pieces.target_query[order], share[order], pieces.n_queries)
    trace_numbers(sum_of_shares=total, evidences=pieces.count)
    return np.where(pieces.count > 0, divide(total, pieces.count), np.nan)
