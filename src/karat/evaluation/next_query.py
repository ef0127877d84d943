"""The query to look at next: the worst of a run, or the one that changed most between two runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from karat.evaluation.remarks import main_measure
from karat.evaluation.scores import Scores
from karat.stats.pairs import moved_queries, pair

if TYPE_CHECKING:
    from karat.evaluation.comparison import Comparison


@dataclass(frozen=True)
class NextQuery:
    """A query to explain, with its measure and the names of one or two runs."""

    measure: str
    query_id: str
    runs: tuple[str, ...]


def worst_query(scores: Scores) -> NextQuery | None:
    """Return the query with the worst value of the first measure that has values."""
    for measure in scores.table.measures:
        column = scores.per_query[measure.name]
        row = column.arg_min() if measure.declaration.higher_is_better else column.arg_max()
        if row is not None:
            return NextQuery(measure.name, scores.per_query["query_id"][row], (scores.name,))
    return None


def most_moved_query(comparison: Comparison) -> NextQuery | None:
    """Return the query with the largest change of the main measure.

    The pair of runs with the largest difference is searched first. Saved scores are skipped, since
    they have no ranked lists to explain.
    """
    loadable = [score for score in comparison.scores if score.scored_run is not None]
    tables = {score.name: score.table for score in loadable}
    measure = main_measure(comparison.scores)
    differences = comparison.pairs.filter(measure=measure.name).drop_nulls("difference")
    furthest = differences.sort(pl.col("difference").abs(), descending=True, maintain_order=True)
    for a, b in furthest.select("a", "b").iter_rows():
        if a in tables and b in tables:
            moved = moved_queries(pair(tables[a], tables[b], measure), 1)
            if moved.height:
                largest = moved.row(moved["difference"].abs().arg_max() or 0, named=True)
                return NextQuery(measure.name, largest["query_id"], (a, b))
    return None
