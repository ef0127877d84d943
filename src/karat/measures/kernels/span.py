"""Measures of spans: how many characters of the gold spans the retrieved items cover.

Each character counts once, even if several items or gold spans contain it.
"""

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
_OTHERS = "other tools have no cutoff; they merge the spans of all retrieved items"


@_span(
    "span.recall",
    title="Recall of characters",
    formula="gold characters covered by the top k / gold characters",
    edges="1 if gold has no characters; the list is cut at k before spans are merged",
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
    formula="gold characters covered by the top k / distinct characters in the top k",
    edges="0 if nothing is retrieved",
    differs=_OTHERS,
)
def precision(coverage: Coverage, k: Cutoff) -> Floats:
    covered = _covered(coverage, k)
    return divide(covered.gold, covered.merged)


@_span(
    "span.iou",
    title="Intersection over union of characters",
    formula="characters in both gold and the top k / characters in gold or the top k",
    edges="1 if both are empty, 0 if only one is empty",
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
    formula="2·P·R / (P + R), where P is span.precision and R is span.recall",
    edges="0 if both are 0; 0 if gold has no characters and nothing is retrieved",
    differs=_OTHERS,
)
def f1(coverage: Coverage, k: Cutoff) -> Floats:
    p, r = precision(coverage, k), recall(coverage, k)
    trace_numbers(precision=p, recall=r)
    return divide(2 * p * r, p + r)


@_span(
    "span.full",
    title="All gold characters retrieved",
    formula="1 if the top k covers every gold character, else 0",
    edges="1 if gold has no characters",
    differs="no common tool has it",
    binary=True,
)
def full(coverage: Coverage, k: Cutoff) -> Floats:
    covered = _covered(coverage, k)
    whole: Flags = covered.gold == coverage.gold_characters
    return whole.astype(np.float64)


@_span(
    "span.redundancy",
    title="Share of repeated characters",
    formula="1 − distinct characters in the top k / characters in the top k",
    edges="0 if nothing is retrieved",
    differs="no common tool has it",
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
    formula="gold characters in the chunks that overlap gold / distinct characters in these chunks",
    edges="0 if no chunk overlaps gold; requires the table of all chunks, and does not depend on "
    "the run",
    differs="Chroma's chunking evaluation agrees",
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
        # A budget can end inside an item; items below it have no characters left.
        in_top = raw > 0 if isinstance(k, Budget) else coverage.rows.rank <= (k or np.inf)
        rows = coverage.rows.where(in_top)
        trace_rows(rows, characters=raw[in_top], new=added[in_top], new_gold=gold[in_top])
    trace_numbers(
        gold_characters=coverage.gold_characters,
        retrieved=covered.raw,
        each_once=covered.merged,
        of_gold=covered.gold,
    )
    return covered


_LEFT_OUT = "a query without gold characters is left out, and counted"
_target_measure = partial(
    measure,
    family=SPAN.name,
    params=(MIN_OVERLAP,),
    differs="no common tool has it for spans",
)


@_target_measure(
    "span.RR",
    aliases=("span.recip_rank", "span.mrr"),
    title="Reciprocal rank of the first gold span",
    cites=(VOORHEES,),
    formula="1 / rank of the first item that contains min_overlap of a gold span, or 0 if there is "
    "none",
    edges=_LEFT_OUT,
)
def reciprocal_rank(coverage: Coverage, k: int | None, min_overlap: MinOverlap) -> Floats:
    return targets.reciprocal_rank(coverage.targets(min_overlap), k)


@_target_measure(
    "span.Success",
    aliases=("span.hit_rate", "span.hit"),
    title="Success, or hit rate, of gold spans",
    formula="1 if an item in the top k contains min_overlap of a gold span, else 0",
    edges=_LEFT_OUT,
    binary=True,
)
def success(coverage: Coverage, k: int | None, min_overlap: MinOverlap) -> Floats:
    return targets.success(coverage.targets(min_overlap), k)


@_target_measure(
    "span.AP",
    aliases=("span.map", "span.average_precision"),
    title="Average precision of gold spans",
    formula="(Σ over ranks of n · m / rank) / all spans, where n is the number of spans found "
    "first at this rank, and m is the number of ranks so far that found a new one",
    edges=f"at most 1; a span is found by a single item, not by several together; {_LEFT_OUT}",
)
def average_precision(coverage: Coverage, k: int | None, min_overlap: MinOverlap) -> Floats:
    return targets.average_precision(coverage.targets(min_overlap), k)


@_target_measure(
    "span.nDCG",
    title="Normalised DCG of gold spans",
    cites=(JARVELIN,),
    formula="(Σ over ranks of n / log2(rank + 1)) / the same sum for the best order, at most 1, "
    "where n is the number of spans found first at this rank",
    edges="the best order takes the retrieved item that finds most new spans first, and so on, "
    f"then adds one rank for each span that no item finds; {_LEFT_OUT}",
)
def ndcg(coverage: Coverage, k: int | None, min_overlap: MinOverlap) -> Floats:
    return targets.ndcg(coverage.targets(min_overlap), k)
