"""Spans: the same retrieved and gold spans for karat and for a plain loop in Python."""

from __future__ import annotations

from typing import Any

QUERIES, DEPTH, SPANS, DOCUMENTS = 100_000, 20, 3, 5
CUTOFFS = (1, 3, 5, 10, 20)
NAMES = ("recall", "precision", "iou")
MEASURES = tuple(f"span.{name}@{k}" for k in CUTOFFS for name in NAMES)
NAME = f"{QUERIES:,} × {DEPTH} × {SPANS} spans, {len(CUTOFFS)} cutoffs"

Spans = dict[str, list[tuple[str, int, int]]]


def tables() -> tuple[Any, Any]:
    """Return the tables of gold spans and of the run, generated with a seed."""
    import numpy as np
    import polars as pl

    random = np.random.default_rng(20_240_229)

    def table(per_query: int, shortest: int, longest: int) -> Any:
        rows = QUERIES * per_query
        start = random.integers(0, 20_000, rows)
        return pl.DataFrame(
            {
                "query_id": np.repeat(np.arange(QUERIES), per_query).astype(str),
                "doc_id": random.integers(0, DOCUMENTS, rows).astype(str),
                "start": start,
                "end": start + random.integers(shortest, longest, rows),
            }
        )

    return table(SPANS, 50, 400), table(DEPTH, 200, 800)


def lists(table: Any) -> Spans:
    """Return the spans of each query as tuples, in the order of the rows."""
    spans: Spans = {}
    for query, document, start, end in table.iter_rows():
        spans.setdefault(query, []).append((document, start, end))
    return spans


def plain_loop(gold: Spans, run: Spans) -> dict[str, float]:
    """Compute the measures query by query and cutoff by cutoff, in the simplest way."""
    sums = dict.fromkeys(MEASURES, 0.0)
    for query, gold_spans in gold.items():
        merged_gold = _merged(gold_spans)
        relevant = _size(merged_gold)
        for k in CUTOFFS:
            merged_run = _merged(run[query][:k])
            both, retrieved = _overlap(merged_run, merged_gold), _size(merged_run)
            sums[f"span.recall@{k}"] += both / relevant if relevant else 1.0
            sums[f"span.precision@{k}"] += both / retrieved if retrieved else 0.0
            sums[f"span.iou@{k}"] += both / (retrieved + relevant - both)
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
    total, i, j = 0, 0, 0
    while i < len(one) and j < len(other):
        (document, start, end), (other_document, other_start, other_end) = one[i], other[j]
        if document == other_document:
            total += max(0, min(end, other_end) - max(start, other_start))
        if (document, end) < (other_document, other_end):
            i += 1
        else:
            j += 1
    return total
