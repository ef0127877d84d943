"""The metrics of a small benchmark: how many of the expected ids are near the top.

Precision always divides by k. An id that is retrieved twice counts twice for precision and hits,
but recall is at most 1. Ids are case-sensitive, and expected ids are a set. Precision and recall
are as in Manning et al. 2008, MRR as in Voorhees 1999, nDCG as in Järvelin and Kekäläinen 2002.
"""

from __future__ import annotations

import statistics
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from karat.errors import InputError
from karat.match.hits import Hits
from karat.measures.presets import PRESETS
from karat.measures.single_query import hits_of, parse_ids, value

MEASURES = PRESETS["benchmark"].measures
CONVENTIONS = PRESETS["benchmark"].conventions


@dataclass
class IRMetrics:
    """The metrics of one query.

    Parameters
    ----------
    precision_at_3, precision_at_5 : float
        Expected ids in the top 3 or 5 / 3 or 5.
    recall_at_10 : float
        Expected ids in the top 10 / all expected ids.
    mrr : float
        1 / rank of the first expected id, or 0.0.
    ndcg_at_10 : float, optional
        nDCG of the top 10; None if no grades were given.
    hits_in_top_3, hits_in_top_5 : int, default 0
        The number of expected ids in the top 3 or 5.
    first_relevant_position : int, optional
        The rank of the first expected id; None if it was not retrieved.
    """

    precision_at_3: float
    precision_at_5: float
    recall_at_10: float
    mrr: float
    ndcg_at_10: float | None = None
    hits_in_top_3: int = 0
    hits_in_top_5: int = 0
    first_relevant_position: int | None = None


Metrics = IRMetrics | Mapping[str, Any]


class MetricsCalculator:
    """Computes the metrics of one query from the retrieved ids and the expected ids.

    In all methods, `retrieved` is a sequence of ids, best first, `expected` a collection of ids,
    and `k` a cutoff of at least 1.

    Examples
    --------
    >>> MetricsCalculator.precision_at_k(["A", "B"], ["A"], 5)
    0.2
    """

    @staticmethod
    def calculate_all(
        retrieved: Sequence[str],
        expected: Collection[str],
        grades: Mapping[str, int] | None = None,
    ) -> IRMetrics:
        """Return all metrics of one query.

        Parameters
        ----------
        retrieved : sequence of str
            The retrieved ids, best first.
        expected : collection of str
            The ids that should be retrieved.
        grades : mapping of str to int, optional
            The grades of all expected ids, and of other judged ids. Used only for nDCG; without
            grades, `ndcg_at_10` is None.

        Examples
        --------
        >>> MetricsCalculator.calculate_all(["B", "A"], ["A"], grades={"A": 2, "B": 0}).ndcg_at_10
        0.6309297535714575
        """
        hits = hits_of(retrieved, expected)
        with_repeats = hits.counting_repeats()
        return IRMetrics(
            precision_at_3=value("P", with_repeats, 3),
            precision_at_5=value("P", with_repeats, 5),
            recall_at_10=value("R", hits, 10),
            mrr=value("RR", hits),
            ndcg_at_10=None if grades is None else _ndcg(retrieved, expected, grades),
            hits_in_top_3=int(value("Hits", with_repeats, 3)),
            hits_in_top_5=int(value("Hits", with_repeats, 5)),
            first_relevant_position=_first_rank(hits),
        )

    @staticmethod
    def precision_at_k(retrieved: Sequence[str], expected: Collection[str], k: int) -> float:
        """Return the number of expected ids in the top k / k."""
        return value("P", hits_of(retrieved, expected).counting_repeats(), k)

    @staticmethod
    def recall_at_k(retrieved: Sequence[str], expected: Collection[str], k: int) -> float:
        """Return expected ids in the top k / all expected ids, or 0.0 if no ids are expected."""
        return value("R", hits_of(retrieved, expected), k)

    @staticmethod
    def mrr(retrieved: Sequence[str], expected: Collection[str]) -> float:
        """Return 1 / rank of the first expected id, or 0.0 if none was retrieved."""
        return value("RR", hits_of(retrieved, expected))

    @staticmethod
    def count_hits(
        retrieved: Sequence[str], expected: Collection[str], k: int | None = None
    ) -> int:
        """Return the number of expected ids in the top k; without k, in the whole list."""
        return int(value("Hits", hits_of(retrieved, expected).counting_repeats(), k))

    @staticmethod
    def first_relevant_position(retrieved: Sequence[str], expected: Collection[str]) -> int | None:
        """Return the rank of the first expected id, counted from 1, or None."""
        return _first_rank(hits_of(retrieved, expected))


class ReportAggregator:
    """Aggregates the metrics of many queries, over all queries or by group.

    The metrics of a query are an `IRMetrics`, or a dict with keys such as `precision_at_3` or
    `precision@3`.
    """

    @staticmethod
    def aggregate_metrics(results: Iterable[Metrics]) -> dict[str, float | None]:
        """Return the means of all metrics, and the medians of precision@3 and mrr.

        Parameters
        ----------
        results : iterable of IRMetrics or dict
            The metrics of each query. If there are none, all values are None.

        Examples
        --------
        >>> ReportAggregator.aggregate_metrics([IRMetrics(1.0, 0.6, 1.0, 0.5)])["median_mrr"]
        0.5
        """
        metrics = list(results)
        values = {
            name: _values(metrics, name)
            for name in ("precision@3", "precision@5", "recall@10", "mrr")
        }
        return {name: _mean(numbers) for name, numbers in values.items()} | {
            f"median_{name}": statistics.median(values[name]) if values[name] else None
            for name in ("precision@3", "mrr")
        }

    @staticmethod
    def group_by_category(
        detailed_results: Iterable[Mapping[str, Any]], metric_field: str
    ) -> dict[str, float | None]:
        """Return the mean of a metric for each category; None if no query has a value.

        Parameters
        ----------
        detailed_results : iterable of dict
            One dict per query, with the keys `category` and `metrics`.
        metric_field : str
            The name of the metric, such as `precision@3`.

        Examples
        --------
        >>> results = [{"category": "faq", "metrics": {"mrr": 0.5}}]
        >>> ReportAggregator.group_by_category(results, "mrr")
        {'faq': 0.5}
        """
        return {
            category: _mean(_values(metrics, metric_field))
            for category, metrics in _grouped(detailed_results, "category").items()
        }

    @staticmethod
    def group_by_difficulty(
        detailed_results: Iterable[Mapping[str, Any]],
    ) -> dict[str, dict[str, float | None]]:
        """Return count, precision@3, precision@5 and mrr for each difficulty.

        Parameters
        ----------
        detailed_results : iterable of dict
            One dict per query, with the keys `difficulty` and `metrics`.

        Examples
        --------
        >>> metrics = {"precision@3": 1.0, "precision@5": 0.6, "mrr": 0.5}
        >>> results = [{"difficulty": "easy", "metrics": metrics}]
        >>> ReportAggregator.group_by_difficulty(results)
        {'easy': {'count': 1, 'precision@3': 1.0, 'precision@5': 0.6, 'mrr': 0.5}}
        """
        return {
            difficulty: {
                "count": len(metrics),
                **{
                    name: _mean(_values(metrics, name))
                    for name in ("precision@3", "precision@5", "mrr")
                },
            }
            for difficulty, metrics in _grouped(detailed_results, "difficulty").items()
        }


def _ndcg(retrieved: Sequence[str], expected: Collection[str], grades: Mapping[str, int]) -> float:
    hits = hits_of(retrieved, grades)
    ungraded = set(parse_ids(expected, "expected")) - {str(item) for item in grades}
    if ungraded:
        raise InputError(
            f"the expected id {min(ungraded)!r} has no grade",
            field="grades",
            hint="add a grade for every expected id",
        )
    return value("nDCG", hits, 10)


def _first_rank(hits: Hits) -> int | None:
    rank = int(hits.relevant(1).first_rank[0])
    return rank or None


def _mean(values: list[float]) -> float | None:
    return statistics.mean(values) if values else None


def _values(metrics: Iterable[Metrics], name: str) -> list[float]:
    """Return the values of a metric, without queries for which it is None."""
    values = (_value(query_metrics, name) for query_metrics in metrics)
    return [float(value) for value in values if value is not None]


def _value(metrics: Metrics, name: str) -> Any:
    values = metrics if isinstance(metrics, Mapping) else vars(metrics)
    for spelling in (name, name.replace("@", "_at_"), name.replace("_at_", "@")):
        if spelling in values:
            return values[spelling]
    raise InputError(
        f"metric {name!r} not found in the results of a query",
        field=name,
        hint=f"available metrics: {', '.join(map(str, values))}",
    )


def _grouped(results: Iterable[Mapping[str, Any]], field: str) -> dict[str, list[Metrics]]:
    groups: dict[str, list[Metrics]] = {}
    for result in results:
        groups.setdefault(result[field], []).append(result["metrics"])
    return groups
