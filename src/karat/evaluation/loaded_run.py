"""A run with its lists in memory, for what scores alone do not show: pages and charts."""

from __future__ import annotations

import warnings
from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cached_property

import polars as pl

from karat.data.gold import Gold
from karat.data.run import Run
from karat.engines.local import LocalSession
from karat.errors import KaratWarning
from karat.evaluation.scores import Scores
from karat.measures import Measure, Plan
from karat.measures.families import FAMILIES, FamilyInput, FamilyName, read_inputs
from karat.measures.scoring import score_inputs


@dataclass(frozen=True, eq=False)
class LoadedRun:
    """The lists of a run as they were scored, with its scores."""

    scores: Scores
    session: LocalSession
    """What the run was scored with."""
    run: Run
    """The run as it was scored: cut, renamed, converted to code points."""

    @classmethod
    def of(cls, scores: Scores) -> LoadedRun | None:
        """Load the run of some scores; return None if they were read from a file.

        Warnings are not repeated: they were given when the run was scored.
        """
        if scores.scored_run is None:
            return None
        session = scores.scored_run.session
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", KaratWarning)
            return cls(scores, session, session.as_scored(scores.scored_run.source.read()))

    @property
    def gold(self) -> Gold:
        """What should be found."""
        return self.session.gold

    @property
    def query_ids(self) -> pl.Series:
        """The queries of gold."""
        return self.session.prepared.query_ids

    @cached_property
    def plan(self) -> Plan:
        """The measures of the scores, and how they were computed."""
        return replace(self.session.plan, measures=self.scores.table.measures)

    @cached_property
    def families(self) -> frozenset[FamilyName]:
        """The families of the measures that read gold."""
        return frozenset(name for name in self.plan.families if FAMILIES[name].reads_gold)

    @cached_property
    def readings(self) -> dict[FamilyName, FamilyInput]:
        """Gold and run brought together, for each family of measures that reads gold."""
        assert self.scores.scored_run is not None
        kept = self.scores.scored_run.readings
        absent = [m for m in self.plan.measures if m.declaration.family in self.families - {*kept}]
        plan = replace(self.plan, measures=tuple(absent))
        readings = kept | read_inputs(self.session.prepared, self.run, plan)
        return {family: readings[family] for family in FAMILIES if family in self.families}

    def values(self, measures: Collection[Measure]) -> dict[Measure, float | None]:
        """Return values over all queries, of measures of the same families.

        Measures that the run was not scored by are computed together.
        """
        table = self.scores.table
        further = tuple(measure for measure in measures if measure not in table.measures)
        plan = replace(self.plan, measures=further)
        readings = {family: self.readings[family] for family in FAMILIES if family in plan.families}
        other = score_inputs(self.session.prepared, self.run, plan, readings)
        return {m: (table if m in table.measures else other).value(m) for m in measures}
