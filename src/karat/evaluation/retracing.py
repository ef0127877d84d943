"""Values of queries calculated again, step by step, from the run that they came from."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

import polars as pl

from karat.data.run import Run
from karat.errors import InputError
from karat.evaluation.calculating import Key, calculations
from karat.evaluation.scores import Scores
from karat.match.prepared import PreparedGold
from karat.measures import Measure
from karat.report.calculation import Calculation

_COMPARED = 1 << 24  # pairs of characters: 4,000 of each text take some 30 ms


def retraced(
    scores: Scores, run: Run, query_ids: Collection[str], measures: Collection[Measure]
) -> Iterator[tuple[Key, Calculation]]:
    """Calculate some values of scores, whose run was opened again; or say that it has changed."""
    assert scores.origin is not None, "who opened the run knows where it comes from"
    session = scores.origin.session
    gold = PreparedGold(session.gold.only(*query_ids))
    plan = replace(session.plan, measures=tuple(measures))
    own = scores.table.frame.filter(pl.col("query_id").is_in(gold.query_ids.implode()))
    values = {
        measure: dict(own.select("query_id", measure.name).iter_rows()) for measure in measures
    }
    for (query, measure), calculation in calculations(gold, run, plan, exactly=_COMPARED):
        if calculation.value != values[measure][query]:
            raise InputError(
                f"the run {scores.name!r} has changed since it was scored",
                field="runs",
                hint="score it again, and leave the file alone until all is written",
            )
        yield (query, measure), calculation
