"""A run with its ranked lists in memory, for pages and charts that need more than scores."""

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
    """The scores of a run, with its ranked lists as they were scored."""

    scores: Scores
    session: LocalSession
    """The session that scored the run."""
    run: Run
    """The run as it was scored: cut, renamed, converted to code points."""

    @classmethod
    def of(cls, scores: Scores) -> LoadedRun | None:
        """Load the run of some scores.

        Return None if the scores were read from a file, or if the run is larger than the memory
        limit, or gold is; a warning says so. Warnings about the run are not repeated.
        """
        if scores.scored_run is None:
            return None
        session = scores.scored_run.session
        if scores.scored_run.source.is_large or not session.has_whole_gold:
            what = "the run" if session.has_whole_gold else "gold"
            warnings.warn(
                KaratWarning(
                    f"ranked lists and texts of run {scores.name!r} are not shown, because {what} "
                    "is larger than the memory limit (--memory, memory=)"
                ),
                stacklevel=2,
            )
            return None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", KaratWarning)
            return cls(scores, session, session.as_scored(scores.scored_run.source.read()))

    @property
    def gold(self) -> Gold:
        """The gold that the run was scored against."""
        return self.session.gold

    @property
    def query_ids(self) -> pl.Series:
        """The ids of the queries of gold."""
        return self.session.prepared.query_ids

    @cached_property
    def plan(self) -> Plan:
        """The plan of the session, with the measures of the scores."""
        return replace(self.session.plan, measures=self.scores.table.measures)

    @cached_property
    def families(self) -> frozenset[FamilyName]:
        """The families of the measures that read gold."""
        return frozenset(name for name in self.plan.families if FAMILIES[name].reads_gold)

    @cached_property
    def readings(self) -> dict[FamilyName, FamilyInput]:
        """Gold and run aligned, for each family of measures that reads gold."""
        assert self.scores.scored_run is not None
        kept_readings = self.scores.scored_run.readings
        missing = self.families - set(kept_readings)
        measures = tuple(m for m in self.plan.measures if m.declaration.family in missing)
        plan = replace(self.plan, measures=measures)
        readings = kept_readings | read_inputs(self.session.prepared, self.run, plan)
        return {family: readings[family] for family in FAMILIES if family in self.families}

    def values(self, measures: Collection[Measure]) -> dict[Measure, float | None]:
        """Return the values of measures over all queries.

        The measures must be of the families that the run was scored by. Those that were not scored
        yet are computed together.
        """
        table = self.scores.table
        unscored = tuple(measure for measure in measures if measure not in table.measures)
        plan = replace(self.plan, measures=unscored)
        readings = {family: self.readings[family] for family in FAMILIES if family in plan.families}
        unscored_table = score_inputs(self.session.prepared, self.run, plan, readings)
        values = {measure: unscored_table.value(measure) for measure in unscored}
        return {
            measure: values[measure] if measure in values else table.value(measure)
            for measure in measures
        }
