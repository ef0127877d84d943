"""The score table: query × measure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import polars as pl

from karat.errors import InputError, MeasureError
from karat.measures.aggregate import combine, mean, micro
from karat.measures.registry import Measure


@dataclass(frozen=True, eq=False)
class ScoreTable:
    """A value for each query and measure, null where it is left out; queries sorted as bytes.

    `counts` holds how many queries there are (queries), how many of them are in the run
    (in_common), how many items are relevant (relevant), how many of those were found
    (relevant_found), and for each reason in `REASONS` of families.py how many queries, calls or
    items it is true of, such as missing, failed, no_judgments, no_relevant, unpriced and repeats.
    `weights` holds the denominators of the measures that are combined as `micro`, row by row.
    `holes` holds, row by row as well, what judgments that were never made leave open: `Judged@k`
    for each cutoff of a rank measure (null where the list is empty), and for each measure with a
    bound, `bound:` and its name, the most it could be.
    """

    measures: tuple[Measure, ...]
    frame: pl.DataFrame
    counts: dict[str, int]
    weights: pl.DataFrame = field(default_factory=pl.DataFrame)
    holes: pl.DataFrame = field(default_factory=pl.DataFrame)

    @classmethod
    def concat(cls, tables: Sequence[ScoreTable]) -> ScoreTable:
        """Bring the tables of a partition of the queries together again."""
        if not tables:
            raise InputError("there is no table to bring together")
        frame = pl.concat([table.frame for table in tables])
        order = frame["query_id"].arg_sort()
        frame = frame[order]
        if frame["query_id"].is_duplicated().any():
            raise InputError("a query is in two of the tables", hint="partition by whole queries")
        counts: Counter[str] = Counter()
        for table in tables:
            counts.update(table.counts)
        return cls(
            tables[0].measures,
            frame,
            {key: counts[key] for key in tables[0].counts},
            _rows(pl.concat([table.weights for table in tables]), order),
            _rows(pl.concat([table.holes for table in tables]), order),
        )

    def rows(self, at: pl.Series) -> ScoreTable:
        """Return some of the rows; what was counted is said of all."""
        return replace(
            self,
            frame=self.frame[at],
            weights=_rows(self.weights, at),
            holes=_rows(self.holes, at),
        )

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

    def judged(self, measure: Measure) -> float | None:
        """Return how much of the top k was judged, as a mean over the lists that hold anything."""
        return self._open(measure, judged_column(measure))

    def bound(self, measure: Measure) -> float | None:
        """Return what a measure would be if every unjudged item of the lists were relevant."""
        return self._open(measure, upper_bound_column(measure))

    def _open(self, measure: Measure, name: str | None) -> float | None:
        """Return the mean of a column of `holes` over the queries that the measure counts."""
        if name not in self.holes.columns:
            return None
        counted = self.holes[name].filter(self.frame[measure.name].is_not_null()).drop_nulls()
        return mean(counted.to_list()) if counted.len() else None


def judged_column(measure: Measure) -> str | None:
    """Return the column of `holes` that says how much of a measure's top k was judged."""
    declaration = measure.declaration
    is_judged = declaration.reads.is_graded and declaration.cutoff == "optional"
    return f"Judged@{measure.cutoff}" if is_judged and measure.cutoff is not None else None


def upper_bound_column(measure: Measure) -> str:
    """Return the column of `holes` that says the most a measure could be."""
    return f"bound:{measure.name}"


def _rows(beside: pl.DataFrame, at: pl.Series) -> pl.DataFrame:
    """Return some rows of what stands beside the values; it may have no columns."""
    return beside[at] if beside.width else beside
