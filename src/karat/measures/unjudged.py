"""Unjudged items: the judged share of each list, and upper bounds if the rest were relevant."""

from __future__ import annotations

import numpy as np
import polars as pl

from karat.arrays import Floats
from karat.match.hits import Hits
from karat.measures.families import RANK, FamilyInput, FamilyName, KernelInput
from karat.measures.kernels.judged import judged_share
from karat.measures.plan import Plan
from karat.measures.registry import Measure
from karat.measures.score_table import judged_column, upper_bound_column


def upper_bounds(measure: Measure, data: KernelInput, values: Floats) -> pl.Series:
    """Return the upper bound of each query, null where its value is null.

    A value can exceed the bound that its kernel computes, by the convention `no_gold=one` or by
    rounding. Then the value is the bound.
    """
    assert measure.declaration.bound is not None
    bounds = measure.declaration.bound(data, measure.cutoff, **measure.params)
    return pl.Series(upper_bound_column(measure), np.maximum(values, bounds), nan_to_null=True)


def judged_shares(plan: Plan, readings: dict[FamilyName, FamilyInput]) -> list[pl.Series]:
    """Return Judged@k for each cutoff of a rank measure, null where the list is empty."""
    columns: dict[str, pl.Series] = {}
    for measure in plan.of_family(RANK.name):
        name = judged_column(measure)
        if name is None or name in columns:
            continue
        assert isinstance(measure.cutoff, int)
        reading = readings[RANK.name]
        hits = reading.data_as(Hits)
        shares = judged_share(hits, measure.cutoff)
        shares = np.where(reading.has_gold & (hits.length > 0), shares, np.nan)
        columns[name] = pl.Series(name, shares, nan_to_null=True)
    return list(columns.values())
