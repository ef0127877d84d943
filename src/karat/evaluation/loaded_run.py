"""A run with its ranked lists in memory, for pages and charts that need more than scores."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cached_property

import polars as pl

from karat.data.gold import Gold
from karat.data.run import Run
from karat.engines.local import LocalSession
from karat.errors import warn, without_warnings
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
    def of(cls, scores: Scores, query_ids: pl.Series | None = None) -> LoadedRun | None:
        """Load the run of some scores, or only some of its queries.

        Return None if the lists are not available: for saved scores, for runs scored by Spark, and,
        with a warning, if the whole run or gold exceeds the memory limit. Warnings about the run
        are not repeated.
        """
        if scores.scored_run is None:
            return None
        source, session = scores.scored_run.source, scores.scored_run.session
        if query_ids is None and (what := scores.scored_run.too_large):
            warn(
                f"ranked lists and texts of run {scores.name!r} are not shown, because {what} "
                "needs more memory than the limit; to show them, raise the limit (--memory, "
                "memory=)",
                stacklevel=2,
            )
            return None
        if query_ids is not None:
            scores = scores_of_queries(scores, query_ids)
            assert scores.scored_run is not None
            session = scores.scored_run.session
        with without_warnings():
            run = source.read() if query_ids is None else source.read_only(query_ids)
            return cls(scores, session, session.as_scored(run))

    def only(self, query_ids: pl.Series) -> LoadedRun:
        """Return some of the queries of this run."""
        scores = scores_of_queries(self.scores, query_ids)
        assert scores.scored_run is not None
        return LoadedRun(scores, scores.scored_run.session, self.run.only(query_ids))

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


def scores_of_queries(scores: Scores, query_ids: pl.Series) -> Scores:
    """Return the scores of some queries, as if gold contained only these.

    Counts remain those of all queries.
    """
    rows = scores.table.frame["query_id"].is_in(query_ids.implode()).arg_true()
    table = scores.table.rows(rows)
    queries = scores.queries.filter(pl.col("query_id").is_in(query_ids.implode()))
    scored_run = scores.scored_run
    if scored_run is not None:
        session = scored_run.session.only_queries(query_ids)
        scored_run = replace(scored_run, session=session, table=table, readings={})
    return replace(scores, table=table, queries=queries, scored_run=scored_run)
