"""The numbers of a small benchmark: which of the expected ids are near the top.

Precision always divides by k. An id that was retrieved twice counts twice for precision and
hits, but recall never passes 1. Ids are case-sensitive; expected ids are a set.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from karat.conventions import Conventions
from karat.match.hits import Hits
from karat.measures.combine import mean, median
from karat.measures.one import hits_of, value

MEASURES = ("P@3", "P@5", "R@10", "RR", "Hits@3", "Hits@5", "FirstRelevant")
CONVENTIONS = Conventions(duplicates="count")


@dataclass
class IRMetrics:
    """The metrics of one query."""

    precision_at_3: float
    precision_at_5: float
    recall_at_10: float
    mrr: float
    ndcg_at_10: float | None = None
    hits_in_top_3: int = 0
    hits_in_top_5: int = 0
    first_relevant_position: int | None = None


class MetricsCalculator:
    """The metrics of one query, from the ids retrieved and the ids expected.

    >>> MetricsCalculator.precision_at_k(["A", "B"], ["A"], 5)
    0.2
    """

    @staticmethod
    def calculate_all(retrieved: Sequence[str], expected: Collection[str]) -> IRMetrics:
        """Return all metrics, looking the ids up once; nDCG stays None, for want of grades."""
        hits = hits_of(retrieved, expected)
        again = hits.counting_repeats()
        return IRMetrics(
            precision_at_3=value("P", again, 3),
            precision_at_5=value("P", again, 5),
            recall_at_10=value("R", hits, 10),
            mrr=value("RR", hits),
            hits_in_top_3=int(value("Hits", again, 3)),
            hits_in_top_5=int(value("Hits", again, 5)),
            first_relevant_position=_first(hits),
        )

    @staticmethod
    def precision_at_k(retrieved: Sequence[str], expected: Collection[str], k: int) -> float:
        """Return expected ids in the top k / k."""
        return value("P", hits_of(retrieved, expected).counting_repeats(), k)

    @staticmethod
    def recall_at_k(retrieved: Sequence[str], expected: Collection[str], k: int) -> float:
        """Return expected ids found in the top k / all expected ids, 0.0 if there are none."""
        return value("R", hits_of(retrieved, expected), k)

    @staticmethod
    def mrr(retrieved: Sequence[str], expected: Collection[str]) -> float:
        """Return 1 / rank of the first expected id, 0.0 if there is none."""
        return value("RR", hits_of(retrieved, expected))

    @staticmethod
    def count_hits(retrieved: Sequence[str], expected: Collection[str], k: int) -> int:
        """Return how many of the top k are expected."""
        return int(value("Hits", hits_of(retrieved, expected).counting_repeats(), k))

    @staticmethod
    def first_relevant_position(retrieved: Sequence[str], expected: Collection[str]) -> int | None:
        """Return the rank of the first expected id, from 1, or None."""
        return _first(hits_of(retrieved, expected))


class ReportAggregator:
    """The metrics of many queries, together and in groups."""

    @staticmethod
    def aggregate_metrics(metrics: Sequence[IRMetrics]) -> dict[str, float]:
        """Return means, and medians of precision@3 and mrr; 0.0 where there is no query."""
        p3 = [m.precision_at_3 for m in metrics]
        reciprocal = [m.mrr for m in metrics]
        return {
            "precision@3": _mean(p3),
            "precision@5": _mean([m.precision_at_5 for m in metrics]),
            "recall@10": _mean([m.recall_at_10 for m in metrics]),
            "mrr": _mean(reciprocal),
            "median_precision@3": median(p3) if p3 else 0.0,
            "median_mrr": median(reciprocal) if reciprocal else 0.0,
        }

    @staticmethod
    def group_by_category(
        detailed_results: Iterable[Mapping[str, Any]], metric_field: str
    ) -> dict[str, float]:
        """Return the mean of `result["metrics"][metric_field]`, None aside, for each category."""
        groups = _grouped(detailed_results, "category")
        return {
            category: _mean(
                [
                    float(result["metrics"][metric_field])
                    for result in results
                    if result["metrics"][metric_field] is not None
                ]
            )
            for category, results in groups.items()
        }

    @staticmethod
    def group_by_difficulty(
        detailed_results: Iterable[Mapping[str, Any]],
    ) -> dict[str, dict[str, float]]:
        """Return count, precision@3, precision@5 and mrr for each difficulty."""
        groups = _grouped(detailed_results, "difficulty")
        return {
            difficulty: {
                "count": len(results),
                "precision@3": _mean([r["metrics"]["precision_at_3"] for r in results]),
                "precision@5": _mean([r["metrics"]["precision_at_5"] for r in results]),
                "mrr": _mean([r["metrics"]["mrr"] for r in results]),
            }
            for difficulty, results in groups.items()
        }


def _first(hits: Hits) -> int | None:
    rank = int(hits.relevant(1).first_rank[0])
    return rank or None


def _mean(values: list[float]) -> float:
    return mean(values) if values else 0.0


def _grouped(
    results: Iterable[Mapping[str, Any]], field: str
) -> dict[str, list[Mapping[str, Any]]]:
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for result in results:
        groups.setdefault(result[field], []).append(result)
    return groups
