"""Where gold's spans are found in the list, each distinct span a piece to find."""

from __future__ import annotations

from functools import partial

from karat.arrays import Floats
from karat.match.spans import Coverage, Least
from karat.measures import pieces
from karat.measures.declare import MIN_OVERLAP, measure
from karat.measures.families import SPAN
from karat.measures.references import JARVELIN, VOORHEES

_LEFT_OUT = "a query whose gold holds no characters is left out, and counted"
_piecewise = partial(
    measure,
    family=SPAN.name,
    params=(MIN_OVERLAP,),
    differs="no other common tool has it for spans",
)


@_piecewise(
    "span.RR",
    aliases=("span.recip_rank", "span.mrr"),
    title="Reciprocal rank of a gold span",
    cites=(VOORHEES,),
    formula="1 / rank of the first item that holds enough of a gold span, 0 if there is none",
    edges=_LEFT_OUT,
)
def reciprocal_rank(coverage: Coverage, k: int | None, min_overlap: Least) -> Floats:
    return pieces.reciprocal_rank(coverage.pieces(min_overlap), k)


@_piecewise(
    "span.Success",
    aliases=("span.hit_rate", "span.hit"),
    title="A gold span found",
    formula="1 if an item of the top k holds enough of a gold span, else 0",
    edges=_LEFT_OUT,
    binary=True,
)
def success(coverage: Coverage, k: int | None, min_overlap: Least) -> Floats:
    return pieces.success(coverage.pieces(min_overlap), k)


@_piecewise(
    "span.AP",
    aliases=("span.map", "span.average_precision"),
    title="Average precision of gold spans",
    formula="Σ over ranks of spans newly found · ranks so far that found a new one / rank, / spans",
    edges=f"never above 1; spans are found by one item each, not by several; {_LEFT_OUT}",
)
def average_precision(coverage: Coverage, k: int | None, min_overlap: Least) -> Floats:
    return pieces.average_precision(coverage.pieces(min_overlap), k)


@_piecewise(
    "span.nDCG",
    title="Normalised discounted gain of gold spans",
    cites=(JARVELIN,),
    formula="Σ spans newly found / log2(rank + 1) / the same of the best order, at most 1",
    edges="best order: the retrieved items, next always the one that finds most new spans, then "
    f"each span that none finds at a rank of its own; {_LEFT_OUT}",
)
def ndcg(coverage: Coverage, k: int | None, min_overlap: Least) -> Floats:
    return pieces.ndcg(coverage.pieces(min_overlap), k)
