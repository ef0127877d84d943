"""Measures of evidence texts: how many of them the retrieved texts cover."""

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
LEFT_OUT = "a query without evidence texts is left out, and counted"


def _covered(matches: EvidenceMatches, k: int | None) -> Ints:
    """Return how many evidence texts of each query the top k covers."""
    new = matches.targets.newly_covered.within(k)
    trace_rows(new, newly_covered=new.grade)
    covered = np.bincount(new.query, new.grade, new.n_queries).astype(np.int64)
    trace_numbers(covered=covered, evidence_texts=matches.targets.count)
    return covered


def _share(matches: EvidenceMatches, k: int | None) -> Floats:
    covered, count = _covered(matches, k), matches.targets.count
    return np.where(count > 0, divide(covered, count), np.nan)


@_evidence(
    "evidence.recall",
    aliases=("EvidenceRecall",),
    title="Recall of evidence texts, over all queries",
    formula="evidence texts covered by the top k / all evidence texts, both summed over queries",
    edges="micro average: queries with more evidence texts count more; the value of a single query "
    f"is its evidence.coverage; {LEFT_OUT}",
    differs="context recall in Ragas and DeepEval is a mean over queries, as evidence.coverage",
    combine="micro",
    weight=lambda matches: matches.targets.count,
    recall=True,
)
def recall(matches: EvidenceMatches, k: int | None) -> Floats:
    return _share(matches, k)


@_evidence(
    "evidence.coverage",
    aliases=("PerQueryCoverage",),
    title="Recall of evidence texts, per query",
    formula="evidence texts covered by the top k / evidence texts of the query",
    edges=f"macro average: every query counts the same; {LEFT_OUT}",
    differs="non-LLM context recall in Ragas uses another string distance; LLM judges vary",
    recall=True,
)
def coverage(matches: EvidenceMatches, k: int | None) -> Floats:
    return _share(matches, k)


@_evidence(
    "evidence.full",
    aliases=("FullCoverageRate",),
    title="All evidence texts covered",
    formula="1 if the top k covers every evidence text of the query, else 0",
    edges=LEFT_OUT,
    differs="no common tool has it",
    binary=True,
)
def full(matches: EvidenceMatches, k: int | None) -> Floats:
    covered, count = _covered(matches, k), matches.targets.count
    return np.where(count > 0, covered == count, np.nan)


@_evidence(
    "evidence.P",
    aliases=("evidence.precision",),
    title="Precision of chunks",
    formula="items in the top k that cover an evidence text / k; without a cutoff, k is the "
    "length of the list",
    edges="the denominator is k even if the list is shorter; the convention duplicates determines "
    f"how repeated items count; {LEFT_OUT}",
    differs="context precision in Ragas is an average precision, as evidence.AP",
    counts_repeats=True,
)
def precision(matches: EvidenceMatches, k: int | None) -> Floats:
    covering = matches.covering_items.within(k)
    slots = matches.length if k is None else np.full(matches.has_gold.size, k)
    trace_rows(covering, evidence_texts=covering.grade)
    trace_numbers(covering=covering.count, divided_by=slots)
    return np.where(matches.targets.count > 0, divide(covering.count, slots), np.nan)


@_evidence(
    "evidence.RankOfFullCoverage",
    title="Rank of full coverage",
    formula="the first rank at which every evidence text is covered; over queries, the median",
    edges=f"a query that the top k does not cover fully is left out; {LEFT_OUT}",
    differs="no common tool has it",
    combine="median",
    higher_is_better=False,
    whole=True,
    no_gold=False,
)
def rank_of_full_coverage(matches: EvidenceMatches, k: int | None) -> Floats:
    new = matches.targets.newly_covered.within(k)
    last = np.zeros(new.n_queries, np.int64)
    last[new.query] = new.rank  # ranks rise within a query, so the last assignment wins
    is_full = (matches.targets.count > 0) & (_covered(matches, k) == matches.targets.count)
    return np.where(is_full, last, np.nan)


@_evidence(
    "evidence.RR",
    aliases=("evidence.recip_rank", "evidence.mrr"),
    title="Reciprocal rank of the first evidence text",
    cites=(VOORHEES,),
    formula="1 / rank of the first item that covers an evidence text, or 0 if there is none",
    edges=LEFT_OUT,
    differs="no common tool has it for texts",
)
def reciprocal_rank(matches: EvidenceMatches, k: int | None) -> Floats:
    return targets.reciprocal_rank(matches.targets, k)


@_evidence(
    "evidence.Success",
    aliases=("evidence.hit_rate", "evidence.hit"),
    title="Success, or hit rate, of evidence texts",
    formula="1 if an item in the top k covers an evidence text, else 0",
    edges=LEFT_OUT,
    differs="no common tool has it for texts",
    binary=True,
)
def success(matches: EvidenceMatches, k: int | None) -> Floats:
    return targets.success(matches.targets, k)


@_evidence(
    "evidence.AP",
    aliases=("evidence.map", "evidence.average_precision"),
    title="Average precision of evidence texts",
    formula="(Σ over ranks of n · m / rank) / all evidence texts, where n is the number of "
    "evidence texts covered first at this rank, and m is the number of ranks so far that covered "
    "a new one",
    edges="at most 1; equal to AP if each item covers at most one evidence text and no evidence "
    f"text is covered twice; {LEFT_OUT}",
    differs="context precision in Ragas divides by the relevant items retrieved",
)
def average_precision(matches: EvidenceMatches, k: int | None) -> Floats:
    return targets.average_precision(matches.targets, k)


@_evidence(
    "evidence.nDCG",
    title="Normalised DCG of evidence texts",
    cites=(JARVELIN,),
    formula="(Σ over ranks of n / log2(rank + 1)) / the same sum for the best order, at most 1, "
    "where n is the number of evidence texts covered first at this rank",
    edges="the best order takes the retrieved item that covers most new evidence texts first, and "
    f"so on, then adds one rank for each evidence text that no item covers; {LEFT_OUT}",
    differs="α-nDCG discounts evidence that is covered again, instead of ignoring it",
)
def ndcg(matches: EvidenceMatches, k: int | None) -> Floats:
    return targets.ndcg(matches.targets, k)


_LEAST = Param(
    "least",
    20,
    "the minimum length of a shared substring, in characters",
    whole_number_from(1),
)


@_evidence(
    "evidence.union",
    title="Evidence texts covered by items together",
    formula="the mean over evidence texts of the share of their characters that the top k "
    "contains, in substrings of at least `least` characters; 1 for an evidence text that a single "
    "item covers",
    edges="spaces are not counted; an evidence text that is shorter than `least` must be "
    f"contained as a whole; at least evidence.coverage; {LEFT_OUT}",
    differs="no common tool has it",
    params=(_LEAST,),
)
def union(matches: EvidenceMatches, k: int | None, least: int) -> Floats:
    pieces = matches.targets
    last_rank = np.inf if k is None else k
    piece, rank, characters = matches.verbatim_characters(least)
    in_top = rank <= last_rank
    n_shared = np.bincount(piece[in_top], characters[in_top], pieces.target_query.size)
    share = divide(n_shared, matches.characters)
    covered = pieces.target[pieces.rank <= last_rank]
    share[covered] = 1.0
    # Added up from the smallest share, so that the order of the evidence texts does not matter.
    order = np.argsort(share, kind="stable")
    total = np.bincount(pieces.target_query[order], share[order], pieces.n_queries)
    trace_numbers(sum_of_shares=total, evidence_texts=pieces.count)
    return np.where(pieces.count > 0, divide(total, pieces.count), np.nan)
