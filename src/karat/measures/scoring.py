"""The heart: one pure function over any set of whole queries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from karat.data.gold import Gold
from karat.data.run import Run
from karat.errors import ConventionError, MeasureError
from karat.match.hits import Flags, Floats, Hits, Ints
from karat.match.ids import match_ids
from karat.match.level import documents
from karat.match.numbers import asked
from karat.match.prepared import PreparedGold, prepare
from karat.match.spans import match_spans
from karat.measures.declare import Measure
from karat.measures.plan import Plan
from karat.measures.rank.gain import worth
from karat.measures.table import ScoreTable


@dataclass(frozen=True, eq=False)
class _Reading:
    """What the kernels of one family read, and which queries gold has something of it for."""

    data: Any
    given: Flags
    nothing: Callable[[Measure], Flags]
    """For which queries gold holds nothing that a measure could reward."""


def score(gold: Any, run: Any, plan: Plan) -> ScoreTable:
    """Score all queries at once; gold and run as `evaluate` takes them.

    Any partition of the queries, scored apart and concatenated, gives the same table, bit for
    bit: no kernel lets one query touch another, and the plan holds what the whole gold decides.
    """
    prepared = gold if isinstance(gold, PreparedGold) else prepare(Gold.open(gold))
    run = Run.open(run)
    readings: dict[str, _Reading] = {}
    hits: Hits | None = None
    if "rank" in plan.families:
        match = match_ids(
            prepared, documents(run) if plan.level == "doc" else run, plan.conventions
        )
        present, unknown = match.present, match.unknown
        hits = replace(match.hits, largest_grade=plan.largest_grade)
        readings["rank"] = _Reading(hits, prepared.judged, partial(_nothing_relevant, hits=hits))
        _refuse_a_larger_grade(prepared, plan)
    else:
        present, unknown = asked(prepared.query_ids, run)
    if "span" in plan.families:
        needed = any(measure.declaration.needs_chunks for measure in plan.measures)
        coverage = match_spans(prepared, run, plan.chunks if needed else None)
        empty: Flags = coverage.gold_characters == 0
        readings["span"] = _Reading(coverage, coverage.given, lambda _: empty)
    known = np.logical_or.reduce([reading.given for reading in readings.values()])
    _refuse(prepared, known & ~present, unknown, plan)
    left_out = ~present if plan.conventions.missing == "skip" else np.zeros_like(present)
    nothing = {family: np.zeros_like(present) for family in readings}
    for measure in plan.measures:
        if measure.declaration.no_gold:
            family = measure.declaration.family
            nothing[family] |= readings[family].given & readings[family].nothing(measure)
    columns, weights = [], []
    for measure in plan.measures:
        values, weight = _values(measure, readings, plan, left_out)
        columns.append(pl.Series(measure.name, values, nan_to_null=True))
        weights += [] if weight is None else [pl.Series(measure.name, weight)]
    return ScoreTable(
        plan.measures,
        pl.DataFrame([prepared.query_ids.alias("query_id"), *columns]),
        {
            "queries": prepared.query_ids.len(),
            "in_common": int(np.count_nonzero(known & present)),
            "missing": int(np.count_nonzero(known & ~present)),
            "unknown": unknown,
            "failed": _failed(prepared, run),
            "no_judgments": _absent(readings, "rank"),
            "no_spans": _absent(readings, "span"),
            "no_relevant": int(np.count_nonzero(nothing.get("rank", 0))),
            "no_characters": int(np.count_nonzero(nothing.get("span", 0))),
            "repeats": 0 if hits is None else hits.repeats.query.size,
            "relevant": 0 if hits is None else int(hits.n_relevant(1).sum()),
            "relevant_found": 0 if hits is None else int(hits.relevant(1).count.sum()),
        },
        pl.DataFrame(weights),
    )


def _absent(readings: dict[str, _Reading], family: str) -> int:
    """Count the queries that gold has nothing of a family for, where that was asked."""
    return int(np.count_nonzero(~readings[family].given)) if family in readings else 0


def _refuse_a_larger_grade(gold: PreparedGold, plan: Plan) -> None:
    highest = int(gold.ideal.grade.max(initial=0))
    if plan.largest_grade is not None and plan.largest_grade < highest:
        raise MeasureError(
            f"gold holds a grade of {highest}, above the plan's {plan.largest_grade}",
            field="largest_grade",
            hint="give the plan the largest grade of the whole gold",
        )


def _values(
    measure: Measure, readings: dict[str, _Reading], plan: Plan, left_out: Flags
) -> tuple[Floats, Ints | None]:
    """Return the value of each query, and its denominator where one is to be summed."""
    declaration = measure.declaration
    reading = readings[declaration.family]
    data = reading.data
    if measure.needs_largest_grade and plan.largest_grade is None:
        raise MeasureError(
            f"{measure} needs the largest grade of the whole gold",
            hint="give it to the plan: Plan.of(…, largest_grade=…)",
        )
    if declaration.counts_repeats and plan.conventions.duplicates == "count":
        data = data.counting_repeats()
    values = declaration.kernel(data, measure.cutoff, **measure.params)
    weight = None if declaration.weight is None else declaration.weight(data)
    if declaration.no_gold and plan.conventions.no_gold != "family":
        value = {"zero": 0.0, "one": 1.0, "skip": np.nan}[plan.conventions.no_gold]
        values = np.where(reading.nothing(measure), value, values)
    return np.where(left_out | ~reading.given, np.nan, values), weight


def _failed(gold: PreparedGold, run: Run) -> int:
    """Count the gold queries that the retriever failed on."""
    if run.errors is None:
        return 0
    return run.errors.filter(pl.col("query_id").is_in(gold.query_ids.implode())).height


def _nothing_relevant(measure: Measure, *, hits: Hits) -> Flags:
    """Tell for which queries gold holds nothing that this measure could reward."""
    gain = measure.params.get("gain")
    if isinstance(gain, dict):
        rewarded = hits.gold.where(worth(hits.gold.grade, gain) > 0).count
    else:
        rewarded = hits.n_relevant(measure.params.get("rel", 1))
    nothing: Flags = rewarded == 0
    return nothing


def _refuse(gold: PreparedGold, missing: Flags, unknown: int, plan: Plan) -> None:
    """Raise where a convention says that the data must not be so."""
    if plan.conventions.missing == "error" and missing.any():
        query = gold.query_ids[int(missing.argmax())]
        raise ConventionError(
            f"{np.count_nonzero(missing)} queries of gold are not in the run, such as {query!r}",
            field="missing",
            hint="run them, or choose missing=zero or missing=skip",
        )
    if plan.conventions.unknown == "error" and unknown:
        raise ConventionError(
            f"{unknown} queries of the run are not in gold",
            field="unknown",
            hint="judge them, or choose unknown=ignore",
        )
