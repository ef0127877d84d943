"""Score a run: compute all measures of a plan for all queries at once."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from karat.arrays import Flags, Floats, Ints
from karat.data.gold import Gold
from karat.data.run import Run
from karat.errors import ConventionError, MeasureError, counted, for_example
from karat.match.align import answered_queries, failed_queries, returned_queries
from karat.match.evidence import EvidenceMatches
from karat.match.gold_index import PreparedGold, prepare
from karat.match.hits import Hits
from karat.measures.custom import checked_values
from karat.measures.families import (
    FAILED,
    FAMILIES,
    MISSING,
    REASONS,
    UNANSWERABLE,
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

UNANSWERABLE_IN_RUN = "unanswerable_in_run"
UNANSWERABLE_RETURNED = "unanswerable_returned"
COUNTS = (
    "queries",
    "in_common",
    *REASONS,
    UNANSWERABLE_IN_RUN,
    UNANSWERABLE_RETURNED,
    "relevant",
    "relevant_found",
)
"""The keys of the counts of a score table."""


def score(gold: Any, run: Any, plan: Plan) -> ScoreTable:
    """Compute the measures of a plan for every query of gold.

    Queries do not influence each other, and facts about the whole gold are part of the plan.
    Therefore, scoring parts of the queries and concatenating the tables by `ScoreTable.concat`
    gives the same values, bit for bit.

    Parameters
    ----------
    gold : path, table, records, dict or Gold
        What should be found, as `karat.evaluate` accepts it.
    run : path, table, records, dict or Run
        What was retrieved, as `karat.evaluate` accepts it.
    plan : Plan
        The measures, the conventions, and facts about the whole gold.

    Returns
    -------
    ScoreTable
        One row per query of gold and one column per measure.

    Raises
    ------
    InputError
        If gold or run cannot be read, or lacks what a measure needs.
    ConventionError
        If a convention is "error" and the data violates it.

    Examples
    --------
    >>> from karat import Plan, score
    >>> table = score({"q1": {"a": 1, "b": 2}}, {"q1": ["b", "x", "a"]}, Plan.of("RR P@2"))
    >>> table.frame.rows(named=True)
    [{'query_id': 'q1', 'RR': 1.0, 'P@2': 0.5}]
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
    """Score matched inputs; `traces` collect the intermediate arrays of each measure's kernel."""
    present, unknown = _presence(prepared, run, readings)
    check_conventions(unmatched_queries(prepared, run, readings), plan)
    left_out = ~present if plan.conventions.missing == "skip" else np.zeros_like(present)
    columns, weights, holes = [], [], []
    for measure in plan.measures:
        reading, declaration = readings[measure.declaration.family], measure.declaration
        data = _kernel_input(measure, reading, plan)
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
        {
            key: int(counts.sum())
            for key, counts in counts_by_query(prepared, run, plan, readings).items()
        }
        | {UNKNOWN.key: unknown},
        pl.DataFrame(weights),
        pl.DataFrame(holes),
    )


def counts_by_query(
    prepared: PreparedGold, run: Run, plan: Plan, readings: dict[FamilyName, FamilyInput]
) -> dict[str, Ints | Flags]:
    """Return the counts of each query; their sums are the counts of the score table."""
    present, _ = _presence(prepared, run, readings)
    zeros = np.zeros(present.size, np.int64)
    return (
        dict.fromkeys(COUNTS, zeros)
        | {
            "queries": np.ones_like(present),
            "in_common": _has_any_gold(readings) & present,
            MISSING.key: _is_scored_by_gold(readings, present) & ~present,
            FAILED.key: failed_queries(prepared.query_ids, run) & ~prepared.unanswerable,
        }
        | _unanswerable_counts(prepared, run, present)
        | _gold_counts(prepared, plan, readings)
        | {key: counts for reading in readings.values() for key, counts in reading.counts.items()}
    )


def _unanswerable_counts(prepared: PreparedGold, run: Run, present: Flags) -> dict[str, Flags]:
    """Return which queries have no answer, which of them were run, and which returned items."""
    if not prepared.unanswerable.any():
        return {}
    returned = returned_queries(prepared.query_ids, run)
    return {
        UNANSWERABLE.key: prepared.unanswerable,
        UNANSWERABLE_IN_RUN: prepared.unanswerable & present,
        UNANSWERABLE_RETURNED: prepared.unanswerable & returned,
    }


def _presence(
    prepared: PreparedGold, run: Run, readings: dict[FamilyName, FamilyInput]
) -> tuple[Flags, int]:
    """Return which gold queries are in the run, and how many queries of the run are not in gold."""
    for reading in readings.values():
        if reading.presence is not None:
            return reading.presence
    return answered_queries(prepared.query_ids, run)


def _has_any_gold(readings: dict[FamilyName, FamilyInput]) -> Flags:
    has_gold: Flags = np.logical_or.reduce([reading.has_gold for reading in readings.values()])
    return has_gold


def _is_scored_by_gold(readings: dict[FamilyName, FamilyInput], present: Flags) -> Flags:
    # A query that was not run has no latency, cost or tokens, so those families do not score it.
    has_gold = [
        reading.has_gold for family, reading in readings.items() if FAMILIES[family].reads_gold
    ]
    is_scored: Flags = np.logical_or.reduce([np.zeros_like(present), *has_gold])
    return is_scored


def _gold_counts(
    prepared: PreparedGold, plan: Plan, readings: dict[FamilyName, FamilyInput]
) -> dict[str, Ints | Flags]:
    """Return for each family which queries have no gold, and which have nothing to find in it.

    A query has nothing to find if that is true for any measure that `no_gold` applies to.
    """
    counts: dict[str, Ints | Flags] = {}
    for name, reading in readings.items():
        family = FAMILIES[name]
        if family.reads_gold:
            counts[family.absent.key] = ~reading.has_gold & ~prepared.unanswerable
        flags = [
            reading.nothing_to_find(measure)
            for measure in plan.of_family(name)
            if measure.declaration.no_gold
        ]
        if flags and family.nothing is not None:
            counts[family.nothing.key] = reading.has_gold & np.logical_or.reduce(flags)
    return counts


def _kernel_input(measure: Measure, reading: FamilyInput, plan: Plan) -> KernelInput:
    data = reading.data
    if measure.declaration.counts_repeats and plan.conventions.duplicates == "count":
        assert isinstance(data, Hits | EvidenceMatches), "only these count repeats"
        return data.counting_repeats()
    return data


def _values(
    measure: Measure, data: KernelInput, reading: FamilyInput, plan: Plan, query_ids: pl.Series
) -> Floats:
    """Return the value of each query, NaN if the query has no gold."""
    declaration = measure.declaration
    if measure.needs_largest_grade and plan.largest_grade is None:
        raise MeasureError(
            f"{measure} requires the largest grade of the whole gold",
            hint="pass it to the plan: Plan.of(…, largest_grade=…)",
        )
    is_replaced: Flags | None = None
    if declaration.no_gold and plan.conventions.no_gold != "family":
        is_replaced = reading.nothing_to_find(measure)
    if declaration.function is not None:
        assert isinstance(data, Hits), "measures of users are rank measures"
        is_used = reading.has_gold if is_replaced is None else reading.has_gold & ~is_replaced
        values = checked_values(measure, data, query_ids, is_used)
    else:
        values = declaration.kernel(data, measure.cutoff, **measure.params)
    if is_replaced is not None:
        no_gold_values = {
            "zero": 0.0,
            "one": 1.0,
            "recall": float(declaration.recall),
            "skip": np.nan,
        }
        values = np.where(is_replaced, no_gold_values[plan.conventions.no_gold], values)
    return np.where(reading.has_gold, values, np.nan)


@dataclass(frozen=True)
class UnmatchedQueries:
    """How many queries are only in gold (missing), and how many only in the run (unknown)."""

    missing: int = 0
    first_missing: str | None = None
    unknown: int = 0

    def merge(self, other: UnmatchedQueries) -> UnmatchedQueries:
        """Return the numbers of two parts."""
        first = [query for query in (self.first_missing, other.first_missing) if query is not None]
        return UnmatchedQueries(
            self.missing + other.missing, min(first, default=None), self.unknown + other.unknown
        )


def unmatched_queries(
    prepared: PreparedGold, run: Run, readings: dict[FamilyName, FamilyInput]
) -> UnmatchedQueries:
    """Count the queries that gold and run do not share; queries without any gold do not count."""
    present, unknown = _presence(prepared, run, readings)
    missing = _has_any_gold(readings) & ~present
    n_missing = int(np.count_nonzero(missing))
    first = prepared.query_ids[int(missing.argmax())] if n_missing else None
    return UnmatchedQueries(n_missing, first, unknown)


def check_conventions(unmatched: UnmatchedQueries, plan: Plan) -> None:
    """Raise an error for missing or unknown queries if the conventions forbid them."""
    if plan.conventions.missing == "error" and unmatched.missing:
        raise ConventionError(
            f"{counted(unmatched.missing, 'query')} of gold not found in the run"
            f"{for_example(unmatched.missing, repr(unmatched.first_missing))}",
            field="missing",
            hint="add the missing queries to the run, or set missing=zero or missing=skip",
        )
    if plan.conventions.unknown == "error" and unmatched.unknown:
        raise ConventionError(
            f"{counted(unmatched.unknown, 'query')} of the run not found in gold",
            field="unknown",
            hint="add the unknown queries to gold, or set unknown=ignore",
        )
