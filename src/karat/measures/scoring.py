"""The heart: one pure function over any set of whole queries."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any

import numpy as np
import polars as pl

from karat.arrays import Flags, Floats, Ints
from karat.data.gold import Gold
from karat.data.run import Run
from karat.errors import ConventionError, MeasureError, counted
from karat.match.align import answered_queries, failed_queries
from karat.match.evidence import EvidenceMatches
from karat.match.gold_index import PreparedGold, prepare
from karat.match.hits import Hits
from karat.measures.custom import checked_values
from karat.measures.families import (
    FAILED,
    FAMILIES,
    MISSING,
    REASONS,
    UNKNOWN,
    FamilyInput,
    FamilyName,
    KernelInput,
    read_inputs,
)
from karat.measures.plan import Plan
from karat.measures.registry import Measure
from karat.measures.score_table import ScoreTable
from karat.measures.trace import Trace, tracing
from karat.measures.unjudged import judged_shares, upper_bounds

COUNTS = ("queries", "in_common", *REASONS, "relevant", "relevant_found")
"""Everything that is counted for a score table."""


def score(gold: Any, run: Any, plan: Plan) -> ScoreTable:
    """Score all queries at once; gold and run as `evaluate` takes them.

    Any partition of the queries, scored apart and concatenated, gives the same table, bit for
    bit: no kernel lets one query touch another, and the plan holds what the whole gold decides.
    """
    prepared = gold if isinstance(gold, PreparedGold) else prepare(Gold.open(gold))
    opened = Run.open(run)
    return score_inputs(prepared, opened, plan, read_inputs(prepared, opened, plan))


def score_inputs(
    prepared: PreparedGold,
    run: Run,
    plan: Plan,
    readings: dict[FamilyName, FamilyInput],
    traces: Mapping[Measure, Trace] | None = None,
) -> ScoreTable:
    """Score what was brought together; `traces` collect what the kernel of each measure does."""
    present, unknown = _asked(prepared, run, readings)
    _refuse(prepared, _known(readings) & ~present, unknown, plan)
    left_out = ~present if plan.conventions.missing == "skip" else np.zeros_like(present)
    columns, weights, holes = [], [], []
    for measure in plan.measures:
        reading, declaration = readings[measure.declaration.family], measure.declaration
        data = _data(measure, reading, plan)
        with nullcontext() if traces is None else tracing(traces[measure]):
            values = _values(measure, data, reading, plan, prepared.query_ids)
        values = np.where(left_out, np.nan, values)
        columns.append(pl.Series(measure.name, values, nan_to_null=True))
        if declaration.weight is not None:
            weights.append(pl.Series(measure.name, declaration.weight(data)))
        if declaration.bound is not None:
            holes.append(upper_bounds(measure, data, values))
    holes += judged_shares(plan, readings)
    return ScoreTable(
        plan.measures,
        pl.DataFrame([prepared.query_ids.alias("query_id"), *columns]),
        {name: int(each.sum()) for name, each in tallies(prepared, run, plan, readings).items()}
        | {UNKNOWN.key: unknown},
        pl.DataFrame(weights),
        pl.DataFrame(holes),
    )


def tallies(
    prepared: PreparedGold, run: Run, plan: Plan, readings: dict[FamilyName, FamilyInput]
) -> dict[str, Ints | Flags]:
    """Count for each query what a person should know of it; the sums stand beside a table."""
    present, _ = _asked(prepared, run, readings)
    none = np.zeros(present.size, np.int64)
    return (
        dict.fromkeys(COUNTS, none)
        | {
            "queries": np.ones_like(present),
            "in_common": _known(readings) & present,
            MISSING.key: _scored(readings, present) & ~present,
            FAILED.key: failed_queries(prepared.query_ids, run),
        }
        | _lacking(plan, readings)
        | {name: each for reading in readings.values() for name, each in reading.counts.items()}
    )


def _asked(
    prepared: PreparedGold, run: Run, readings: dict[FamilyName, FamilyInput]
) -> tuple[Flags, int]:
    """Tell which gold queries the run was asked, and how many others."""
    told = (reading.asked for reading in readings.values() if reading.asked is not None)
    return next(told, None) or answered_queries(prepared.query_ids, run)


def _known(readings: dict[FamilyName, FamilyInput]) -> Flags:
    """Tell which queries gold says anything of."""
    known: Flags = np.logical_or.reduce([reading.given for reading in readings.values()])
    return known


def _scored(readings: dict[FamilyName, FamilyInput], present: Flags) -> Flags:
    """Tell which queries are scored by what gold holds; what was not run took no time."""
    given = [reading.given for family, reading in readings.items() if FAMILIES[family].reads_gold]
    scored: Flags = np.logical_or.reduce([np.zeros_like(present), *given])
    return scored


def _lacking(plan: Plan, readings: dict[FamilyName, FamilyInput]) -> dict[str, Ints | Flags]:
    """Return by family which queries have no gold, and which have nothing in it to find.

    There is nothing to find if any measure that `no_gold` applies to finds nothing to reward.
    """
    counts: dict[str, Ints | Flags] = {}
    for name, reading in readings.items():
        family = FAMILIES[name]
        if family.reads_gold:
            counts[family.absent.key] = ~reading.given
        flags = [
            reading.nothing(measure)
            for measure in plan.of_family(name)
            if measure.declaration.no_gold
        ]
        if flags and family.nothing is not None:
            counts[family.nothing.key] = reading.given & np.logical_or.reduce(flags)
    return counts


def _data(measure: Measure, reading: FamilyInput, plan: Plan) -> KernelInput:
    """Return what the kernel reads, as the convention on duplicates has it."""
    data = reading.data
    if measure.declaration.counts_repeats and plan.conventions.duplicates == "count":
        assert isinstance(data, Hits | EvidenceMatches), "only such a kernel counts repeats"
        return data.counting_repeats()
    return data


def _values(
    measure: Measure, data: KernelInput, reading: FamilyInput, plan: Plan, query_ids: pl.Series
) -> Floats:
    """Return the value of each query, NaN where gold says nothing of it."""
    declaration = measure.declaration
    if measure.needs_largest_grade and plan.largest_grade is None:
        raise MeasureError(
            f"{measure} needs the largest grade of the whole gold",
            hint="give it to the plan: Plan.of(…, largest_grade=…)",
        )
    decided = declaration.no_gold and plan.conventions.no_gold != "family"
    if declaration.function is not None:
        assert isinstance(data, Hits), "measures of users are rank measures"
        counts = reading.given & ~reading.nothing(measure) if decided else reading.given
        values = checked_values(measure, data, query_ids, counts)
    else:
        values = declaration.kernel(data, measure.cutoff, **measure.params)
    if decided:
        by_word = {
            "zero": 0.0,
            "one": 1.0,
            "recall": float(declaration.recall),
            "skip": np.nan,
        }
        value = by_word[plan.conventions.no_gold]
        values = np.where(reading.nothing(measure), value, values)
    return np.where(reading.given, values, np.nan)


def _refuse(gold: PreparedGold, missing: Flags, unknown: int, plan: Plan) -> None:
    """Raise where a convention says that the data must not be so."""
    if plan.conventions.missing == "error" and missing.any():
        query = gold.query_ids[int(missing.argmax())]
        raise ConventionError(
            f"{counted(int(np.count_nonzero(missing)), 'query')} of gold not in the run, "
            f"such as {query!r}",
            field="missing",
            hint="run them, or choose missing=zero or missing=skip",
        )
    if plan.conventions.unknown == "error" and unknown:
        raise ConventionError(
            f"{counted(unknown, 'query')} of the run not in gold",
            field="unknown",
            hint="judge them, or choose unknown=ignore",
        )
