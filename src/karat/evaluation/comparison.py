"""A comparison of runs, with everything a person asks of it."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import polars as pl

from karat.errors import InputError
from karat.evaluation.changing import Lists, Place
from karat.evaluation.scores import Scores
from karat.measures import Measure
from karat.report import comparison_files
from karat.report.comparison import FEW_PAIRS, ComparisonSheet, Moved
from karat.report.comparison_text import text
from karat.report.making import TEXTS, Making
from karat.stats import comparison as statistics
from karat.stats.comparison import Choices
from karat.stats.groups import Field
from karat.stats.moved import moved
from karat.stats.pairs import pair

_MOVED_SHOWN = 3
_CHANGES = {
    "item": pl.String,
    "grade": pl.Int64,
    "rank_a": pl.Int64,
    "rank_b": pl.Int64,
    "brought_a": pl.Float64,
    "brought_b": pl.Float64,
}


class Comparison:
    """Runs compared pair by pair; each difference is the value of b less that of a."""

    def __init__(
        self,
        scores: Sequence[Scores],
        choices: Choices,
        by: Sequence[Field] = (),
    ) -> None:
        self.scores = list(scores)
        self.choices = choices
        self.by = tuple(by)
        self._tables = {score.name: score.table for score in scores}
        self._lists = Lists({score.name: score for score in scores})
        # All scores of one gold know the same of its queries; saved ones may know less.
        self._queries = max((score.queries for score in scores), key=lambda known: known.width)
        self.pairs: pl.DataFrame = statistics.compared(self._tables, choices)
        """A row a pair and measure: the difference, its interval, the tests, the power."""
        self.groups: pl.DataFrame | None = None
        """The same for each group of queries, where groups were asked for."""
        if by:
            self.groups = statistics.compared_by(self._tables, self._queries, by, choices)

    @property
    def baseline(self) -> str | None:
        """The run that all others are compared with; None if all are compared with all."""
        return self.choices.baseline

    @property
    def test(self) -> str:
        """The test that `p` is of: randomization, t or wilcoxon."""
        return self.choices.test

    @property
    def correction(self) -> str:
        """How `p_corrected` is corrected: holm, bh, bonferroni, tukey or none."""
        return self.choices.correction

    @property
    def confidence(self) -> float:
        """How sure the intervals are."""
        return self.choices.confidence

    def moved(self, measure: str | Measure | None = None, n: int = 5) -> pl.DataFrame:
        """Return the queries that rose most and fell most, at most n each, for every pair.

        A row a pair, measure and query: a, b, measure, query_id, text where it is known, value_a,
        value_b, difference.
        """
        if n < 1:
            raise InputError(f"{n} queries cannot be shown", field="n", hint="ask for 1 or more")
        first = self.scores[0].table
        measures = first.measures
        if measure is not None:
            measures = (first.measure(self.scores[0].parse(measure)),)
        parts = []
        for a, b in self.pairs.select("a", "b").unique(maintain_order=True).iter_rows():
            for each in measures:
                labels = {"a": a, "b": b, "measure": each.name}
                rows = moved(pair(self._tables[a], self._tables[b], each), n)
                names = [pl.lit(value).alias(name) for name, value in labels.items()]
                parts.append(rows.select(*names, pl.all()))
        whole = pl.concat(parts)
        if "text" not in self._queries.columns:
            return whole
        texts = self._queries.select("query_id", "text")
        named = ["a", "b", "measure", "query_id", "text"]
        return whole.join(texts, on="query_id", how="left", maintain_order="left").select(
            *named, pl.all().exclude(named)
        )

    def changes(self, query: str | int, measure: str | Measure, a: str, b: str) -> pl.DataFrame:
        """Return what changed in the list of a query from run a to run b, most telling first.

        A row an item: item, grade, rank_a, rank_b, and what it brings to the measure in each. A
        rank is null where the item stands too far down to count, or not at all.
        """
        self._known(a, b)
        if str(query) not in self._tables[a].frame["query_id"]:
            raise InputError(f"there is no query {query!r}", field="query", hint="check its id")
        known = self._tables[a].measure(self.scores[0].parse(measure))
        (found,) = self._lists.changes([Place(a, b, known, str(query))])
        if found is None:
            raise InputError(
                f"the lists of {a!r} and {b!r} are not both at hand",
                field="run",
                hint="compare runs, not saved scores, which hold no lists",
            )
        return pl.DataFrame([asdict(change) for change in found], schema=_CHANGES)

    def _known(self, *runs: str) -> None:
        """Refuse a run that is not compared."""
        for run in runs:
            if run not in self._tables:
                raise InputError(
                    f"no run is called {run!r}",
                    field="run",
                    hint=f"there are {', '.join(map(repr, self._tables))}",
                )

    def queries_needed(self, difference: float) -> pl.DataFrame:
        """Return how many queries it would take to show a difference, a row a pair and measure."""
        if not math.isfinite(difference) or difference == 0:
            raise InputError(
                f"{difference} is no difference that queries could show",
                field="difference",
                hint="such as 0.05",
            )
        return statistics.queries_needed(self._tables, difference, self.choices)

    def sheet(
        self, *, moved: int | None = None, difference: float | None = None
    ) -> ComparisonSheet:
        """Return what is shown and written of this comparison.

        `moved` is how many queries that rose and that fell are shown of each pair, by the first
        measure: 3 if it is not said, and none where there are more than 10 pairs.
        """
        measures = self.scores[0].table.measures
        if moved is None:
            many = self.pairs.height > len(measures) * FEW_PAIRS
            moved = 0 if many else _MOVED_SHOWN
        return ComparisonSheet(
            runs=[score.sheet() for score in self.scores],
            choices=self.choices,
            pairs=self.pairs,
            groups=self.groups,
            moved=self._moved(measures[0], moved) if moved else [],
            difference=difference,
            needed=None if difference is None else self.queries_needed(difference),
        )

    def _moved(self, measure: Measure, n: int) -> list[Moved]:
        rows = self.moved(measure, n).to_dicts()
        places = [Place(row["a"], row["b"], measure, row["query_id"]) for row in rows]
        return [
            Moved(**row, changes=found)
            for row, found in zip(rows, self._lists.changes(places), strict=True)
        ]

    def plot(
        self,
        kind: str = "values",
        *,
        by: Field | Sequence[Field] | None = None,
        measure: str | Measure | None = None,
        a: str | None = None,
        b: str | None = None,
    ) -> Any:
        """Draw an Altair chart of all runs, as `Scores.plot` does of one; or scatter and tradeoff.

        `scatter` sets run b against run a by a measure: the first, if none is said, and of every
        pair, if no run is said.
        """
        from karat.evaluation.plotting import plot

        self._known(*(run for run in (a, b) if run is not None))
        if kind != "scatter" and (a, b) != (None, None):
            raise InputError(f"{kind} is not of a pair", field="plot", hint="leave a and b out")
        return plot(self.scores, kind, by=by, measure=measure, pairs=self._pairs(a, b))

    def _pairs(self, a: str | None, b: str | None) -> list[tuple[str, str]]:
        if a is not None and b is not None:
            return [(a, b)]
        pairs = self.pairs.select("a", "b").unique(maintain_order=True).iter_rows()
        return [(one, other) for one, other in pairs if a in (None, one) and b in (None, other)]

    def report(self, path: str | os.PathLike[str], *, texts: int = TEXTS) -> None:
        """Write an HTML page that a person opens, down to each query.

        For `texts` queries, the most telling ones, it holds the texts of their lists and their
        calculations.
        """
        from karat.evaluation import reporting

        page = reporting.page(self.scores, comparison=self, making=Making(texts))
        reporting.write(page, path)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the comparison; the ending says how: json, csv, md, tex.

        A csv has the queries in a second file beside it.
        """
        comparison_files.write(self.sheet(), path)

    def __str__(self) -> str:
        return text(self.sheet())

    def _repr_html_(self) -> str:
        from karat.report.notebook import comparison_html

        return comparison_html(self.sheet(moved=0))

    def __repr__(self) -> str:
        names = ", ".join(repr(score.name) for score in self.scores)
        return f"<Comparison of {names}: {', '.join(self.scores[0].keys())}>"
