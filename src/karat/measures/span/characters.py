"""How many characters of gold's spans the retrieved items cover, each character once."""

from __future__ import annotations

from functools import partial

import numpy as np

from karat.arrays import Flags, Floats, Ints
from karat.match.spans import Budget, Coverage, Covered
from karat.measures.arrays import divide
from karat.measures.declare import measure
from karat.measures.families import SPAN
from karat.measures.workings import is_heard, note, note_places

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
    note(characters_in_either=union)
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
    note(precision=p, recall=r)
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
    characters, gold = coverage.touched
    note(characters_of_chunks_that_touch_gold=characters, of_gold=gold)
    return divide(gold, characters)


def _covered(coverage: Coverage, k: Cutoff) -> Covered:
    covered = coverage.within(k)
    if is_heard():
        raw, added, gold = coverage.parts(k)
        # A budget ends within an item, and what stands below it was not read.
        keep = raw > 0 if isinstance(k, Budget) else coverage.places.rank <= (k or np.inf)
        places = coverage.places.where(keep)
        note_places(places, characters=raw[keep], new=added[keep], new_gold=gold[keep])
    note(
        gold_characters=coverage.gold_characters,
        retrieved=covered.raw,
        each_once=covered.merged,
        of_gold=covered.gold,
    )
    return covered
