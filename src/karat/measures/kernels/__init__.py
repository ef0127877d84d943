"""The built-in measures, one module per group of related measures.

Importing this package declares all of them.
"""

from karat.measures.kernels import (
    average_precision,
    counts,
    evidence,
    interpolated,
    judged,
    latency_cost,
    ndcg,
    precision_recall,
    reciprocal_rank,
    set_measures,
    span,
    trec_gain,
    user_models,
)

__all__ = [
    "average_precision",
    "counts",
    "evidence",
    "interpolated",
    "judged",
    "latency_cost",
    "ndcg",
    "precision_recall",
    "reciprocal_rank",
    "set_measures",
    "span",
    "trec_gain",
    "user_models",
]
