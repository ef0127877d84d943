"""The score table: query × measure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import polars as pl

from karat.errors import InputError, MeasureError
from karat.measures.combine import combine, micro
from karat.measures.declare import Measure


@dataclass(frozen=True, eq=False)
class ScoreTable:
    """A value for each query and measure, null where it is left out; queries sorted as bytes.

    `counts` says how many queries there are (queries), how many of them the run was asked
    (in_common), and of how many something is true that a person should know (missing, unknown,
    failed, no_judgments, no_spans, no_evidence, no_relevant, no_characters, no_texts; for latency
    and cost, not_run and no_timings); how many calls have no price (unpriced); how many items
    stand again in a list (repeats), are relevant (relevant), and of those were found
    (relevant_found).
    `weights` holds the denominators of the measures that are combined as `micro`, row by row.
    """

    measures: tuple[Measure, ...]
    frame: pl.DataFrame
    counts: dict[str, int]
    weights: pl.DataFrame = field(default_factory=pl.DataFrame)

    @classmethod
    def concat(cls, tables: Sequence[ScoreTable]) -> ScoreTable:
        """Bring the tables of a partition of the queries together again."""
        if not tables:
            raise InputError("there is no table to bring together")
        frame = pl.concat([table.frame for table in tables])
        order = frame["query_id"].arg_sort()
        frame, weights = frame[order], pl.concat([table.weights for table in tables])
        if frame["query_id"].is_duplicated().any():
            raise InputError("a query is in two of the tables", hint="partition by whole queries")
        counts: Counter[str] = Counter()
        for table in tables:
            counts.update(table.counts)
        return cls(
            tables[0].measures,
            frame,
            {key: counts[key] for key in tables[0].counts},
            weights[order] if weights.width else weights,
        )

    def rows(self, at: pl.Series) -> ScoreTable:
        """Return some of the rows; what was counted is said of all."""
        weights = self.weights[at] if self.weights.width else self.weights
        return replace(self, frame=self.frame[at], weights=weights)

    def only(self, measures: Sequence[Measure]) -> ScoreTable:
        """Return some of the measures."""
        names = [self.measure(measure).name for measure in measures]
        return replace(self, measures=tuple(measures), frame=self.frame.select("query_id", *names))

    def measure(self, measure: Measure) -> Measure:
        """Return a measure if it is in the table."""
        if measure not in self.measures:
            raise MeasureError(
                f"{measure} was not asked for",
                hint=f"the scores hold {', '.join(map(str, self.measures))}",
            )
        return measure

    def values(self, measure: Measure) -> list[float]:
        """Return the values of a measure that are not left out, in the order of the queries."""
        return self.frame[measure.name].drop_nulls().to_list()

    def value(self, measure: Measure) -> float | None:
        """Return a measure over all queries."""
        if measure.declaration.combine == "micro":
            known = self.frame[measure.name].is_not_null()
            return micro(self.values(measure), self.weights[measure.name].filter(known).to_list())
        return combine(measure.declaration.combine, self.values(measure))
