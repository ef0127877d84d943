"""A run opened again, for what its scores alone do not say."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from functools import cached_property

from karat.data.gold import Gold
from karat.data.run import Run
from karat.data.run_source import RunSource
from karat.engines.local import LocalSession, Outcome
from karat.errors import KaratWarning
from karat.match.evidence import Found
from karat.measures import Measure, Plan, ScoreTable
from karat.measures.families import EVIDENCE, FAMILIES, FamilyName, Reading, read
from karat.measures.scoring import scored


@dataclass(frozen=True)
class Origin:
    """Where scores come from: what they were scored with, and the run as it was given."""

    session: LocalSession
    source: RunSource
    found: Found | None
    """Which texts cover which evidence, if that was asked: too expensive to compute again."""
    table: ScoreTable
    """What the run scored."""
    readings: dict[FamilyName, Reading] | None
    """Gold and run brought together, if the run is kept as it was scored."""

    @classmethod
    def of(cls, outcome: Outcome, source: RunSource) -> Origin:
        """Hold what a run was scored with, and what is needed to show its lists."""
        readings, plan = outcome.readings, outcome.session.plan
        texts = readings.get(EVIDENCE.name)
        found = None if texts is None else texts.data_as(Found)
        # Each family removes repeats in its own way; a page shows lists without repeated ids.
        is_shown = source.is_kept and plan.conventions.duplicates != "set"
        return cls(outcome.session, source, found, outcome.table, readings if is_shown else None)

    def only(self, measures: Iterable[Measure]) -> Origin:
        """Return where the scores of some of the measures come from."""
        return replace(self, session=self.session.only(measures))

    def opened(self) -> Opened:
        """Open the run again; warnings were given when it was scored."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", KaratWarning)
            run = self.session.as_scored(self.source.read())
        return Opened(self.session, run, self.found, self.table, self.readings)


@dataclass(frozen=True)
class Opened:
    """A run with its lists as they were scored."""

    session: LocalSession
    run: Run
    found: Found | None
    scored: ScoreTable
    """What the run scored when it was evaluated."""
    known_readings: dict[FamilyName, Reading] | None

    @property
    def gold(self) -> Gold:
        """What should be found."""
        return self.session.gold

    @property
    def plan(self) -> Plan:
        """What was measured, and how."""
        return self.session.plan

    @cached_property
    def families(self) -> frozenset[FamilyName]:
        """The families that read gold, of those that this run was measured by."""
        return frozenset(name for name in self.plan.families if FAMILIES[name].reads_gold)

    @cached_property
    def readings(self) -> dict[FamilyName, Reading]:
        """Gold and run brought together, for every kind of gold that was measured by."""
        if self.known_readings is not None:
            known = self.known_readings.items()
            return {family: reading for family, reading in known if family in self.families}
        plan = self.session.only(
            m for m in self.plan.measures if m.declaration.family in self.families
        ).plan
        return read(self.session.prepared, self.run, plan, self.found)

    def values(self, measures: Collection[Measure]) -> dict[Measure, float | None]:
        """Return values over all queries, of measures of the same kinds of gold.

        What the run was not scored by yet is computed for all of them together.
        """
        known = set(self.scored.measures)
        further = self._table(measure for measure in measures if measure not in known)
        return {m: (self.scored if m in known else further).value(m) for m in measures}

    def _table(self, measures: Iterable[Measure]) -> ScoreTable:
        plan = self.session.only(measures).plan
        readings = {family: self.readings[family] for family in FAMILIES if family in plan.families}
        return scored(self.session.prepared, self.run, plan, readings)
