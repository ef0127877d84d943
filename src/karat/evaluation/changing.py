"""What changed in the lists of a query from one run to another."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import polars as pl

from karat.errors import InputError
from karat.evaluation.evaluator import Evaluator
from karat.evaluation.scores import Scores
from karat.measures import Measure, ScoreTable
from karat.report.calculation import Calculation, Change, changes


class Place(NamedTuple):
    """A query to look at: by which measure, from which run to which."""

    a: str
    b: str
    measure: Measure
    query: str


@dataclass(frozen=True)
class Lists:
    """The runs of a comparison, opened again only for the queries that are looked at."""

    evaluator: Evaluator | None
    sources: Mapping[str, Any]
    tables: Mapping[str, ScoreTable]

    def changes(self, places: Iterable[Place]) -> list[list[Change] | None]:
        """Return for each place what moved, the most telling first.

        None where a run is not at hand, since it was given as scores. Each run is opened once.
        """
        looked_at = list(places)
        wanted: dict[str, dict[tuple[str, Measure], None]] = {}
        for place in looked_at:
            if place.measure.declaration.reads_gold and self._at_hand(place):
                for run in (place.a, place.b):
                    wanted.setdefault(run, {})[place.query, place.measure] = None
        known = {run: self._calculated(run, list(each)) for run, each in wanted.items()}
        return [self._changed(place, known) for place in looked_at]

    def _at_hand(self, place: Place) -> bool:
        return not any(isinstance(self.sources[run], Scores) for run in (place.a, place.b))

    def _changed(
        self, place: Place, known: dict[str, dict[tuple[str, Measure], Calculation]]
    ) -> list[Change] | None:
        if not self._at_hand(place):
            return None
        if not place.measure.declaration.reads_gold:  # speed and cost are of no item
            return []
        first, second = (known[run][place.query, place.measure] for run in (place.a, place.b))
        return [change for change in changes(first, second) if change.moved]

    def _calculated(
        self, run: str, wanted: list[tuple[str, Measure]]
    ) -> dict[tuple[str, Measure], Calculation]:
        assert self.evaluator is not None
        known = self.evaluator.calculated(self.sources[run], wanted)
        frame = self.tables[run].frame
        for (query, measure), calculation in known.items():
            value = frame.filter(pl.col("query_id") == query)[measure.name].item()
            if calculation.value != value:
                raise InputError(
                    f"the run {run!r} has changed since it was scored",
                    field="runs",
                    hint="compare again",
                )
        return known
