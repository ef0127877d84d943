"""How many characters of gold's spans the retrieved items cover, each character once."""

from __future__ import annotations

from functools import partial

import numpy as np

from karat.arrays import Flags, Floats, Ints
from karat.match.spans import Budget, Coverage, CoveredCharacters, MinOverlap
from karat.measures.array_math import divide
from karat.measures.families import SPAN
from karat.measures.kernels import targets
from karat.measures.kernels.references import JARVELIN, VOORHEES
from karat.measures.registry import MIN_OVERLAP, measure
from karat.measures.trace import is_tracing, trace_numbers, trace_rows

Cutoff = int | Budget | None

_span = partial(measure, family=SPAN.name, cutoff="budget")
_OTHERS = "no other common tool has it by rank; those without merge all that was retrieved"


@_span(
    "span.recall",
    title="Recall of characters",
    formula="gold characters covered by the top k / gold characters",
    edges="1 where gold holds no characters; items are cut at k first and merged then",
    differs=_OTHERS,
    recall=True,
)
def recall(coverage: Coverage, k: Cutoff) -> Floats:
    covered = _covered(coverage, k)
    gold = coverage.gold_characters
    return np.where(gold == 0, 1.0, divide(covered.gold, gold))


@_span(
    "span.precision",
    title="Precision of characters",
    formula="gold characters covered by the top k / characters retrieved, each once",
    edges="0 where nothing is retrieved",
    differs=_OTHERS,
)
def precision(coverage: Coverage, k: Cutoff) -> Floats:
    covered = _covered(coverage, k)
    return divide(covered.gold, covered.merged)


@_span(
    "span.iou",
    title="Intersection over union of characters",
    formula="characters in both / characters in either",
    edges="1 where both are empty, 0 where exactly one is",
    differs=_OTHERS,
)
def intersection_over_union(coverage: Coverage, k: Cutoff) -> Floats:
    covered = _covered(coverage, k)
    union: Ints = covered.merged + coverage.gold_characters - covered.gold
    trace_numbers(characters_in_either=union)
    return np.where(union == 0, 1.0, divide(covered.gold, union))


@_span(
    "span.f1",
    title="F1 of characters",
    formula="2·P·R / (P + R) of span.precision and span.recall",
    edges="0 where both are 0; with nothing in gold and nothing retrieved, 0",
    differs=_OTHERS,
)
def f1(coverage: Coverage, k: Cutoff) -> Floats:
    p, r = precision(coverage, k), recall(coverage, k)
    trace_numbers(precision=p, recall=r)
    return divide(2 * p * r, p + r)


@_span(
    "span.full",
    title="Gold fully covered",
    formula="1 if the top k covers every gold character, else 0",
    edges="1 where gold holds no characters",
    differs="no other common tool has it",
    binary=True,
)
def full(coverage: Coverage, k: Cutoff) -> Floats:
    covered = _covered(coverage, k)
    whole: Flags = covered.gold == coverage.gold_characters
    return whole.astype(np.float64)


@_span(
    "span.redundancy",
    title="Characters retrieved again",
    formula="1 − characters retrieved, each once / characters retrieved",
    edges="0 where nothing is retrieved",
    differs="no other common tool has it",
    higher_is_better=False,
    no_gold=False,
)
def redundancy(coverage: Coverage, k: Cutoff) -> Floats:
    covered = _covered(coverage, k)
    return np.where(covered.raw == 0, 0.0, 1.0 - divide(covered.merged, covered.raw))


@measure(
    "span.precision_omega",
    family=SPAN.name,
    cutoff="none",
    title="Precision at full recall",
    formula="gold characters in the chunks that touch gold / characters of those chunks, each once",
    edges="0 where no chunk touches gold; needs the table of all chunks, and no run moves it",
    differs="as in Chroma's chunking evaluation",
    needs_chunks=True,
)
def precision_omega(coverage: Coverage, _: None) -> Floats:
    characters, gold = coverage.touching_characters
    trace_numbers(characters_of_chunks_that_touch_gold=characters, of_gold=gold)
    return divide(gold, characters)


def _covered(coverage: Coverage, k: Cutoff) -> CoveredCharacters:
    covered = coverage.within(k)
    if is_tracing():
        raw, added, gold = coverage.item_characters(k)
        # A budget ends within an item, and what stands below it was not read.
        keep = raw > 0 if isinstance(k, Budget) else coverage.rows.rank <= (k or np.inf)
        places = coverage.rows.where(keep)
        trace_rows(places, characters=raw[keep], new=added[keep], new_gold=gold[keep])
    trace_numbers(
        gold_characters=coverage.gold_characters,
        retrieved=covered.raw,
        each_once=covered.merged,
        of_gold=covered.gold,
    )
    return covered


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
def reciprocal_rank(coverage: Coverage, k: int | None, min_overlap: MinOverlap) -> Floats:
    return targets.reciprocal_rank(coverage.targets(min_overlap), k)


@_piecewise(
    "span.Success",
    aliases=("span.hit_rate", "span.hit"),
    title="A gold span found",
    formula="1 if an item of the top k holds enough of a gold span, else 0",
    edges=_LEFT_OUT,
    binary=True,
)
def success(coverage: Coverage, k: int | None, min_overlap: MinOverlap) -> Floats:
    return targets.success(coverage.targets(min_overlap), k)


@_piecewise(
    "span.AP",
    aliases=("span.map", "span.average_precision"),
    title="Average precision of gold spans",
    formula="Σ over ranks of spans newly found · ranks so far that found a new one / rank, / spans",
    edges=f"never above 1; spans are found by one item each, not by several; {_LEFT_OUT}",
)
def average_precision(coverage: Coverage, k: int | None, min_overlap: MinOverlap) -> Floats:
    return targets.average_precision(coverage.targets(min_overlap), k)


@_piecewise(
    "span.nDCG",
    title="Normalised discounted gain of gold spans",
    cites=(JARVELIN,),
    formula="Σ spans newly found / log2(rank + 1) / the same of the best order, at most 1",
    edges="best order: the retrieved items, next always the one that finds most new spans, then "
    f"each span that none finds at a rank of its own; {_LEFT_OUT}",
)
def ndcg(coverage: Coverage, k: int | None, min_overlap: MinOverlap) -> Floats:
    return targets.ndcg(coverage.targets(min_overlap), k)
