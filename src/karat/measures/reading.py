"""What the kernels of each family read: gold and run brought together, once for all measures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from karat.arrays import Flags, Ints
from karat.data.run import Run
from karat.errors import InputError, MeasureError
from karat.match.evidence import match_evidence
from karat.match.hits import Hits
from karat.match.ids import match_ids, stands_again
from karat.match.level import documents
from karat.match.numbers import listed
from karat.match.prepared import PreparedGold
from karat.match.spans import match_spans
from karat.match.usage_table import UsageTable
from karat.measures.declare import Measure
from karat.measures.families import FamilyName
from karat.measures.plan import Plan
from karat.measures.rank.gain import worth
from karat.measures.run.context import tokens_of
from karat.measures.run.cost import prices_of


@dataclass(frozen=True, eq=False)
class Reading:
    """What the kernels of one family read, and which queries there is something of it for."""

    data: Any
    given: Flags
    nothing: Callable[[Measure], Flags]
    """For which queries gold holds nothing that a measure could reward."""
    counts: Mapping[str, Ints | Flags] = field(default_factory=dict)
    """How often something is true of each query that a person should know."""
    asked: tuple[Flags, int] | None = None
    """Which gold queries the run was asked, and how many others, where matching has told."""


def _ranked(gold: PreparedGold, run: Run, plan: Plan) -> Reading:
    run, removed = _without_repeats(gold, documents(run) if plan.level == "doc" else run, plan)
    match = match_ids(gold, run, plan.conventions)
    highest = int(gold.ideal.grade.max(initial=0))
    if plan.largest_grade is not None and plan.largest_grade < highest:
        raise MeasureError(
            f"gold holds a grade of {highest}, above the plan's {plan.largest_grade}",
            field="largest_grade",
            hint="give the plan the largest grade of the whole gold",
        )
    hits = replace(match.hits, largest_grade=plan.largest_grade)
    counts: dict[str, Ints | Flags] = {
        "no_judgments": ~gold.judged,
        "repeats": hits.repeats.count,
        "relevant": hits.n_relevant(1),
        "relevant_found": hits.relevant(1).count,
        **removed,
    }
    asked = match.present, match.unknown
    return Reading(hits, gold.judged, partial(_nothing_relevant, hits=hits), counts, asked)


def _nothing_relevant(measure: Measure, *, hits: Hits) -> Flags:
    gain = measure.params.get("gain")
    if isinstance(gain, dict):
        rewarded = hits.gold.where(worth(hits.gold.grade, gain) > 0).count
    else:
        rewarded = hits.n_relevant(measure.params.get("rel", 1))
    nothing: Flags = rewarded == 0
    return nothing


def _without_repeats(
    gold: PreparedGold, run: Run, plan: Plan, *identity: str
) -> tuple[Run, dict[str, Ints | Flags]]:
    """Remove repeated items where `duplicates=set` asks for it, and count them for each query."""
    if plan.conventions.duplicates != "set":
        return run, {}
    kept = run.distinct(*(identity or ("item_id",)))
    lengths = [
        np.bincount(query[query >= 0], minlength=gold.query_ids.len())
        for query, _ in (listed(gold.query_ids, run), listed(gold.query_ids, kept))
    ]
    return kept, {"repeats": lengths[0] - lengths[1]}


def _spanned(gold: PreparedGold, run: Run, plan: Plan) -> Reading:
    run, removed = _without_repeats(gold, run, plan, "doc_id", "start", "end")
    touching = any(measure.declaration.needs_chunks for measure in plan.measures)
    coverage = match_spans(gold, run, plan.chunks, touching=touching)
    empty: Flags = coverage.gold_characters == 0
    counts = {"no_spans": ~coverage.given, **removed}
    return Reading(coverage, coverage.given, lambda _: empty, counts)


def _evidenced(gold: PreparedGold, run: Run, plan: Plan) -> Reading:
    run, removed = _without_repeats(gold, run, plan)
    found = match_evidence(gold, run, plan.matching, plan.chunks)
    if plan.conventions.duplicates == "error" and found.again.any():
        at = found.again.argmax()
        raise stands_again(gold, found.items.query[at], found.rank[at])
    empty: Flags = found.pieces.count == 0
    repeats = np.bincount(found.items.query[found.again], minlength=found.given.size)
    counts = {"no_evidence": ~found.given, "repeats": repeats, **removed}
    return Reading(found, found.given, lambda _: empty, counts)


def _timed(gold: PreparedGold, run: Run, plan: Plan) -> Reading:
    if run.timings is None:
        raise InputError(
            "the run holds no timings",
            field="latency_ms",
            hint='write them into each line of a native run: "latency_ms": {"total": 123.4}',
        )
    timings = UsageTable.of(gold.query_ids, run, run.timings)
    lacking = [
        timings.present & (timings.where(**measure.params).places.count == 0)
        for measure in plan.of_family("latency")
    ]
    return _of_the_run(timings, {"no_timings": np.logical_or.reduce(lacking)})


def _called(gold: PreparedGold, run: Run, plan: Plan) -> Reading:
    if run.calls is None:
        raise InputError(
            "the run holds no calls",
            field="calls",
            hint='write them into the lines of a native run: "calls": [{"model": "…", '
            '"prompt_tokens": 812, "completion_tokens": 64, "price_per_1k": 0.002}]',
        )
    calls = UsageTable.of(gold.query_ids, run, run.calls)
    wanted = [calls.holding(measure.params) for measure in plan.of_family("cost")]
    unpriced = np.isnan(prices_of(calls)) & np.logical_or.reduce(wanted)
    return _of_the_run(calls, {"unpriced": calls.places.where(unpriced).count})


def _delivered(gold: PreparedGold, run: Run, plan: Plan) -> Reading:
    if "tokens" not in run.results.columns:
        raise InputError(
            "the run does not say how many tokens its items hold",
            field="tokens",
            hint='write them into the results of a native run: {"id": "…", "tokens": 128}; '
            "karat run --tokenizer counts them",
        )
    results = UsageTable.of(gold.query_ids, run, run.results)
    unknown = results.places.where(np.isnan(tokens_of(results)))
    lacking = [
        unknown.within(measure.cutoff).count > 0
        for measure in plan.of_family("context")
        if isinstance(measure.cutoff, int | None)
    ]
    return _of_the_run(results, {"no_tokens": np.logical_or.reduce(lacking)})


def _of_the_run(usage: UsageTable, counts: Mapping[str, Ints | Flags]) -> Reading:
    """Return a reading of which gold has no say but for its queries."""
    every = np.ones(usage.present.size, np.bool_)
    known = {**counts, "not_run": ~usage.asked}
    return Reading(usage, every, lambda _: ~every, known, (usage.asked, usage.unknown))


READ: dict[FamilyName, Callable[[PreparedGold, Run, Plan], Reading]] = {
    "rank": _ranked,
    "span": _spanned,
    "evidence": _evidenced,
    "latency": _timed,
    "cost": _called,
    "context": _delivered,
}


def read(gold: PreparedGold, run: Run, plan: Plan) -> dict[FamilyName, Reading]:
    """Bring gold and run together for every family that the plan asks for."""
    wanted = {family: way for family, way in READ.items() if family in plan.families}
    return {family: way(gold, run, plan) for family, way in wanted.items()}
