"""The one query to look at next: the worst of a run, or the one that moved most between two."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from karat.evaluation.scores import Scores
from karat.stats.pairs import moved_queries, pair

if TYPE_CHECKING:
    from karat.evaluation.comparison import Comparison


@dataclass(frozen=True)
class Telling:
    """A query, the measure that tells, and the run or the two runs in which it does."""

    measure: str
    query_id: str
    runs: tuple[str, ...]


def worst(scores: Scores) -> Telling | None:
    """Return the query with the worst value of the first measure that has values."""
    for measure in scores.table.measures:
        column = scores.per_query[measure.name]
        at = column.arg_min() if measure.declaration.higher_is_better else column.arg_max()
        if at is not None:
            return Telling(measure.name, scores.per_query["query_id"][at], (scores.name,))
    return None


def most_moved(comparison: Comparison) -> Telling | None:
    """Return the query that moved most by the first measure, of the runs that are furthest apart.

    Only runs whose lists are available are looked at; saved scores have none.
    """
    loadable = [score for score in comparison.scores if score.scored_run is not None]
    tables = {score.name: score.table for score in loadable}
    measure = comparison.scores[0].table.measures[0]
    rows = comparison.pairs.filter(measure=measure.name).drop_nulls("difference")
    furthest = rows.sort(pl.col("difference").abs(), descending=True, maintain_order=True)
    for a, b in furthest.select("a", "b").iter_rows():
        if a in tables and b in tables:
            found = moved_queries(pair(tables[a], tables[b], measure), 1)
            if found.height:
                most = found.row(found["difference"].abs().arg_max() or 0, named=True)
                return Telling(measure.name, most["query_id"], (a, b))
    return None
