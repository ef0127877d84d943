"""The sample of queries that a page lists if there are very many, or if runs or gold are large."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from karat.arrays import Ints
from karat.evaluation.scores import Scores
from karat.report.page.queries.informative import informative_queries
from karat.stats.resampling import SEED

MOST_LISTED = 10_000
"""Up to this many queries, a page lists all of them."""
SAMPLE_SIZE = 2_000
_SMALLEST_SAMPLE = 2
_SHARE_OF_MEMORY = 1 / 4
"""The share of the memory limit that the lists of a sample may take, for all runs."""
_EXPANSION = 3
"""Memory for the lists of a page or chart, as a multiple of the size of the runs."""


@dataclass(frozen=True)
class QuerySample:
    """The queries that a page lists; values, intervals and tests are over all queries."""

    rows: Ints
    """The rows of the listed queries in the scores, in ascending order."""
    random_rows: Ints
    """Those that were chosen at random. Charts and findings about lists are made from them."""
    n_queries: int
    """The number of all queries."""

    @classmethod
    def of(cls, scores: Sequence[Scores]) -> QuerySample | None:
        """Return the sample of a page: the same for the same input; None if all are listed.

        Half of the queries are the most informative ones, the others are chosen at random.
        """
        n = scores[0].table.frame.height
        size = _sample_size(scores, n)
        if size >= n:
            return None
        bits = np.random.PCG64(SEED).random_raw(n)
        at_random = np.sort(np.argsort(bits, kind="stable")[: size - size // 2])
        first = scores[0].table.measures[0]
        values = np.array(
            [score.table.frame[first.name].fill_null(float("nan")).to_numpy() for score in scores]
        )
        informative = informative_queries(
            values,
            np.zeros(n, np.bool_),
            size // 2,
            higher_is_better=first.declaration.higher_is_better,
        )
        return cls(np.union1d(at_random, informative), at_random, n)

    def ids(self, scores: Scores) -> pl.Series:
        """Return the ids of the listed queries."""
        return scores.table.frame["query_id"].gather(self.rows)

    def random_ids(self, scores: Scores) -> pl.Series:
        """Return the ids of the queries that were chosen at random."""
        return scores.table.frame["query_id"].gather(self.random_rows)

    @property
    def selection(self) -> str:
        """Which queries are listed, in words."""
        n_random = self.random_rows.size
        n_informative = self.rows.size - n_random
        if not n_informative:
            return self.of_charts
        return (
            f"{self.rows.size:,} of {self.n_queries:,} queries: {n_informative:,} chosen as most "
            f"informative and {n_random:,} chosen at random"
        )

    @property
    def of_charts(self) -> str:
        """Which queries charts of lists are drawn from."""
        return f"{self.random_rows.size:,} of {self.n_queries:,} queries, chosen at random"


def _sample_size(scores: Sequence[Scores], n: int) -> int:
    """Return how many queries are listed; fewer if their lists would not fit into memory."""
    runs = [score.scored_run for score in scores if score.scored_run is not None]
    if not lists_exceed_memory(scores):
        return n if n <= MOST_LISTED else SAMPLE_SIZE
    share = min(run.share_in_memory for run in runs)
    fitting = int(_SHARE_OF_MEMORY * share * n / len(runs))
    return max(min(SAMPLE_SIZE, fitting), _SMALLEST_SAMPLE)


def lists_exceed_memory(scores: Sequence[Scores]) -> bool:
    """Return whether the lists of all queries, of all runs together, exceed the memory limit."""
    runs = [score.scored_run for score in scores if score.scored_run is not None]
    size = sum(run.source.content_bytes for run in runs)
    return any(run.too_large or _EXPANSION * size > run.session.memory for run in runs)
