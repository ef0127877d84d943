"""How much of the text evidence a retriever finds, and what finding it takes.

A chunk covers an evidence text that is a substring of it, or that is similar enough to it, both
with single spaces and in lower case; `karat.Matching` is the rule in full. MAP is as in Manning et
al. 2008, MRR as in Voorhees 1999, both over evidence texts instead of documents.
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
from karat.measures.plan import COSTS, latencies, timed_stages
from karat.measures.presets import PRESETS

MEASURES = PRESETS["coverage"].measures
CONVENTIONS = PRESETS["coverage"].conventions
NAMES = tuple(map(PRESETS["coverage"].label, MEASURES))
"""What the measures are called in a report, in the same order."""

_SPEED = ("average", "P50", "P90", "P99")
_COST = ("sum", "per_query")

Numbers = dict[str, float | None]


@dataclass(frozen=True, eq=False)
class CoverageReport:
    """What a run covered; None is a number that nothing was there for."""

    metrics: Numbers
    """The ten metrics, by their names."""
    per_query: pl.DataFrame
    """One row per query: query_id, then the ten metrics under the same names."""
    speed: dict[str, Numbers] | None
    """For each stage that was timed: average, P50, P90 and P99 in milliseconds."""
    cost: Numbers | None
    """What the model calls cost in USD: sum, and per_query."""
    scores: Scores = field(repr=False)
    """All of it as karat's own scores, with what was left out and why."""


def covers(chunk: str, evidence: str, fuzzy_threshold: float = 0.7) -> bool:
    r"""Return whether a chunk covers an evidence text.

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
    fuzzy_threshold: float | None = None,
    score_threshold: float | None = None,
    top_k: int | None = None,
    chunks: Any = None,
    matching: Matching | None = None,
    fail_on_error: float = MAX_FAILED,
) -> CoverageReport:
    """Score a run against the evidence texts of gold, by these arguments alone.

    Parameters
    ----------
    gold
        Anything that `karat.evaluate` takes as gold, with evidence texts.
    run
        Anything that `karat.evaluate` takes as a run: a path, records, a table, or a retriever,
        which is run for every query of gold.
    fuzzy_threshold
        How similar a chunk must be to cover an evidence text that is not a substring of it, above
        0 and at most 1; 0.7 by default.
    score_threshold
        Leave out results that score below it. There is no threshold by default.
    top_k
        Then keep the first k results of each query; all by default.
    chunks
        The table of all chunks, which gives texts to runs that have only ids.
    matching
        The rule in full, such as `karat.Matching(autojunk=True, direction="either")`, instead of
        `fuzzy_threshold`.
    fail_on_error
        The largest share of queries that may have failed; above it, a RetrieverError is raised.

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
    opened = evaluator.source(run).read()
    speed = {stage: latencies(stage) for stage in timed_stages(opened)}
    cost = [] if opened.calls is None else list(map(parse, COSTS))
    timed = [measure for measures in speed.values() for measure in measures]
    scored = evaluator.only([*parse_all(MEASURES), *timed, *cost])(opened)
    scores = replace(scored, preset="coverage")  # its names, not its environment variables
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
            "fuzzy_threshold and matching are both given",
            field="matching",
            hint="write matching=karat.Matching(fuzzy_threshold=…)",
        )
    return matching


def _values(scores: Scores, words: tuple[str, ...], measures: list[Measure]) -> Numbers:
    return {
        word: scores.table.value(measure) for word, measure in zip(words, measures, strict=True)
    }
