"""What a page shows, whatever lays it out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from karat.evaluation.verdict import Verdict
from karat.report.comparison import ComparisonSheet
from karat.report.sheet import Sheet

Json = dict[str, Any]


@dataclass(frozen=True)
class Input:
    """A file that went in: what it was for, and what tells it from another."""

    role: str
    """gold, run, scores, corpus, chunks or settings."""
    name: str
    """Its path as it was given, or the name of what was given in memory."""
    size: int | None = None
    sha256: str | None = None
    """Of a folder, that of all its files; None for what was given in memory."""


@dataclass(frozen=True)
class Notice:
    """Something to look at first: a sentence, and which queries it is about."""

    kind: str
    """group, nothing, unfound, duplicates, unjudged, failed or missing."""
    text: str
    show: Json | None = None
    """What the table of queries is set to: {"run": name} with "outcome", or {"field", "value"}."""


@dataclass(frozen=True)
class ChartData:
    """What the charts are drawn from; None where the data has no such thing."""

    curves: pl.DataFrame | None = None
    """(run, measure, k, value): the name of a measure without its cutoff, and the cutoff."""
    precision_recall: pl.DataFrame | None = None
    """(run, recall, precision): interpolated, at the eleven points of recall."""
    latencies: pl.DataFrame | None = None
    """(run, stage, ms): a row for each query and stage that was timed."""
    costs: pl.DataFrame | None = None
    """(run, stage, model, calls, prompt_tokens, completion_tokens, usd); usd null: calls
    without a price, which stand in rows of their own."""
    tradeoffs: pl.DataFrame | None = None
    """(run, latency_ms, context_tokens, context_characters): the median latency, the mean tokens of
    the prompts of generation, and the mean characters of what the first measure looks at."""


@dataclass(frozen=True)
class Outcomes:
    """What became of each query in one run, row by row."""

    status: pl.Series
    """0 answered, 1 not in the run, 2 failed, 3 only the scores are available (UInt8)."""
    found: pl.Series
    """How many items count as found, by the kind of gold that the first measure reads (Int32)."""
    first: pl.Series
    """The rank of the first of them, 0 where there is none (Int32)."""


@dataclass(frozen=True)
class Queries:
    """Everything a page knows of the queries; all columns have one row per query, in one order."""

    ids: pl.Series
    texts: pl.Series | None
    """How each query begins."""
    fields: pl.DataFrame
    """The fields of the queries, as text."""
    wanted: pl.Series
    """How much should be found: relevant items, spans or evidence texts; 0 if not known (Int32)."""
    outcomes: list[Outcomes]
    """One per run; empty if the lists are not available."""
    lists: Sequence[Json]
    """One a query: what each run returned, as docs of the page's data tell; may be empty."""
    details: dict[int, Json] = field(default_factory=dict)
    """By the number of the row: texts, calculations and highlights of the most telling queries."""


@dataclass(frozen=True)
class Page:
    """One report: of scores, of a comparison, or of a verdict with the scores behind it."""

    title: str
    created: str
    """When, as ISO 8601 in UTC."""
    command: str | None
    """The command line that made it, where one did."""
    sheets: list[Sheet]
    groups: list[Sheet]
    """The same by groups: for each way of grouping, one a run."""
    comparison: ComparisonSheet | None
    verdict: Verdict | None
    inputs: list[Input]
    run_settings: dict[str, Json]
    """By the name of a run: how it says it was made."""
    notices: list[Notice]
    picture: ChartData
    queries: Queries
