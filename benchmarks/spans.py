"""Character spans: the same retrieved and gold stretches for karat and for a plain merge loop."""

from __future__ import annotations

from typing import Any

QUERIES, DEPTH, SPANS, DOCUMENTS = 100_000, 20, 3, 5
CUTOFFS = (1, 3, 5, 10, 20)
NAMES = ("recall", "precision", "iou")
MEASURES = tuple(f"span.{name}@{k}" for k in CUTOFFS for name in NAMES)
NAME = f"{QUERIES:,} × {DEPTH} × {SPANS} spans, {len(CUTOFFS)} cutoffs"

Spans = dict[str, list[tuple[str, int, int]]]


def tables() -> tuple[Any, Any]:
    """Make the tables of gold's spans and of the run, always the same."""
    import numpy as np
    import polars as pl

    random = np.random.default_rng(20_240_229)

    def table(each: int, shortest: int, longest: int) -> Any:
        rows = QUERIES * each
        start = random.integers(0, 20_000, rows)
        return pl.DataFrame(
            {
                "query_id": np.repeat(np.arange(QUERIES), each).astype(str),
                "doc_id": random.integers(0, DOCUMENTS, rows).astype(str),
                "start": start,
                "end": start + random.integers(shortest, longest, rows),
            }
        )

    return table(SPANS, 50, 400), table(DEPTH, 200, 800)


def lists(table: Any) -> Spans:
    """Return the spans of each query as tuples, in the order of the rows."""
    found: Spans = {}
    for query, document, start, end in table.iter_rows():
        found.setdefault(query, []).append((document, start, end))
    return found


def merge_loop(gold: Spans, run: Spans) -> dict[str, float]:
    """Do it query by query, cutoff by cutoff, as one would write it down."""
    sums = dict.fromkeys(MEASURES, 0.0)
    for query, wanted in gold.items():
        merged_gold = _merged(wanted)
        size = _size(merged_gold)
        for k in CUTOFFS:
            found = _merged(run[query][:k])
            both, retrieved = _overlap(found, merged_gold), _size(found)
            sums[f"span.recall@{k}"] += both / size if size else 1.0
            sums[f"span.precision@{k}"] += both / retrieved if retrieved else 0.0
            sums[f"span.iou@{k}"] += both / (retrieved + size - both)
    return {name: total / len(gold) for name, total in sums.items()}


def _merged(spans: list[tuple[str, int, int]]) -> list[tuple[str, int, int]]:
    merged: list[tuple[str, int, int]] = []
    for document, start, end in sorted(spans):
        if merged and merged[-1][0] == document and start <= merged[-1][2]:
            if end > merged[-1][2]:
                merged[-1] = (document, merged[-1][1], end)
        else:
            merged.append((document, start, end))
    return merged


def _size(spans: list[tuple[str, int, int]]) -> int:
    return sum(end - start for _, start, end in spans)


def _overlap(one: list[tuple[str, int, int]], other: list[tuple[str, int, int]]) -> int:
    both, at, beside = 0, 0, 0
    while at < len(one) and beside < len(other):
        mine, theirs = one[at], other[beside]
        if mine[0] == theirs[0]:
            both += max(0, min(mine[2], theirs[2]) - max(mine[1], theirs[1]))
        if (mine[0], mine[2]) < (theirs[0], theirs[2]):
            at += 1
        else:
            beside += 1
    return both
