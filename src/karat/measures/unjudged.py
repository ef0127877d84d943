"""Judgment holes: how much of each list was judged, and what the rest could change at most."""

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
    """Return the most that each query could be, null where its value is.

    A convention may put a value above the bound (`no_gold=one`), and so may rounding by a bit.
    """
    assert measure.declaration.bound is not None
    most = measure.declaration.bound(data, measure.cutoff, **measure.params)
    return pl.Series(upper_bound_column(measure), np.maximum(values, most), nan_to_null=True)


def judged_shares(plan: Plan, readings: dict[FamilyName, FamilyInput]) -> list[pl.Series]:
    """Return Judged@k for each cutoff of a rank measure, null where there is no item to judge."""
    columns: dict[str, pl.Series] = {}
    for measure in plan.of_family(RANK.name):
        name = judged_column(measure)
        if name is None or name in columns:
            continue
        assert isinstance(measure.cutoff, int)
        reading = readings[RANK.name]
        hits = reading.data_as(Hits)
        shares = judged_share(hits, measure.cutoff)
        shares = np.where(reading.given & (hits.length > 0), shares, np.nan)
        columns[name] = pl.Series(name, shares, nan_to_null=True)
    return list(columns.values())
