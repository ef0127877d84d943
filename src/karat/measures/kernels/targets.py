"""Kernels that spans and evidence texts share: how well a list covers the targets of gold."""

from __future__ import annotations

import numpy as np

from karat.arrays import Floats
from karat.match.hits import RankedRows
from karat.match.targets import Targets
from karat.measures.array_math import discount, divide
from karat.measures.trace import trace_numbers, trace_rows


def reciprocal_rank(targets: Targets, k: int | None) -> Floats:
    """Return 1 / rank of the first item that covers a target, or 0 if there is none."""
    covering = targets.covering.within(k)
    first = covering.where(covering.ordinal == 1)
    trace_rows(first, pieces=first.grade, reciprocal=1.0 / first.rank)
    trace_numbers(first_rank_or_zero=covering.first_rank)
    return _nan_without_targets(targets, divide(1.0, covering.first_rank))


def success(targets: Targets, k: int | None) -> Floats:
    """Return 1 if an item in the top k covers a target, else 0."""
    covering = targets.covering.within(k)
    trace_rows(covering, pieces=covering.grade)
    return _nan_without_targets(targets, (covering.count > 0).astype(np.float64))


def average_precision(targets: Targets, k: int | None) -> Floats:
    """Return Σ (new targets · ranks so far with a new target / rank) / all targets."""
    new = targets.newly_covered.within(k)
    precision = new.ordinal / new.rank
    trace_rows(new, new_pieces=new.grade, precision=precision, product=new.grade * precision)
    total = new.total(new.grade * precision)
    trace_numbers(sum_of_products=total, divided_by=targets.count)
    return _nan_without_targets(targets, divide(total, targets.count))


def ndcg(targets: Targets, k: int | None) -> Floats:
    """Return DCG of new targets / DCG of the ideal order, at most 1.

    The ideal order is greedy, so that a list can exceed it.
    """
    actual = _discounted(targets.newly_covered.within(k))
    best = _discounted(targets.ideal.within(k), ideal=True)
    trace_numbers(DCG=actual, ideal_DCG=best)
    return _nan_without_targets(targets, np.minimum(divide(actual, best), 1.0))


def _discounted(rows: RankedRows, *, ideal: bool = False) -> Floats:
    discounts = discount(rows.rank)
    contribution = rows.grade / discounts
    columns = {"new_pieces": rows.grade, "discount": discounts, "contribution": contribution}
    trace_rows(rows, ideal=ideal, **columns)
    return rows.total(contribution)


def _nan_without_targets(targets: Targets, values: Floats) -> Floats:
    """Return values with NaN for the queries without targets."""
    return np.where(targets.count > 0, values, np.nan)
