"""A run opened again, for what its scores alone do not say."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from karat.data.gold import Gold
from karat.data.run import Run
from karat.engines.local import LocalSession
from karat.measures import Measure, Plan, ScoreTable
from karat.measures.scoring import score


@dataclass(frozen=True)
class Origin:
    """Where scores come from: what they were scored with, and the run as it was given."""

    session: LocalSession
    source: Any

    def opened(self) -> Opened:
        """Open the run again."""
        return Opened(self.session, self.source, self.session.opened(self.source))


@dataclass(frozen=True)
class Opened:
    """A run whose lists are at hand, as they were scored."""

    session: LocalSession
    source: Any
    run: Run

    @property
    def gold(self) -> Gold:
        """What should be found."""
        return self.session.gold

    @property
    def plan(self) -> Plan:
        """What was measured, and how."""
        return self.session.plan

    @cached_property
    def families(self) -> frozenset[str]:
        """Which kinds of gold there are and this run was measured by: rank, span, evidence."""
        return frozenset(self.plan.families) & {"rank", "span", "evidence"}

    def table(self, measures: Iterable[Measure]) -> ScoreTable:
        """Score the run by other measures, in the same way."""
        return score(self.session.prepared, self.run, self.session.only(measures).plan)
