"""How the values of single queries come about: kernels are traced while they score."""

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
from karat.evaluation.list_rows import Notes, Row, Rows, lists_of
from karat.evaluation.scores import Scores
from karat.match.evidence import EvidenceMatches, evidence_matches
from karat.match.gold_index import PreparedGold
from karat.measures import Measure, Plan
from karat.measures.array_math import gain_of_grades
from karat.measures.families import FAMILIES, REASONS, FamilyInput, FamilyName, read_inputs
from karat.measures.scoring import counts_by_query, score_inputs
from karat.measures.trace import Trace

TOP = 20
"""How many ranks are always shown; beyond them, only what counts."""
MOST_ROWS = 60


@dataclass(frozen=True)
class Calculation:
    """How the value of one query is calculated: what the kernel recorded and returned."""

    run: str
    value: float | None
    rows: list[Row]
    """The list as far as it counts: rank, item, grade, and what was noted of the place."""
    columns: list[str]
    """What was noted of places, in the order of the kernel; the last is what a place brings."""
    counted: list[int]
    """The ranks that the measure counted."""
    ideal: list[Row]
    missed: list[Row]
    """What the measure would have rewarded, with its rank if it is too far down."""
    matches: list[Row]
    """For each evidence, what covers it or comes nearest to it."""
    numbers: dict[str, Any]
    remarks: list[str]

    @property
    def picked(self) -> list[Row]:
        """The rows to show: the top of the list, and below it what counts."""
        return [*self.rows[:TOP], *(self.rows[rank - 1] for rank in self.counted_below)]

    @property
    def counted_below(self) -> list[int]:
        """The ranks below the top that are shown since they count."""
        return [rank for rank in self.counted if rank > TOP][: MOST_ROWS - len(self.rows[:TOP])]

    @cached_property
    def brought(self) -> dict[str, float]:
        """What each item brought that counts, over all its places; 1 where nothing says more."""
        brought: dict[str, float] = {}
        for rank in self.counted:
            row = self.rows[rank - 1]
            worth = float(row.get(self.columns[-1]) or 0.0) if self.columns else 1.0
            brought[row["item"]] = brought.get(row["item"], 0.0) + worth
        return brought

    @cached_property
    def ranks(self) -> dict[str, int]:
        """The first rank of each item: of those that count, the first that counts."""
        ranks = {row["item"]: row["rank"] for row in reversed(self.rows)}
        return ranks | {self.rows[rank - 1]["item"]: rank for rank in reversed(self.counted)}


@dataclass(frozen=True)
class Change:
    """The ranks of an item in two lists, if it is there, and what it adds to each."""

    item: str
    grade: int | None
    rank_a: int | None
    rank_b: int | None
    brought_a: float
    brought_b: float

    @property
    def difference(self) -> float:
        """What the item brings to the second list more than to the first."""
        return self.brought_b - self.brought_a

    @property
    def moved(self) -> bool:
        """Whether the item adds anything at all, and its rank or what it adds differs."""
        before, after = (self.rank_a, self.brought_a), (self.rank_b, self.brought_b)
        return before != after and (self.brought_a != 0 or self.brought_b != 0)


def changes(first: Calculation, second: Calculation) -> list[Change]:
    """Return every item that counts in either list, the most telling first."""
    grades = {row["item"]: row.get("grade") for c in (first, second) for row in c.rows}
    found = [
        Change(
            item,
            grades[item],
            first.ranks.get(item),
            second.ranks.get(item),
            first.brought.get(item, 0.0),
            second.brought.get(item, 0.0),
        )
        for item in first.brought | second.brought
    ]
    return sorted(found, key=lambda change: (-abs(change.difference), change.item))


Key = tuple[str, Measure]
"""A query, and by what it is measured."""


def calculations(
    gold: PreparedGold, run: Run, plan: Plan, *, exactly: float = math.inf
) -> Iterator[tuple[Key, Calculation]]:
    """Score every query of gold by each measure of a plan, while listening to the kernels.

    Gold holds the queries that are looked at; the plan knows what the whole gold decides. They
    come one after the other, since each holds a row for every item of a list. `exactly` is for
    `matches` of evidence.
    """
    own = run.only(gold.query_ids)
    for family in dict.fromkeys(measure.declaration.family for measure in plan.measures):
        alike = tuple(plan.of_family(family))
        # What a run does not say is counted for all measures of its speed or cost together.
        for measures in [(one,) for one in alike] if not FAMILIES[family].reads_gold else [alike]:
            part = replace(plan, measures=measures)
            yield from _calculated(gold, own, part, read_inputs(gold, own, part), exactly)


def calculation(gold: PreparedGold, run: Run, plan: Plan) -> Calculation:
    """Score the one query that gold holds by the one measure of a plan."""
    ((_, only),) = calculations(gold, run, plan)
    return only


def _calculated(
    gold: PreparedGold,
    run: Run,
    plan: Plan,
    readings: dict[FamilyName, FamilyInput],
    exactly: float,
) -> Iterator[tuple[Key, Calculation]]:
    """Do so for measures that read the same."""
    ((family, reading),) = readings.items()
    lists = lists_of(gold, run, plan, reading)
    matched = _matched(gold, reading, exactly) if FAMILIES[family].compares_texts else {}
    traces = {measure: Trace() for measure in plan.measures}
    table = score_inputs(gold, run, plan, readings, traces)
    for measure in plan.measures:
        notes = Notes(traces[measure], gold.query_ids.len(), family)
        values = table.frame[measure.name].to_list()
        remarks = _remarks(gold, run, replace(plan, measures=(measure,)), readings)
        for number, query in enumerate(gold.query_ids):
            beside = list(notes.beside(number, lists))
            counted = sorted({rank for rank, _ in beside})
            limit = measure.cutoff if isinstance(measure.cutoff, int) else lists.length(number)
            end = max([limit, *counted])
            rows = lists.rows(number, end)
            for rank, noted in beside:
                rows[rank - 1].update(noted)
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
                    matches=matched.get(query, []),
                    numbers={name: each[number] for name, each in notes.numbers.items()},
                    remarks=[said for said, times in remarks.items() if times[number]],
                ),
            )


def _matched(gold: PreparedGold, reading: FamilyInput, exactly: float) -> dict[str, list[Row]]:
    """Return by query what covers each evidence, or comes nearest to it."""
    matched: dict[str, list[Row]] = {}
    for row in evidence_matches(
        reading.data_as(EvidenceMatches), gold.query_ids, exactly=exactly
    ).to_dicts():
        matched.setdefault(row.pop("query_id"), []).append(row)
    return matched


def _missed(measure: Measure, lists: Rows, query: int, end: int) -> list[Row]:
    """Return what the measure would have rewarded, with its rank if it is further down."""
    params = measure.params
    rewards = "rel" in params or "gain" in params or measure.needs_largest_grade
    if not rewards or not measure.declaration.higher_is_better:
        return []
    grades, gain = lists.grades.get(query, {}), params.get("gain")
    if isinstance(gain, dict):
        wanted = [
            item for item, grade in grades.items() if gain_of_grades(np.array([grade]), gain)[0] > 0
        ]
    else:
        wanted = [item for item, grade in grades.items() if grade >= params.get("rel", 1)]
    ranks = lists.first_ranks(query)
    missed = [item for item in wanted if ranks.get(item, end + 1) > end]
    return [
        {"item": item, "grade": grades[item], "rank": ranks.get(item)}
        for item in sorted(missed, key=lambda item: (-grades[item], item))
    ]


def _remarks(
    gold: PreparedGold, run: Run, plan: Plan, readings: dict[FamilyName, FamilyInput]
) -> dict[str, Any]:
    """Say which convention decides, and how often it did in each query."""
    counts = counts_by_query(gold, run, plan, readings)
    return {
        reason.detail(plan.conventions): counts[key]
        for key, reason in REASONS.items()
        if reason.detail is not None
    }


_COMPARED = 1 << 24  # pairs of characters: 4,000 of each text take some 30 ms


def trace(
    scores: Scores, run: Run, query_ids: Collection[str], measures: Collection[Measure]
) -> Iterator[tuple[Key, Calculation]]:
    """Yield how values of scores are calculated; raise an error if the run has changed since.

    What `scores.traced` holds is not calculated again.
    """
    by_absent: dict[tuple[Measure, ...], list[str]] = {}
    for query in query_ids:
        absent = tuple(measure for measure in measures if (query, measure) not in scores.traced)
        by_absent.setdefault(absent, []).append(query)
        for measure in measures:
            if measure not in absent:
                yield (query, measure), scores.traced[query, measure]
    for absent, queries in by_absent.items():
        if absent:
            yield from _traced(scores, run, queries, absent)


def _traced(
    scores: Scores, run: Run, query_ids: Collection[str], measures: tuple[Measure, ...]
) -> Iterator[tuple[Key, Calculation]]:
    assert scores.scored_run is not None, "a run that was loaded has a source"
    session = scores.scored_run.session
    gold = PreparedGold(session.gold.only(*query_ids))
    plan = replace(session.plan, measures=measures)
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
