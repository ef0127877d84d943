"""Fusion: combine the ranked lists of several runs into one run.

`candidates` aligns the runs, `normalization` makes their scores comparable, `methods` declares the
methods, and `fused_run` holds `fuse`, which makes the new run.
"""

from karat.data.fusion.fused_run import fuse, named_runs
from karat.data.fusion.methods import (
    METHODS,
    FusionSettings,
    reciprocal_rank_scores,
    weighted_sums,
)
from karat.data.fusion.normalization import NORMALIZATIONS

__all__ = [
    "METHODS",
    "NORMALIZATIONS",
    "FusionSettings",
    "fuse",
    "named_runs",
    "reciprocal_rank_scores",
    "weighted_sums",
]
