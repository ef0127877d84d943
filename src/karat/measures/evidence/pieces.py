"""Where evidence is found in the list, each distinct evidence a piece to find."""

from __future__ import annotations

from functools import partial

from karat.arrays import Floats
from karat.match.evidence import Found
from karat.measures import pieces
from karat.measures.declare import measure
from karat.measures.evidence.coverage import LEFT_OUT
from karat.measures.families import EVIDENCE
from karat.measures.references import JARVELIN, VOORHEES

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
def reciprocal_rank(found: Found, k: int | None) -> Floats:
    return pieces.reciprocal_rank(found.pieces, k)


@_piecewise(
    "evidence.Success",
    aliases=("evidence.hit_rate", "evidence.hit"),
    title="Evidence found at all",
    formula="1 if an item of the top k covers an evidence, else 0",
    edges=LEFT_OUT,
    differs="no other common tool has it for texts",
    binary=True,
)
def success(found: Found, k: int | None) -> Floats:
    return pieces.success(found.pieces, k)


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
def average_precision(found: Found, k: int | None) -> Floats:
    return pieces.average_precision(found.pieces, k)


@_piecewise(
    "evidence.nDCG",
    title="Normalised discounted gain of evidence",
    cites=(JARVELIN,),
    formula="Σ evidences newly covered / log2(rank + 1) / the same of the best order, at most 1",
    edges="best order: the retrieved items, next always the one that covers most new evidences, "
    f"then each that none covers at a rank of its own; {LEFT_OUT}",
    differs="α-nDCG discounts repeated evidence instead of not counting it",
)
def ndcg(found: Found, k: int | None) -> Floats:
    return pieces.ndcg(found.pieces, k)
