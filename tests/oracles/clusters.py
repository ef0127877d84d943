"""Cluster-robust standard errors by matrices, as the papers define them: slow and obvious.

R. Bell and D. McCaffrey, Bias Reduction in Standard Errors for Linear Regression with Multi-Stage
Samples, 2002; G. Imbens and M. Kolesár, Robust Standard Errors in Small Samples, 2016.
"""

from __future__ import annotations

import numpy as np


def error_and_degrees_of_freedom(values, clusters, weights=None):
    """Return the CR2 standard error of a (weighted) mean and its degrees of freedom.

    The mean is the coefficient of a regression of √w·y on √w with weights w; a cluster of ones has
    only one direction in which its residuals are adjusted.
    """
    values = np.asarray(values, dtype=float)
    clusters = np.asarray(clusters)
    w = np.ones(values.size) if weights is None else np.asarray(weights, dtype=float)
    n, total = values.size, w.sum()
    mean = float((w * values).sum() / total)
    maker = np.eye(n) - np.outer(np.ones(n), w) / total  # residuals = maker @ values
    residuals = w * (maker @ values)
    names = sorted(set(clusters.tolist()))
    variance, rows = 0.0, []
    for name in names:
        inside = clusters == name
        adjusted = 1 / np.sqrt(1 - w[inside].sum() / total)
        variance += float((adjusted * residuals[inside].sum()) ** 2) / total**2
        # This cluster's adjusted sum of residuals, as a linear function of the values.
        rows.append(adjusted * (w * inside) @ maker / total)
    g = np.array(rows)
    omega = _working_covariance(values, clusters, w, mean)
    k = g @ omega @ g.T
    df = np.trace(k) ** 2 / np.trace(k @ k)
    return float(np.sqrt(variance)), max(float(df), 1.0)


def _working_covariance(values, clusters, w, mean):
    """Return the covariance of equally correlated values of a cluster, by moments."""
    residuals = w * (values - mean)
    together = clusters[:, None] == clusters[None, :]
    others = together & ~np.eye(values.size, dtype=bool)
    weights = np.outer(w, w)
    if not weights[others].sum():
        return np.eye(values.size)
    variance = (residuals**2).sum() / (w**2).sum()
    covariance = np.outer(residuals, residuals)[others].sum() / weights[others].sum()
    rho = min(max(covariance / variance, 0.0), 1.0)
    return np.where(together, rho, 0.0) + (1 - rho) * np.eye(values.size)
