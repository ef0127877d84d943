"""A run opened again, for what its scores alone do not say."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from karat.data.gold import Gold
from karat.data.run import Run
from karat.engines.local import LocalSession
from karat.errors import KaratWarning
from karat.match.evidence import Found
from karat.measures import Measure, Plan, ScoreTable
from karat.measures.families import FAMILIES, FamilyName
from karat.measures.reading import Reading, read
from karat.measures.scoring import scored


@dataclass(frozen=True)
class Origin:
    """Where scores come from: what they were scored with, and the run as it was given."""

    session: LocalSession
    source: Any
    found: Found | None
    """Which texts cover which evidence, if that was asked: too expensive to compute again."""

    def only(self, measures: Iterable[Measure]) -> Origin:
        """Return where the scores of some of the measures come from."""
        return replace(self, session=self.session.only(measures))

    def opened(self) -> Opened:
        """Open the run again; warnings were given when it was scored."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", KaratWarning)
            run = self.session.opened(self.source)
        return Opened(self.session, self.source, run, self.found)


@dataclass(frozen=True)
class Opened:
    """A run with its lists as they were scored."""

    session: LocalSession
    source: Any
    run: Run
    found: Found | None = None

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
        plan = self.session.only(
            m for m in self.plan.measures if m.declaration.family in self.families
        ).plan
        return read(self.session.prepared, self.run, plan, self.found)

    def table(self, measures: Iterable[Measure]) -> ScoreTable:
        """Score the run by other measures, in the same way."""
        plan, prepared = self.session.only(measures).plan, self.session.prepared
        return scored(prepared, self.run, plan, read(prepared, self.run, plan, self.found))
