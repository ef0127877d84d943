"""What every span measure means, for one query: characters marked one by one in a set.

A span or item is a plain (document, start, end); a cutoff is None, a rank, or a budget such as
"17c"; `None` stands for what is left out. No code is shared with karat.
"""

from __future__ import annotations

import math

Span = tuple[str, int, int]
Cutoff = int | str | None


def characters(spans: list[Span]) -> set[tuple[str, int]]:
    """Mark every character, which is in the set once however often it is marked."""
    marked = set()
    for document, start, end in spans:
        for position in range(start, end):
            marked.add((document, position))
    return marked


def raw_characters(spans: list[Span]) -> int:
    return sum(end - start for _, start, end in spans)


def top(listed: list[Span], cutoff: Cutoff) -> list[Span]:
    """Cut the list: after so many items, or where so many characters have been read."""
    if not isinstance(cutoff, str):
        return listed[:cutoff]
    left = int(cutoff.removesuffix("c"))
    read = []
    for document, start, end in listed:
        stop = start
        while stop < end and left > 0:
            stop += 1
            left -= 1
        read.append((document, start, stop))
    return read


def recall(found: list[Span], gold: list[Span]) -> float:
    wanted = characters(gold)
    return len(wanted & characters(found)) / len(wanted) if wanted else 1.0


def precision(found: list[Span], gold: list[Span]) -> float:
    retrieved = characters(found)
    return len(retrieved & characters(gold)) / len(retrieved) if retrieved else 0.0


def iou(found: list[Span], gold: list[Span]) -> float:
    either = characters(found) | characters(gold)
    return len(characters(found) & characters(gold)) / len(either) if either else 1.0


def f1(found: list[Span], gold: list[Span]) -> float:
    p, r = precision(found, gold), recall(found, gold)
    return 2 * p * r / (p + r) if p + r else 0.0


def full(found: list[Span], gold: list[Span]) -> float:
    return 1.0 if characters(gold) <= characters(found) else 0.0


def redundancy(found: list[Span], gold: list[Span]) -> float:
    raw = raw_characters(found)
    return 1 - len(characters(found)) / raw if raw else 0.0


MEASURES = {
    "span.recall": recall,
    "span.precision": precision,
    "span.iou": iou,
    "span.f1": f1,
    "span.full": full,
    "span.redundancy": redundancy,
}
NO_GOLD_DOES_NOT_APPLY = {"span.redundancy"}


def value(
    measure: str,
    retrieved: list[Span] | None,
    gold: list[Span] | None,
    cutoff: Cutoff = None,
    conventions: dict[str, str] | None = None,
) -> float | None:
    """Return a measure of one query; gold or the run may not have it (None)."""
    conventions = conventions or {}
    if gold is None or (retrieved is None and conventions.get("missing") == "skip"):
        return None
    word = conventions.get("no_gold", "family")
    applies = not characters(gold) and measure not in NO_GOLD_DOES_NOT_APPLY
    if applies and word != "family":
        return {"zero": 0.0, "one": 1.0, "skip": None}[word]
    return MEASURES[measure](top(retrieved or [], cutoff), gold)


def over_queries(values: list[float | None]) -> float | None:
    """Take the mean of what is not left out."""
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known else None
