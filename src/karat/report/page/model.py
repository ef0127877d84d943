"""The content of an HTML report, independent of its layout."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import polars as pl

from karat.evaluation.history import History
from karat.evaluation.remarks import main_measure
from karat.evaluation.reranking import Reranking
from karat.evaluation.verdict import Verdict
from karat.report.cells import measure_named
from karat.report.comparison import ComparisonSheet
from karat.report.page.data import QueryDetail, QueryLists
from karat.report.page.queries.query_sample import QuerySample
from karat.report.sheet import Sheet

Json = dict[str, Any]

FindingKind = Literal[
    "decides",
    "reverses",
    "unfound",
    "nothing",
    "failed",
    "missing",
    "unjudged",
    "group",
    "duplicates",
    "unanswerable",
]

RUN_COLOURS = 8
"""The number of colours of runs in theme.css."""


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
class Quote:
    """An example: what a query asks, and the text that no run found."""

    query_id: str
    query: str | None
    missed: str
    """The text of the missed gold, or its name if the text is unknown."""


@dataclass(frozen=True)
class KeyFinding:
    """A key finding: one sentence, its number, and the queries that it is about."""

    kind: FindingKind
    text: str
    show: Json | None = None
    """Filters for the list of queries: {"run": name} with "outcome", or {"field", "value"}."""
    number: str = ""
    """The number of the finding, shown large, such as "3 of 12"."""
    quote: Quote | None = None


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
    """(run, stage, model, calls, prompt_tokens, completion_tokens, usd, queries); calls without a
    price are in rows of their own, with null for usd; queries of the run that did not fail."""
    tradeoffs: pl.DataFrame | None = None
    """(run, latency_ms, context_tokens, context_characters): the median latency, the mean number
    of prompt tokens of the stage `generation`, and the mean number of characters up to the cutoff
    of the first measure."""
    contexts: pl.DataFrame | None = None
    """(run, measure, k, value, characters): recall of spans and evidence texts at k, and the mean
    number of characters of the first k items."""


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
    sample: QuerySample | None = None
    """Which queries these are, if the page does not list all of them."""


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
    findings: list[KeyFinding]
    chart_data: ChartData
    queries: Queries
    full_paths: bool = False
    """Whether full paths are shown, instead of base names."""
    rerankings: Sequence[Reranking] = ()
    """Of each run with candidates, what its reranker did."""
    reranking_problems: Sequence[str] = ()
    """Why this is not known of other runs with candidates."""
    history: History | None = None
    """The values of earlier scores and of these, if a history was requested."""

    @cached_property
    def main_measure(self) -> str:
        """The measure that the headline, the plot and the lists are about."""
        return main_measure([sheet.scores for sheet in self.sheets]).name

    @cached_property
    def ranking(self) -> list[int]:
        """The indices of the runs, the best by the main measure first."""
        values = [sheet.row(self.main_measure)["value"] for sheet in self.sheets]
        sign = -1 if measure_named(self.main_measure).declaration.higher_is_better else 1
        return sorted(
            range(len(values)),
            key=lambda at: math.inf if values[at] is None else sign * values[at],
        )

    @property
    def best(self) -> int | None:
        """The index of the best run by the main measure; None if no run has a value."""
        first = self.ranking[0]
        return None if self.sheets[first].row(self.main_measure)["value"] is None else first

    @property
    def pair(self) -> tuple[int, int] | None:
        """The runs that are compared at first: the baseline or the second best, and the best."""
        if len(self.sheets) < 2:
            return None
        order = self.ranking
        baseline = None if self.comparison is None else self.comparison.comparison.baseline
        if baseline is None:
            return order[1], order[0]
        first = [sheet.name for sheet in self.sheets].index(baseline)
        return first, next(at for at in order if at != first)

    @cached_property
    def baseline(self) -> int | None:
        """The index of the run that others are compared with, if one was chosen."""
        names = [sheet.name for sheet in self.sheets]
        if self.comparison is not None and self.comparison.comparison.baseline is not None:
            return names.index(self.comparison.comparison.baseline)
        is_gate_with_baseline = self.verdict is not None and len(names) > 1
        return 0 if is_gate_with_baseline else None

    @cached_property
    def run_colours(self) -> list[str]:
        """The colour of each run, as a CSS variable.

        Nine or more colours cannot be told apart: then only the best run and the baseline have one.
        """
        if len(self.sheets) <= RUN_COLOURS:
            return [f"var(--run-{at})" for at in range(len(self.sheets))]
        colours = ["var(--run-other)"] * len(self.sheets)
        if self.baseline is not None:
            colours[self.baseline] = "var(--run-1)"
        if self.best is not None:
            colours[self.best] = "var(--run-0)"
        return colours
