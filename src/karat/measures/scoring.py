"""The heart: one pure function over any set of whole queries."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from karat.data.gold import Gold
from karat.data.run import Run
from karat.errors import ConventionError, MeasureError
from karat.match.hits import Flags, Floats, Hits
from karat.match.ids import Match, match_ids
from karat.match.level import documents
from karat.match.prepared import PreparedGold, prepare
from karat.measures.declare import Measure
from karat.measures.plan import Plan
from karat.measures.rank.gain import worth
from karat.measures.table import ScoreTable


def score(gold: Any, run: Any, plan: Plan) -> ScoreTable:
    """Score all queries at once; gold and run as `evaluate` takes them.

    Any partition of the queries, scored apart and concatenated, gives the same table, bit for
    bit: no kernel lets one query touch another, and the plan holds what the whole gold decides.
    """
    prepared = gold if isinstance(gold, PreparedGold) else prepare(Gold.open(gold))
    run = Run.open(run)
    if plan.level == "doc":
        run = documents(run)
    match = match_ids(prepared, run, plan.conventions)
    hits = replace(match.hits, largest_grade=plan.largest_grade)
    _refuse(prepared, match, plan)
    highest = int(prepared.ideal.grade.max(initial=0))
    if plan.largest_grade is not None and plan.largest_grade < highest:
        raise MeasureError(
            f"gold holds a grade of {highest}, above the plan's {plan.largest_grade}",
            field="largest_grade",
            hint="give the plan the largest grade of the whole gold",
        )
    left_out = ~prepared.judged
    if plan.conventions.missing == "skip":
        left_out |= ~match.present
    nothing = np.zeros(hits.n_queries, np.bool_)
    for measure in plan.measures:
        if measure.declaration.no_gold:
            nothing |= _nothing_relevant(measure, hits)
    columns = [
        pl.Series(measure.name, _values(measure, hits, plan, left_out), nan_to_null=True)
        for measure in plan.measures
    ]
    return ScoreTable(
        plan.measures,
        pl.DataFrame([prepared.query_ids.alias("query_id"), *columns]),
        {
            "queries": prepared.query_ids.len(),
            "missing": int(np.count_nonzero(prepared.judged & ~match.present)),
            "unknown": match.unknown,
            "failed": _failed(prepared, run),
            "no_judgments": int(np.count_nonzero(~prepared.judged)),
            "no_relevant": int(np.count_nonzero(prepared.judged & nothing)),
            "repeats": hits.repeats.query.size,
            "relevant": int(hits.n_relevant(1).sum()),
            "relevant_found": int(hits.relevant(1).count.sum()),
        },
    )


def _values(measure: Measure, hits: Hits, plan: Plan, left_out: Flags) -> Floats:
    declaration = measure.declaration
    if measure.needs_largest_grade and plan.largest_grade is None:
        raise MeasureError(
            f"{measure} needs the largest grade of the whole gold",
            hint="give it to the plan: Plan.of(…, largest_grade=…)",
        )
    if declaration.counts_repeats and plan.conventions.duplicates == "count":
        hits = hits.counting_repeats()
    values = declaration.kernel(hits, measure.cutoff, **measure.params)
    if declaration.no_gold and plan.conventions.no_gold in ("one", "skip"):
        value = 1.0 if plan.conventions.no_gold == "one" else np.nan
        values = np.where(_nothing_relevant(measure, hits), value, values)
    return np.where(left_out, np.nan, values)


def _failed(gold: PreparedGold, run: Run) -> int:
    """Count the gold queries that the retriever failed on."""
    if run.errors is None:
        return 0
    return run.errors.filter(pl.col("query_id").is_in(gold.query_ids.implode())).height


def _nothing_relevant(measure: Measure, hits: Hits) -> Flags:
    """Tell for which queries gold holds nothing that this measure could reward."""
    gain = measure.params.get("gain")
    if isinstance(gain, dict):
        rewarded = hits.gold.where(worth(hits.gold.grade, gain) > 0).count
    else:
        rewarded = hits.n_relevant(measure.params.get("rel", 1))
    nothing: Flags = rewarded == 0
    return nothing


def _refuse(gold: PreparedGold, match: Match, plan: Plan) -> None:
    """Raise where a convention says that the data must not be so."""
    missing = gold.judged & ~match.present
    if plan.conventions.missing == "error" and missing.any():
        query = gold.query_ids[int(missing.argmax())]
        raise ConventionError(
            f"{np.count_nonzero(missing)} queries of gold are not in the run, such as {query!r}",
            field="missing",
            hint="run them, or choose missing=zero or missing=skip",
        )
    if plan.conventions.unknown == "error" and match.unknown:
        raise ConventionError(
            f"{match.unknown} queries of the run are not in gold",
            field="unknown",
            hint="judge them, or choose unknown=ignore",
        )
