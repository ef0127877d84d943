"""How much of the evidence the retrieved texts cover."""

from __future__ import annotations

from functools import partial

import numpy as np

from karat.arrays import Floats, Ints
from karat.match.evidence import Found
from karat.measures.arrays import divide
from karat.measures.declare import measure
from karat.measures.families import EVIDENCE
from karat.measures.workings import note, note_places

_evidence = partial(measure, family=EVIDENCE.name)
LEFT_OUT = "a query without evidence is left out, and counted"


def _covered(found: Found, k: int | None) -> Ints:
    """Return how many evidences of each query the top k covers."""
    new = found.pieces.new.within(k)
    note_places(new, newly_covered=new.grade)
    covered = np.bincount(new.query, new.grade, new.n_queries).astype(np.int64)
    note(covered=covered, evidences=found.pieces.count)
    return covered


def _share(found: Found, k: int | None) -> Floats:
    covered, count = _covered(found, k), found.pieces.count
    return np.where(count > 0, divide(covered, count), np.nan)


@_evidence(
    "evidence.recall",
    aliases=("EvidenceRecall",),
    title="Evidence found, over all queries",
    formula="distinct evidences covered by the top k / evidences, both summed over queries",
    edges=f"micro: a query counts by its evidences; for one query it is its share; {LEFT_OUT}",
    differs="Ragas and DeepEval call a mean over queries context recall: evidence.coverage",
    combine="micro",
    weight=lambda found: found.pieces.count,
    recall=True,
)
def recall(found: Found, k: int | None) -> Floats:
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
def coverage(found: Found, k: int | None) -> Floats:
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
def full(found: Found, k: int | None) -> Floats:
    covered, count = _covered(found, k), found.pieces.count
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
def precision(found: Found, k: int | None) -> Floats:
    covering = found.covering_items.within(k)
    slots = found.length if k is None else np.full(found.given.size, k)
    note_places(covering, evidences=covering.grade)
    note(covering=covering.count, divided_by=slots)
    return np.where(found.pieces.count > 0, divide(covering.count, slots), np.nan)


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
def rank_of_full_coverage(found: Found, k: int | None) -> Floats:
    new = found.pieces.new.within(k)
    last = np.zeros(new.n_queries, np.int64)
    last[new.query] = new.rank  # ranks rise within a query, and the last one written stays
    whole = (found.pieces.count > 0) & (_covered(found, k) == found.pieces.count)
    return np.where(whole, last, np.nan)
