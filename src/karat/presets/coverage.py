"""How much of the text evidence a retriever finds, and what finding it takes.

A chunk covers an evidence that is a substring of it, or that is like enough to it, both with single
spaces and in lower case; `karat.Matching` is the rule in full.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import polars as pl

from karat.conventions import Conventions
from karat.data.run import Run
from karat.evaluation import Evaluator, Scores
from karat.match import texts
from karat.match.texts import Matching
from karat.measures import DEFAULT_EVIDENCE_MEASURES, REGISTRY, Measure, parse

MEASURES = DEFAULT_EVIDENCE_MEASURES
CONVENTIONS = Conventions()
ENVIRONMENT = {"top_k": "RAG_TOP_K", "score_threshold": "RAG_SCORE_THRESHOLD"}
"""Where the preset's settings come from if nobody gives them; `evaluate_coverage` never looks."""

NAMES = (
    "Precision@5",
    "EvidenceRecall@3",
    "EvidenceRecall@10",
    "PerQueryCoverage@3",
    "PerQueryCoverage@10",
    "FullCoverageRate@3",
    "FullCoverageRate@10",
    "MAP",
    "MRR",
    "HitRate@10",
)
"""What the measures are called in a report, in the same order."""

_SPEED = (
    ("average", "latency.mean"),
    ("P50", "latency.p50"),
    ("P90", "latency.p90"),
    ("P99", "latency.p99"),
)
_COST = (("sum", "cost.sum"), ("per_query", "cost.mean"))

Numbers = dict[str, float | None]


@dataclass(frozen=True, eq=False)
class CoverageReport:
    """What a run covered; None is a number that nothing was there for."""

    metrics: Numbers
    """The ten, by their names."""
    per_query: pl.DataFrame
    """A row a query: query_id, then the ten under the same names."""
    speed: dict[str, Numbers] | None
    """Of each stage that was timed: average, P50, P90 and P99 in milliseconds."""
    cost: Numbers | None
    """What the calls of models cost in USD: sum, and per_query."""
    scores: Scores = field(repr=False)
    """All of it as karat's own scores, with what was left out and why."""


def covers(chunk: str, evidence: str, fuzzy_threshold: float = 0.7) -> bool:
    r"""Tell whether a chunk covers an evidence.

    >>> covers("The refund is PAID\n within 14 days.", "paid within 14 days")
    True
    """
    return texts.covers(evidence, chunk, Matching(fuzzy_threshold=fuzzy_threshold))


def normalize(text: str) -> str:
    r"""Return a text as it is compared: with single spaces and in lower case.

    >>> normalize(" Paid\n within 14 DAYS ")
    'paid within 14 days'
    """
    return texts.normalize(text)


def evaluate_coverage(
    gold: Any,
    run: Any,
    *,
    fuzzy_threshold: float = 0.7,
    score_threshold: float | None = None,
    top_k: int | None = None,
) -> CoverageReport:
    """Score a run against gold's evidence, by these arguments alone.

    Both may be whatever `karat.evaluate` takes.

    >>> gold = [{"query_id": "q", "evidence": ["paid within 14 days", "by bank transfer"]}]
    >>> run = [{"query_id": "q", "results": [{"text": "It is paid within 14 days."}]}]
    >>> evaluate_coverage(gold, run).metrics["EvidenceRecall@3"]
    0.5
    """
    opened = Run.open(run)
    stages = [] if opened.timings is None else opened.timings["stage"].unique().sort().to_list()
    # Made, not parsed: a stage may have any name.
    speed = {
        stage: {word: Measure(REGISTRY[name], None, {"stage": stage}) for word, name in _SPEED}
        for stage in stages
    }
    cost = {} if opened.calls is None else {word: parse(name) for word, name in _COST}
    timed = [measure for named in speed.values() for measure in named.values()]
    scores = Evaluator(
        gold,
        [*MEASURES, *timed, *cost.values()],
        conventions=CONVENTIONS,
        matching=Matching(fuzzy_threshold=fuzzy_threshold),
        top_k=top_k,
        score_threshold=score_threshold,
    )(opened)
    names = dict(zip(MEASURES, NAMES, strict=True))
    return CoverageReport(
        metrics={name: scores[measure] for measure, name in names.items()},
        per_query=scores.per_query.select("query_id", *MEASURES).rename(names),
        speed={stage: _values(scores, named) for stage, named in speed.items()} or None,
        cost=_values(scores, cost) or None,
        scores=scores,
    )


def _values(scores: Scores, named: dict[str, Measure]) -> Numbers:
    return {word: scores.table.value(measure) for word, measure in named.items()}
