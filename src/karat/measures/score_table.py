"""The score table: one value per query and measure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import polars as pl

from karat.errors import InputError, MeasureError
from karat.measures.aggregate import combine, mean, micro
from karat.measures.registry import Measure


@dataclass(frozen=True, eq=False)
class ScoreTable:
    """The values of all queries and measures, as returned by `score`.

    Parameters
    ----------
    measures : tuple of Measure
        The measures, in the order of the columns.
    frame : polars.DataFrame
        One row per query of gold, sorted by the bytes of `query_id`, and one column per measure.
        A value is null if the query is left out of the measure.
    counts : dict of str to int
        `queries` is the number of queries, `in_common` the number of those that are in the run,
        `relevant` the number of relevant items, `relevant_found` the number of those that were
        retrieved. Of the `unanswerable` queries, `unanswerable_in_run` are in the run, and for
        `unanswerable_returned` it returned items above its `score_threshold`. For each reason
        such as `missing`, `failed`, `no_judgments`, `no_relevant`, `unpriced` and `repeats`, it is
        the number of queries, calls or items to which it applies.
    weights : polars.DataFrame, optional
        One row per query: the denominators of the measures that are combined as `micro`.
    holes : polars.DataFrame, optional
        One row per query, about unjudged items: `Judged@k` for each cutoff of a rank measure, null
        if the list is empty; and for each measure with an upper bound, `bound:` and its name, the
        value if all unjudged items were relevant.
    clusters : polars.Series, optional
        One label per query: queries with the same label are not independent of each other.

    Examples
    --------
    >>> from karat import Plan, score
    >>> gold = {"q1": {"a": 1}, "q2": {"b": 1}}
    >>> plan = Plan.of("P@1")
    >>> table = score(gold, {"q1": ["a"], "q2": ["x"]}, plan)
    >>> table.frame.rows()
    [('q1', 1.0), ('q2', 0.0)]
    >>> table.value(plan.measures[0]), table.counts["queries"]
    (0.5, 2)
    """

    measures: tuple[Measure, ...]
    frame: pl.DataFrame
    counts: dict[str, int]
    weights: pl.DataFrame = field(default_factory=pl.DataFrame)
    holes: pl.DataFrame = field(default_factory=pl.DataFrame)
    clusters: pl.Series | None = None

    @classmethod
    def concat(cls, tables: Sequence[ScoreTable]) -> ScoreTable:
        """Concatenate the tables of different queries that were scored by the same plan."""
        if not tables:
            raise InputError(
                "expected at least one table, got none", hint="pass the tables of all partitions"
            )
        frame = pl.concat([table.frame for table in tables])
        order = order_of_queries(frame["query_id"])
        return cls(
            tables[0].measures,
            frame[order],
            total_counts(tables),
            _rows(pl.concat([table.weights for table in tables]), order),
            _rows(pl.concat([table.holes for table in tables]), order),
        )

    def rows(self, at: pl.Series) -> ScoreTable:
        """Return the rows at these positions; `counts` remain those of the whole table."""
        return replace(
            self,
            frame=self.frame[at],
            weights=_rows(self.weights, at),
            holes=_rows(self.holes, at),
            clusters=None if self.clusters is None else self.clusters[at],
        )

    def only(self, measures: Sequence[Measure]) -> ScoreTable:
        """Return the table with only these measures."""
        names = [self.measure(measure).name for measure in measures]
        return replace(self, measures=tuple(measures), frame=self.frame.select("query_id", *names))

    def measure(self, measure: Measure) -> Measure:
        """Return a measure, or raise a MeasureError if it is not in the table."""
        if measure not in self.measures:
            raise MeasureError(
                f"{measure} is not in the scores",
                hint=f"the scores contain {', '.join(map(str, self.measures))}",
            )
        return measure

    def values(self, measure: Measure) -> list[float]:
        """Return the values of a measure that are not null, in the order of the queries."""
        return self.frame[measure.name].drop_nulls().to_list()

    def value(self, measure: Measure) -> float | None:
        """Return the combined value of a measure over all queries, None if there are no values."""
        if measure.declaration.combine == "micro":
            has_value = self.frame[measure.name].is_not_null()
            weights = self.weights[measure.name].filter(has_value).to_list()
            return micro(self.values(measure), weights)
        return combine(measure.declaration.combine, self.values(measure))

    def judged(self, measure: Measure) -> float | None:
        """Return the mean share of judged items in the top k, over the lists that are not empty."""
        return self._mean_of_holes(measure, judged_column(measure))

    def bound(self, measure: Measure) -> float | None:
        """Return the value that a measure would have if all unjudged items were relevant."""
        return self._mean_of_holes(measure, upper_bound_column(measure))

    def _mean_of_holes(self, measure: Measure, name: str | None) -> float | None:
        """Return the mean of a column of `holes` over the queries that have a value."""
        if name not in self.holes.columns:
            return None
        has_value = self.frame[measure.name].is_not_null()
        values = self.holes[name].filter(has_value).drop_nulls().to_list()
        return mean(values) if values else None


def order_of_queries(query_ids: pl.Series) -> pl.Series:
    """Return the order of the rows of several tables by query, or raise an error for a repeat."""
    order = query_ids.arg_sort()
    ordered = query_ids[order]
    repeated = ordered.filter(ordered == ordered.shift())
    if repeated.len():
        raise InputError(
            f"query {repeated[0]!r} is in more than one table",
            hint="put all results of a query into the same partition",
        )
    return order


def total_counts(tables: Sequence[ScoreTable]) -> dict[str, int]:
    """Return the counts of all tables together."""
    return {key: sum(table.counts[key] for table in tables) for key in tables[0].counts}


def judged_column(measure: Measure) -> str | None:
    """Return the column of `holes` with the judged share of the top k; None without a cutoff."""
    declaration = measure.declaration
    takes_rank = declaration.reads.is_graded and declaration.cutoff == "optional"
    if not takes_rank or measure.cutoff is None:
        return None
    return f"Judged@{measure.cutoff}"


def upper_bound_column(measure: Measure) -> str:
    """Return the column of `holes` with the upper bound of a measure."""
    return f"bound:{measure.name}"


def _rows(frame: pl.DataFrame, at: pl.Series) -> pl.DataFrame:
    # A frame without columns has no rows to select.
    return frame[at] if frame.width else frame
