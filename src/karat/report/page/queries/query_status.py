"""The outcome of each query in a run: its status, and how much gold was found."""

from __future__ import annotations

import numpy as np
import polars as pl

from karat.evaluation.loaded_run import LoadedRun
from karat.match.align import answered_queries
from karat.report.page.model import Outcomes
from karat.report.page.queries.gold_kinds import GoldFound

ANSWERED, MISSING, FAILED, SCORES_ONLY = range(4)


def no_gold_counts(n_queries: int) -> GoldFound:
    """Return zero counts, for scores without a measure that reads gold."""
    none = np.zeros(n_queries, np.int64)
    return GoldFound(none, none, none)


def query_outcomes(opened: LoadedRun, counts: GoldFound) -> Outcomes:
    """Return the outcome of each query in a run."""
    query_ids, run = opened.query_ids, opened.run
    present, _ = answered_queries(query_ids, run)
    status = np.where(present, ANSWERED, MISSING)
    if run.errors is not None:
        status[query_ids.is_in(run.errors["query_id"].implode()).to_numpy()] = FAILED
    return Outcomes(
        pl.Series("status", status, pl.UInt8),
        pl.Series("found", counts.found, pl.Int32),
        pl.Series("first", counts.first, pl.Int32),
    )


def scores_only_outcomes(n_queries: int) -> Outcomes:
    """Return the outcomes of a run if only its scores are available."""
    none = pl.Series(np.zeros(n_queries, np.int32))
    return Outcomes(pl.Series(np.full(n_queries, SCORES_ONLY, np.uint8)), none, none)
