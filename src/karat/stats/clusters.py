"""Clusters: queries that are not independent of each other, such as all queries of one user.

The standard error of a mean over clusters is CR2 (R. Bell and D. McCaffrey, 2002), and the degrees
of freedom are those of G. Imbens and M. Kolesár, Robust Standard Errors in Small Samples, 2016. For
clusters of equal size that is the usual t interval of the means of the clusters.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import polars as pl

from karat.arrays import Floats
from karat.checks import did_you_mean
from karat.errors import InputError
from karat.stats.samples import Sample

FEW_CLUSTERS = 20
"""With fewer clusters, intervals may be too narrow if the clusters have different sizes."""


@dataclass(frozen=True)
class ClusterCounts:
    """How many clusters the queries form."""

    field: str
    clusters: int
    queries: int
    alone: int
    """The number of queries without a value of the field; each is a cluster of its own."""

    @property
    def few(self) -> bool:
        """Whether there are too few clusters for reliable intervals."""
        return self.clusters < FEW_CLUSTERS


def cluster_labels(queries: pl.DataFrame, field: str) -> pl.Series:
    """Return one label per query; queries with the same label are a cluster.

    A query without a value of the field is a cluster of its own.
    """
    fields = [name for name in queries.columns if name not in ("query_id", "text")]
    if field not in fields:
        available = f"available fields: {', '.join(fields)}" if fields else "queries have no fields"
        raise InputError(
            f"queries have no field {field!r}",
            field="cluster",
            hint=did_you_mean(field, fields) or available,
        )
    if queries[field].dtype.is_nested() or queries[field].dtype == pl.Object:
        raise InputError(
            f"queries cannot be clustered by {field!r}: its values are lists or objects",
            field="cluster",
            hint="use a field with one string, number or bool per query",
        )
    if queries.height and queries[field].null_count() == queries.height:
        raise InputError(
            f"no query has a value of {field!r}",
            field="cluster",
            hint="use a field that says which queries belong together",
        )
    # The prefixes keep a value apart from the id of a query that has none.
    labels = queries.select(
        pl.coalesce("=" + pl.col(field).cast(pl.String), "?" + pl.col("query_id"))
    )
    return labels.to_series().alias("cluster")


def count_clusters(labels: pl.Series, field: str) -> ClusterCounts:
    """Return how many clusters there are."""
    alone = int(labels.str.starts_with("?").sum())
    return ClusterCounts(field, labels.n_unique(), labels.len(), alone)


@dataclass(frozen=True)
class ClusteredError:
    """The cluster-robust standard error of Σ x / Σ w, and its degrees of freedom."""

    error: float
    df: float

    def reach(self, confidence: float) -> float:
        """Return half the width of Student's interval."""
        from scipy.special import stdtrit

        return float(stdtrit(self.df, (1 + confidence) / 2)) * self.error

    def p(self, value: float) -> float:
        """Return the two-sided p-value of a mean against 0."""
        from scipy.special import stdtr

        return float(2 * stdtr(self.df, -abs(value) / self.error))


def clustered_error(sample: Sample) -> ClusteredError | None:
    """Return the cluster-robust standard error; None if one cluster has all the weight."""
    x, w = sample.totals
    total = float(w.sum())
    share = w / total
    if share.max(initial=0.0) > 1 - 1e-9:
        return None
    residual = x - sample.ratio * w
    variance = math.fsum((residual * residual / (1 - share)).tolist()) / total**2
    return ClusteredError(math.sqrt(variance), _degrees_of_freedom(sample, share))


def _degrees_of_freedom(sample: Sample, share: Floats) -> float:
    """Return the degrees of freedom that match the first two moments of the variance estimate.

    The model is that queries of a cluster are equally correlated; the correlation is estimated. The
    estimate is a quadratic form, and the moments of K = C^½ M C^½ follow from M = diag(v) + U W Uᵀ.
    """
    one_by_one = sample.per_unit(sample.w * sample.w)
    together = sample.totals[1] ** 2
    rho = _correlation(sample, one_by_one, together)
    v = (1 - rho) * one_by_one + rho * together
    c = 1 / (1 - share)
    u = np.column_stack([share, v])
    weights = np.array([[float(v.sum()), -1.0], [-1.0, 0.0]])
    inner = u.T @ (c[:, None] * u)
    trace = float((c * v).sum()) + float(np.trace(weights @ inner))
    cross = u.T @ ((c * c * v)[:, None] * u)
    square = float((c * c * v * v).sum()) + 2 * float(np.trace(weights @ cross))
    square += float(np.trace(weights @ inner @ weights @ inner))
    return max(trace * trace / square, 1.0)


def _correlation(sample: Sample, one_by_one: Floats, together: Floats) -> float:
    """Return the correlation of two queries of a cluster, between 0 and 1."""
    residuals = sample.x - sample.ratio * sample.w
    squares = float((residuals * residuals).sum())
    products = float((sample.per_unit(residuals) ** 2).sum()) - squares
    pairs = float((together - one_by_one).sum())
    if pairs <= 0 or squares <= 0:
        return 0.0
    variance = squares / float((sample.w * sample.w).sum())
    return min(max(products / pairs / variance, 0.0), 1.0)
