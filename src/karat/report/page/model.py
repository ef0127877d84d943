"""The content of an HTML report, independent of its layout."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import polars as pl

from karat.evaluation.verdict import Verdict
from karat.report.cells import measure_named
from karat.report.comparison import ComparisonSheet
from karat.report.page.data import QueryDetail, QueryLists
from karat.report.sheet import Sheet

Json = dict[str, Any]


@dataclass(frozen=True)
class Input:
    """An input of the report: its role, and what identifies it."""

    role: str
    """gold, run, scores, corpus, chunks or settings."""
    name: str
    """The path as it was given, or a name for data in memory."""
    size: int | None = None
    sha256: str | None = None
    """For a folder, the digest of all its files; None for data in memory."""


@dataclass(frozen=True)
class Notice:
    """An observation: a sentence, and the queries that it is about."""

    kind: str
    """group, nothing, unfound, duplicates, unjudged, failed or missing."""
    text: str
    show: Json | None = None
    """Filters for the table of queries: {"run": name} with "outcome", or {"field", "value"}."""


@dataclass(frozen=True)
class ChartData:
    """The tables that charts are drawn from; None if a table has no data."""

    curves: pl.DataFrame | None = None
    """(run, measure, k, value): the name of a measure without its cutoff, and the cutoff."""
    precision_recall: pl.DataFrame | None = None
    """(run, recall, precision): interpolated precision at the eleven standard recall levels."""
    latencies: pl.DataFrame | None = None
    """(run, stage, ms): one row per timed query and stage."""
    costs: pl.DataFrame | None = None
    """(run, stage, model, calls, prompt_tokens, completion_tokens, usd); calls without a price
    are in rows of their own, with null for usd."""
    tradeoffs: pl.DataFrame | None = None
    """(run, latency_ms, context_tokens, context_characters): the median latency, the mean number
    of prompt tokens of the stage `generation`, and the mean number of characters up to the cutoff
    of the first measure."""


@dataclass(frozen=True)
class Outcomes:
    """The outcome of each query in one run, row by row."""

    status: pl.Series
    """0 answered, 1 not in the run, 2 failed, 3 only scores available (UInt8)."""
    found: pl.Series
    """Number of found items, spans or evidence texts, as the first measure counts them (Int32)."""
    first: pl.Series
    """The rank of the first of them, 0 if there is none (Int32)."""


@dataclass(frozen=True)
class Queries:
    """The queries of a page; all columns have one row per query, in the same order."""

    ids: pl.Series
    texts: pl.Series | None
    """The beginning of each query text."""
    fields: pl.DataFrame
    """The fields of the queries, as text."""
    n_relevant: pl.Series
    """Number of relevant items, spans or evidence texts; 0 if unknown (Int32)."""
    outcomes: list[Outcomes]
    """One per run; empty if the ranked lists are not available."""
    lists: Sequence[QueryLists]
    """One per query: the ranked lists of all runs; may be empty."""
    details: dict[int, QueryDetail] = field(default_factory=dict)
    """By row number: texts, calculations and highlights of the most informative queries."""
    chunks: list[str] = field(default_factory=list)
    """The texts of retrieved items; `details` refer to them by number."""


@dataclass(frozen=True)
class Page:
    """One report: of scores, of a comparison, or of a verdict with the scores behind it."""

    title: str
    created: str
    """The time of creation, as ISO 8601 in UTC."""
    command: str | None
    """The command line that made the report, if any."""
    sheets: list[Sheet]
    groups: list[Sheet]
    """The scores by groups: one sheet per grouping and run."""
    comparison: ComparisonSheet | None
    verdict: Verdict | None
    inputs: list[Input]
    run_settings: dict[str, Json]
    """The settings in the header of each run, by the name of the run."""
    notices: list[Notice]
    chart_data: ChartData
    queries: Queries

    @cached_property
    def main_measure(self) -> str:
        """The measure that the headline, the plot and the lists are about."""
        measure: str = self.sheets[0].summary["measure"][0]
        return measure

    @cached_property
    def ranking(self) -> list[int]:
        """The indices of the runs, the best by the main measure first."""
        row = self.sheets[0].summary["measure"].to_list().index(self.main_measure)
        values = [sheet.summary["value"][row] for sheet in self.sheets]
        sign = -1 if measure_named(self.main_measure).declaration.higher_is_better else 1
        return sorted(
            range(len(values)),
            key=lambda at: math.inf if values[at] is None else sign * values[at],
        )

    @property
    def best(self) -> int | None:
        """The index of the best run by the main measure; None if no run has a value."""
        row = self.sheets[0].summary["measure"].to_list().index(self.main_measure)
        first = self.ranking[0]
        return None if self.sheets[first].summary["value"][row] is None else first
