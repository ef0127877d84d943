"""Coverage of evidence texts, with latency and cost.

A chunk covers an evidence text that is a substring of it, or that is similar enough to it. Both
are compared with single spaces and in lower case; `karat.Matching` documents the full rule. MAP is
as in Manning et al. 2008, MRR as in Voorhees 1999, both over evidence texts, not documents.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl

from karat.errors import InputError
from karat.evaluation.evaluator import Evaluator
from karat.evaluation.scores import Scores
from karat.live.failures import MAX_FAILED
from karat.match import text as texts
from karat.match.text import Matching
from karat.measures import Measure, parse, parse_all
from karat.measures.plan import COSTS, UsageNames, latencies
from karat.measures.presets import PRESETS

MEASURES = PRESETS["coverage"].measures
CONVENTIONS = PRESETS["coverage"].conventions
NAMES = tuple(map(PRESETS["coverage"].label, MEASURES))
"""The names of the measures in a report, in the same order."""

_SPEED = ("average", "P50", "P90", "P99")
_COST = ("sum", "per_query")

Numbers = dict[str, float | None]


@dataclass(frozen=True, eq=False)
class CoverageReport:
    """The coverage, latency and cost of a run; a value is None if there is no data for it."""

    metrics: Numbers
    """The ten metrics by name."""
    per_query: pl.DataFrame
    """One row per query: query_id, then the ten metrics with the same names."""
    speed: dict[str, Numbers] | None
    """For each timed stage: average, P50, P90 and P99 in milliseconds."""
    cost: Numbers | None
    """The cost of the model calls in USD: sum, and per_query."""
    scores: Scores = field(repr=False)
    """The same values as `karat.Scores`, with the queries that were left out and the reasons."""


def covers(chunk: str, evidence: str, fuzzy_threshold: float = 0.7) -> bool:
    r"""Return whether a chunk covers an evidence text.

    Parameters
    ----------
    chunk : str
        The text of the chunk.
    evidence : str
        The evidence text.
    fuzzy_threshold : float, default 0.7
        The minimum similarity if the evidence text is not a substring, above 0 and at most 1.

    Examples
    --------
    >>> covers("The refund is PAID\n within 14 days.", "paid within 14 days")
    True
    """
    return texts.covers(evidence, chunk, Matching(fuzzy_threshold=fuzzy_threshold))


def normalize(text: str) -> str:
    r"""Return a text as it is compared: with single spaces and in lower case.

    Parameters
    ----------
    text : str
        The text.

    Examples
    --------
    >>> normalize(" Paid\n within 14 DAYS ")
    'paid within 14 days'
    """
    return texts.normalize(text)


def evaluate_coverage(
    gold: Any,
    run: Any,
    *,
    fuzzy_threshold: float | None = None,
    score_threshold: float | None = None,
    top_k: int | None = None,
    chunks: Any = None,
    matching: Matching | None = None,
    fail_on_error: float = MAX_FAILED,
) -> CoverageReport:
    """Score a run against the evidence texts of gold.

    Only the arguments matter: environment variables and configuration files are not read.

    Parameters
    ----------
    gold : path, table, records or Gold
        Gold with evidence texts, as `karat.evaluate` accepts it.
    run : path, table, records, Run or retriever
        The run, as `karat.evaluate` accepts it. A retriever is run for every query of gold.
    fuzzy_threshold : float, optional
        The minimum similarity of a chunk to an evidence text that is not a substring of it, above
        0 and at most 1. Default: 0.7.
    score_threshold : float, optional
        Drop results with a lower score. Default: keep all results.
    top_k : int, optional
        Keep the first k results of each query, after `score_threshold`. Default: all results.
    chunks : path, table, records or Chunks, optional
        The table of all chunks, which provides texts to runs that have only ids.
    matching : Matching, optional
        The full rule, such as `karat.Matching(autojunk=True, direction="either")`, instead of
        `fuzzy_threshold`.
    fail_on_error : float, default 0.05
        The largest share of queries that may have failed. If more failed, a RetrieverError is
        raised.

    Returns
    -------
    CoverageReport
        The ten metrics, their values per query, latency and cost.

    Examples
    --------
    >>> gold = [{"query_id": "q", "evidence": ["paid within 14 days", "by bank transfer"]}]
    >>> run = [{"query_id": "q", "results": [{"text": "It is paid within 14 days."}]}]
    >>> evaluate_coverage(gold, run).metrics["EvidenceRecall@3"]
    0.5
    """
    evaluator = Evaluator(
        gold,
        MEASURES,
        conventions=CONVENTIONS,
        chunks=chunks,
        matching=_matching(fuzzy_threshold, matching),
        top_k=top_k,
        score_threshold=score_threshold,
        fail_on_error=fail_on_error,
    )
    loaded = evaluator.source(run).read()
    speed = {stage: latencies(stage) for stage in UsageNames.of(loaded).stages}
    cost = [] if loaded.calls is None else list(map(parse, COSTS))
    latency = [measure for measures in speed.values() for measure in measures]
    unnamed = evaluator.only([*parse_all(MEASURES), *latency, *cost])(loaded)
    scores = replace(unnamed, preset="coverage")  # with the names of the preset
    names = dict(zip(MEASURES, NAMES, strict=True))
    return CoverageReport(
        metrics={name: scores[measure] for measure, name in names.items()},
        per_query=scores.per_query.select("query_id", *MEASURES).rename(names),
        speed={stage: _values(scores, _SPEED, measures) for stage, measures in speed.items()}
        or None,
        cost=_values(scores, _COST, cost) if cost else None,
        scores=scores,
    )


def _matching(fuzzy_threshold: float | None, matching: Matching | None) -> Matching:
    if matching is None:
        return Matching() if fuzzy_threshold is None else Matching(fuzzy_threshold=fuzzy_threshold)
    if fuzzy_threshold is not None:
        raise InputError(
            "fuzzy_threshold and matching cannot be used together",
            field="matching",
            hint="write matching=karat.Matching(fuzzy_threshold=…)",
        )
    return matching


def _values(scores: Scores, names: tuple[str, ...], measures: list[Measure]) -> Numbers:
    return {
        name: scores.table.value(measure) for name, measure in zip(names, measures, strict=True)
    }
