"""Scoring in this process."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from karat.conventions import Conventions
from karat.data.gold import Gold
from karat.data.run import Run
from karat.errors import InputError
from karat.match.level import documents
from karat.match.overlap import Overlap, overlap
from karat.match.prepared import prepare
from karat.measures import Measure, Plan, ScoreTable, score


@dataclass(frozen=True, eq=False)
class Outcome:
    """What scoring a run gives."""

    table: ScoreTable
    name: str | None
    overlap: Overlap | None
    """Only where so few relevant items were found that the ids themselves are in doubt."""


class LocalSession:
    """Gold opened and prepared once, then any number of runs scored against it."""

    def __init__(
        self,
        gold: Any,
        measures: str | Measure | Iterable[str | Measure] | None,
        conventions: Conventions,
        level: str,
    ) -> None:
        plan = Plan.of(measures, conventions=conventions, level=level)
        self.gold = Gold.open(gold)
        self.prepared = prepare(self.gold)
        if not self.prepared.judged.any():
            held = [kind for kind in ("spans", "evidence") if getattr(self.gold, kind) is not None]
            raise InputError(
                "gold holds no judgments" + (f", only {' and '.join(held)}" if held else ""),
                field="judgments",
                hint=f"rank measures such as {plan.measures[0]} need judged item ids",
            )
        self.plan = replace(plan, largest_grade=self.prepared.largest_grade)

    def score(self, source: Any) -> Outcome:
        """Open a run and score it."""
        run = Run.open(source)
        if self.plan.level == "doc":
            run = documents(run)
        table = score(self.prepared, run, replace(self.plan, level="item"))
        counts = table.counts
        if counts["queries"] == counts["missing"] + counts["no_judgments"]:
            raise _nothing_in_common(self.prepared.query_ids, run)
        doubtful = 2 * counts["relevant_found"] < counts["relevant"]
        return Outcome(table, run.name, overlap(self.prepared, run) if doubtful else None)


def _nothing_in_common(query_ids: pl.Series, run: Run) -> InputError:
    ours, theirs = (", ".join(map(repr, ids.head(3))) for ids in (query_ids, run.query_ids))
    return InputError(
        f"gold and run have no query in common: gold has {ours}, the run has {theirs}",
        path=run.name,
        field="query_id",
        hint="check that both belong to the same set of queries and spell ids the same way",
    )
