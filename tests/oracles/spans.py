"""Every span measure for one query: characters marked one by one in a set.

A span or item is a plain (document, start, end); a cutoff is None, a rank, or a budget such as
"17c"; `None` is a value that is left out. No code is shared with karat.
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


def overlap(one: Span, other: Span) -> int:
    return len(characters([one]) & characters([other]))


def found_by(item: Span, pieces: list[Span], least: int | float) -> set[Span]:
    """Return the gold spans that an item contains enough of: characters, or a share of the span."""
    found = set()
    for piece in pieces:
        shared = overlap(item, piece)
        if shared and (
            shared >= least if isinstance(least, int) else shared / (piece[2] - piece[1]) >= least
        ):
            found.add(piece)
    return found


def pieces_of(gold: list[Span]) -> list[Span]:
    return sorted({span for span in gold if span[2] > span[1]})


def newly_found(listed: list[Span], pieces: list[Span], least: int | float) -> list[int]:
    """Return for each rank how many gold spans it is the first to find."""
    known: set[Span] = set()
    counts = []
    for item in listed:
        new = found_by(item, pieces, least) - known
        counts.append(len(new))
        known |= new
    return counts


def piece_rr(listed, gold, least, k):
    for rank, item in enumerate(listed[:k], 1):
        if found_by(item, pieces_of(gold), least):
            return 1 / rank
    return 0.0


def piece_success(listed, gold, least, k):
    return 1.0 if piece_rr(listed, gold, least, k) else 0.0


def piece_ap(listed, gold, least, k):
    total, ranks = 0.0, 0
    for rank, new in enumerate(newly_found(listed[:k], pieces_of(gold), least), 1):
        if new:
            ranks += 1
            total += new * (ranks / rank)
    return total / len(pieces_of(gold))


def gain(counts: list[int], k: int | None) -> float:
    total = 0.0
    for rank, count in enumerate(counts[:k], 1):
        total += count / math.log2(rank + 1)
    return total


def best_order(listed, pieces, least) -> list[int]:
    """Return what each rank adds in the greedy order, followed by the spans that were missed."""
    left, waiting, counts = set(pieces), list(listed), []
    while waiting:
        best = max(waiting, key=lambda item: len(found_by(item, pieces, least) & left))
        new = found_by(best, pieces, least) & left
        if not new:
            break
        waiting.remove(best)
        left -= new
        counts.append(len(new))
    return counts + [1] * len(left)


def piece_ndcg(listed, gold, least, k):
    pieces = pieces_of(gold)
    reached = gain(newly_found(listed, pieces, least), k)
    return min(1.0, reached / gain(best_order(listed, pieces, least), k))


PIECEWISE = {
    "span.RR": piece_rr,
    "span.Success": piece_success,
    "span.AP": piece_ap,
    "span.nDCG": piece_ndcg,
}


def piecewise(measure, listed, gold, least=1, k=None) -> float | None:
    """Return a measure of one query; None if there is nothing to find."""
    if gold is None or not pieces_of(gold):
        return None
    return PIECEWISE[measure](listed or [], gold, least, k)


def precision_omega(gold: list[Span], chunks: list[Span]) -> float:
    touching = [chunk for chunk in chunks if characters([chunk]) & characters(gold)]
    read = characters(touching)
    return len(read & characters(gold)) / len(read) if read else 0.0


def judged(gold: list[tuple[Span, int]], chunks: dict[str, Span], least, shares) -> dict[str, int]:
    """Return the grade of every chunk that contains enough of a gold span."""
    grades: dict[str, int] = {}
    for name, chunk in chunks.items():
        for span, grade in gold:
            if grade > 0 and found_by(chunk, [span], least):
                share = overlap(chunk, span) / (span[2] - span[1])
                reached = 1 + sum(share >= level for level in shares) if shares else grade
                grades[name] = max(reached, grades.get(name, 0))
    return grades


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
        recall = float(measure == "span.recall")
        return {"zero": 0.0, "one": 1.0, "recall": recall, "skip": None}[word]
    listed = list(retrieved or [])
    if conventions.get("duplicates") == "set":
        listed = list(dict.fromkeys(listed))
    return MEASURES[measure](top(listed, cutoff), gold)


def over_queries(values: list[float | None]) -> float | None:
    """Return the mean of the values that are not left out."""
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known else None
