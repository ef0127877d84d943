"""How the value of a query is calculated: kernels record a trace while they score."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from karat.data.run import Run
from karat.errors import InputError
from karat.evaluation.list_rows import QueryRows, Row, TraceNotes, query_rows
from karat.evaluation.scores import Scores
from karat.match.evidence import EvidenceMatches, evidence_table
from karat.match.gold_index import PreparedGold
from karat.measures import Measure, Plan
from karat.measures.array_math import gain_of_grades
from karat.measures.families import FAMILIES, REASONS, FamilyInput, FamilyName, read_inputs
from karat.measures.scoring import counts_by_query, score_inputs
from karat.measures.trace import Trace

TOP = 20
"""How many ranks are always shown; below them, only ranks that count."""
MOST_ROWS = 60


@dataclass(frozen=True)
class Calculation:
    """How the value of one query is calculated: the value and what the kernel recorded."""

    run: str
    value: float | None
    rows: list[Row]
    """The ranked list as far as it counts: rank, item, grade and the recorded columns."""
    columns: list[str]
    """The recorded columns in the order of the kernel; the last is the contribution of a rank."""
    counted: list[int]
    """The ranks that the measure counted."""
    ideal: list[Row]
    missed: list[Row]
    """Relevant items that did not count, with their rank if they are below the cutoff."""
    matches: list[Row]
    """For each evidence text, the text that covers it or comes nearest to it."""
    numbers: dict[str, Any]
    remarks: list[str]

    @property
    def picked(self) -> list[Row]:
        """The rows to show: the top of the list, and the rows below it that count."""
        return [*self.rows[:TOP], *(self.rows[rank - 1] for rank in self.counted_below)]

    @property
    def counted_below(self) -> list[int]:
        """The ranks below the top that are shown because they count."""
        return [rank for rank in self.counted if rank > TOP][: MOST_ROWS - len(self.rows[:TOP])]

    @cached_property
    def contributions(self) -> dict[str, float]:
        """What each item contributes, over all its ranks; 1 if the kernel recorded no column."""
        contributions: dict[str, float] = {}
        for rank in self.counted:
            row = self.rows[rank - 1]
            amount = float(row.get(self.columns[-1]) or 0.0) if self.columns else 1.0
            contributions[row["item"]] = contributions.get(row["item"], 0.0) + amount
        return contributions

    @cached_property
    def ranks(self) -> dict[str, int]:
        """The rank of each item: the first that counts, or the first if none counts."""
        ranks = {row["item"]: row["rank"] for row in reversed(self.rows)}
        return ranks | {self.rows[rank - 1]["item"]: rank for rank in reversed(self.counted)}


@dataclass(frozen=True)
class Change:
    """The rank of an item in two lists, if it is listed, and what it contributes to each."""

    item: str
    grade: int | None
    rank_a: int | None
    rank_b: int | None
    brought_a: float
    brought_b: float

    @property
    def difference(self) -> float:
        """How much more the item contributes to the second list than to the first."""
        return self.brought_b - self.brought_a

    @property
    def moved(self) -> bool:
        """Whether the item contributes to either list, and its rank or contribution differs."""
        before, after = (self.rank_a, self.brought_a), (self.rank_b, self.brought_b)
        return before != after and (self.brought_a != 0 or self.brought_b != 0)


def changes(first: Calculation, second: Calculation) -> list[Change]:
    """Return every item that counts in either list, the largest difference first."""
    grades = {row["item"]: row.get("grade") for c in (first, second) for row in c.rows}
    item_changes = [
        Change(
            item,
            grades[item],
            first.ranks.get(item),
            second.ranks.get(item),
            first.contributions.get(item, 0.0),
            second.contributions.get(item, 0.0),
        )
        for item in first.contributions | second.contributions
    ]
    return sorted(item_changes, key=lambda change: (-abs(change.difference), change.item))


Key = tuple[str, Measure]
"""The id of a query, and a measure."""


def calculations(
    gold: PreparedGold, run: Run, plan: Plan, *, exactly: float = math.inf
) -> Iterator[tuple[Key, Calculation]]:
    """Yield the calculation of every query of gold by each measure of a plan.

    `gold` contains only the queries to show; the plan contains what depends on the whole gold,
    such as the largest grade. Calculations are yielded one by one, since each has a row for every
    item of a list. `exactly` limits how much text is compared to find the nearest text of an
    evidence text (see `evidence_matches`).
    """
    queries_run = run.only(gold.query_ids)
    for family in dict.fromkeys(measure.declaration.family for measure in plan.measures):
        family_measures = tuple(plan.of_family(family))
        batches = [family_measures]
        if not FAMILIES[family].reads_gold:
            # Missing timings and prices are counted over all measures of a batch.
            batches = [(measure,) for measure in family_measures]
        for batch in batches:
            part = replace(plan, measures=batch)
            inputs = read_inputs(gold, queries_run, part)
            yield from _family_calculations(gold, queries_run, part, inputs, exactly)


def calculation(gold: PreparedGold, run: Run, plan: Plan) -> Calculation:
    """Return the calculation of the only query of gold by the only measure of a plan."""
    ((_, single),) = calculations(gold, run, plan)
    return single


def _family_calculations(
    gold: PreparedGold,
    run: Run,
    plan: Plan,
    readings: dict[FamilyName, FamilyInput],
    exactly: float,
) -> Iterator[tuple[Key, Calculation]]:
    """Yield the calculations of measures of one family."""
    ((family, reading),) = readings.items()
    lists = query_rows(gold, run, plan, reading)
    matches: dict[str, list[Row]] = {}
    if FAMILIES[family].compares_texts:
        matches = _matches_by_query(gold, reading, exactly)
    traces = {measure: Trace() for measure in plan.measures}
    table = score_inputs(gold, run, plan, readings, traces)
    for measure in plan.measures:
        notes = TraceNotes(traces[measure], gold.query_ids.len(), family)
        values = table.frame[measure.name].to_list()
        remarks = _remarks(gold, run, replace(plan, measures=(measure,)), readings)
        for number, query in enumerate(gold.query_ids):
            recorded = list(notes.counted_ranks(number, lists))
            counted = sorted({rank for rank, _ in recorded})
            limit = measure.cutoff if isinstance(measure.cutoff, int) else lists.length(number)
            end = max([limit, *counted])
            rows = lists.rows(number, end)
            for rank, values_at_rank in recorded:
                rows[rank - 1].update(values_at_rank)
            yield (
                (query, measure),
                Calculation(
                    run=run.name or "run",
                    value=values[number],
                    rows=rows,
                    columns=notes.columns,
                    counted=counted,
                    ideal=notes.ideal(number),
                    missed=_missed(measure, lists, number, end),
                    matches=matches.get(query, []),
                    numbers={name: column[number] for name, column in notes.numbers.items()},
                    remarks=[remark for remark, counts in remarks.items() if counts[number]],
                ),
            )


def _matches_by_query(
    gold: PreparedGold, reading: FamilyInput, exactly: float
) -> dict[str, list[Row]]:
    matches: dict[str, list[Row]] = {}
    table = evidence_table(reading.data_as(EvidenceMatches), gold.query_ids, exactly=exactly)
    for row in table.to_dicts():
        matches.setdefault(row.pop("query_id"), []).append(row)
    return matches


def _missed(measure: Measure, lists: QueryRows, query: int, end: int) -> list[Row]:
    """Return the relevant items that did not count, with their rank if they are in the list."""
    params = measure.params
    counts_items = "rel" in params or "gain" in params or measure.needs_largest_grade
    if not counts_items or not measure.declaration.higher_is_better:
        return []
    grades, gain = lists.grades.get(query, {}), params.get("gain")
    if isinstance(gain, dict):
        relevant = [
            item for item, grade in grades.items() if gain_of_grades(np.array([grade]), gain)[0] > 0
        ]
    else:
        relevant = [item for item, grade in grades.items() if grade >= params.get("rel", 1)]
    ranks = lists.first_ranks(query)
    missed = [item for item in relevant if ranks.get(item, end + 1) > end]
    return [
        {"item": item, "grade": grades[item], "rank": ranks.get(item)}
        for item in sorted(missed, key=lambda item: (-grades[item], item))
    ]


def _remarks(
    gold: PreparedGold, run: Run, plan: Plan, readings: dict[FamilyName, FamilyInput]
) -> dict[str, Any]:
    """Return a remark for each convention that may apply, and how often it applied per query."""
    counts = counts_by_query(gold, run, plan, readings)
    return {
        reason.detail(plan.conventions): counts[key]
        for key, reason in REASONS.items()
        if reason.detail is not None
    }


_MAX_COMPARED = 1 << 24  # pairs of characters: two texts of 4,000 characters take about 30 ms


def trace(
    scores: Scores, run: Run, query_ids: Collection[str], measures: Collection[Measure]
) -> Iterator[tuple[Key, Calculation]]:
    """Yield the calculations behind scores; raise an error if the run has changed since.

    Calculations in the cache `scores.traced` are not repeated.
    """
    queries_by_measures: dict[tuple[Measure, ...], list[str]] = {}
    for query in query_ids:
        untraced = tuple(measure for measure in measures if (query, measure) not in scores.traced)
        queries_by_measures.setdefault(untraced, []).append(query)
        for measure in measures:
            if measure not in untraced:
                yield (query, measure), scores.traced[query, measure]
    for untraced, queries in queries_by_measures.items():
        if untraced:
            yield from _trace_queries(scores, run, queries, untraced)


def _trace_queries(
    scores: Scores, run: Run, query_ids: Collection[str], measures: tuple[Measure, ...]
) -> Iterator[tuple[Key, Calculation]]:
    assert scores.scored_run is not None, "scores of a loaded run have a source"
    session = scores.scored_run.session
    gold = PreparedGold(session.gold_of(query_ids))
    plan = replace(session.plan, measures=measures)
    rows = scores.table.frame.filter(pl.col("query_id").is_in(gold.query_ids.implode()))
    values = {
        measure: dict(rows.select("query_id", measure.name).iter_rows()) for measure in measures
    }
    for (query, measure), calculation in calculations(gold, run, plan, exactly=_MAX_COMPARED):
        if calculation.value != values[measure][query]:
            raise InputError(
                f"the run {scores.name!r} has changed since it was scored",
                field="runs",
                hint="score the run again, and do not change its file before the command ends",
            )
        yield (query, measure), calculation
