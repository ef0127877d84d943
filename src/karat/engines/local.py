"""Scoring in this process."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from karat.conventions import Conventions
from karat.data.files import Unopened
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
        try:
            table = score(self.prepared, run, self.plan)
            counts = table.counts
            if counts["queries"] == counts["missing"] + counts["no_judgments"]:
                judged = self.prepared.query_ids.filter(self.prepared.judged)
                raise _nothing_in_common(judged, run.query_ids)
        except InputError as error:
            # Of several runs, a person must know which.
            error.path = error.path or _path(source) or run.name
            raise
        if counts["relevant"] and 2 * counts["relevant_found"] >= counts["relevant"]:
            return Outcome(table, run.name, None)
        scored = documents(run) if self.plan.level == "doc" else run
        return Outcome(table, run.name, overlap(self.prepared, scored))


def _path(source: Any) -> str | None:
    if isinstance(source, Unopened):
        source = source.path
    return os.fspath(source) if isinstance(source, (str, os.PathLike)) else None


def _nothing_in_common(judged: pl.Series, asked: pl.Series) -> InputError:
    ours, theirs = (", ".join(map(repr, ids.head(3))) for ids in (judged, asked))
    return InputError(
        f"gold and run have no query in common: gold has {ours}, the run has {theirs or 'none'}",
        field="query_id",
        hint="check that both belong to the same set of queries and spell ids the same way",
    )
