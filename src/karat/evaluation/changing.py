"""What changed in the lists of a query from one run to another."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from karat.errors import KaratWarning
from karat.evaluation.calculating import Key
from karat.evaluation.retracing import retraced
from karat.evaluation.scores import Scores
from karat.measures import Measure
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

    scores: Mapping[str, Scores]

    def changes(self, places: Iterable[Place]) -> list[list[Change] | None]:
        """Return for each place what moved, the most telling first.

        None where a run is not at hand, since it was given as saved scores. Each run is opened
        once.
        """
        looked_at = list(places)
        wanted: dict[str, dict[Measure, dict[str, None]]] = {}
        for place in looked_at:
            if place.measure.declaration.reads_gold and self._at_hand(place):
                for run in (place.a, place.b):
                    asked = wanted.setdefault(run, {}).setdefault(place.measure, {})
                    asked[place.query] = None
        known = {run: self._calculated(run, asked) for run, asked in wanted.items()}
        return [self._changed(place, known) for place in looked_at]

    def _at_hand(self, place: Place) -> bool:
        return all(self.scores[run].origin is not None for run in (place.a, place.b))

    def _changed(
        self, place: Place, known: dict[str, dict[Key, Calculation]]
    ) -> list[Change] | None:
        if not self._at_hand(place):
            return None
        if not place.measure.declaration.reads_gold:  # speed and cost are of no item
            return []
        first, second = (known[run][place.query, place.measure] for run in (place.a, place.b))
        return [change for change in changes(first, second) if change.moved]

    def _calculated(
        self, run: str, asked: Mapping[Measure, Iterable[str]]
    ) -> dict[Key, Calculation]:
        """Whatever there is to warn of was said when the run was scored."""
        scores = self.scores[run]
        assert scores.origin is not None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", KaratWarning)
            opened = scores.origin.session.opened(
                scores.origin.source, {query for queries in asked.values() for query in queries}
            )
            return {
                key: calculation
                for measure, queries in asked.items()
                for key, calculation in retraced(scores, opened, list(queries), [measure])
            }
