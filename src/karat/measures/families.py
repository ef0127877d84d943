"""Families of measures, and reasons why a query is excluded or needs a remark: each declared once.

A family is what its kernels read, which a function here makes of gold and run. A new family is one
entry here and its kernels; a new reason is one entry here, counted by the function that knows it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Literal, TypeVar

import numpy as np
import polars as pl

from karat.arrays import Flags, Floats, Ints
from karat.conventions import Conventions
from karat.data.gold import Gold
from karat.data.run import Run
from karat.errors import InputError, MeasureError
from karat.match.align import collapse_to_documents, query_and_rank
from karat.match.evidence import EvidenceMatches, match_evidence
from karat.match.gold_index import PreparedGold
from karat.match.hits import Hits
from karat.match.ids import match_ids, repeat_error
from karat.match.spans import Coverage, match_spans
from karat.match.usage_table import UsageTable, prices_of, tokens_of
from karat.measures.array_math import gain_of_grades

if TYPE_CHECKING:
    from karat.measures.plan import Plan
    from karat.measures.registry import Measure

FamilyName = Literal["rank", "span", "evidence", "latency", "cost", "context"]
KernelInput = Hits | Coverage | EvidenceMatches | UsageTable
_Input = TypeVar("_Input", Hits, Coverage, EvidenceMatches, UsageTable)
Counts = Mapping[str, Ints | Flags]


@dataclass(frozen=True, eq=False)
class FamilyInput:
    """What the kernels of one family read: gold and run brought together, for all measures."""

    data: KernelInput
    given: Flags
    """Which queries gold has something of this kind for, even if that is nothing to find."""
    nothing: Callable[[Measure], Flags]
    """For which queries gold holds nothing that a measure could reward."""
    counts: Counts = field(default_factory=dict)
    """How often something is true of each query that a person should know, by reason."""
    asked: tuple[Flags, int] | None = None
    """Which gold queries are in the run, and how many others, if matching has counted them."""
    characters: Callable[[int], Ints | Floats] | None = None
    """How many characters of text each query has up to a rank, if texts or places are read."""

    def data_as(self, kind: type[_Input]) -> _Input:
        """Return what the kernels read, as the type that the family reads."""
        assert isinstance(self.data, kind)
        return self.data


@dataclass(frozen=True)
class Reason:
    """Something that is true of some queries and changes how they are scored."""

    key: str
    """Its name in counts and documents."""
    text: str
    """How many there are, with {} for the number."""
    excluded: Callable[[Conventions], bool] = lambda _: False
    """Whether such queries are excluded."""
    excluded_from: str = ""
    """Which measures they are excluded from, where not from all."""
    outcome: Callable[[Conventions, Collection[Family]], str] = lambda _, __: ""
    """What happens if they are not excluded; the second argument is what is measured."""
    detail: Callable[[Conventions], str] | None = None
    """What an explanation states about one such query."""
    noun: str = "query"
    """What is counted."""


@dataclass(frozen=True, eq=False)
class Family:
    """A family of measures: what its kernels read, and how it is described."""

    name: FamilyName
    """Also the prefix of its measures, except for rank measures, which have none."""
    read: Callable[[PreparedGold, Run, Plan], FamilyInput]
    """Makes what its kernels read."""
    gold: str | None = None
    """The kind of gold that it reads, which is also the name of the table in Gold; None if it reads
    only which queries there are."""
    noun: str = ""
    """The word for one row of gold of this kind."""
    defaults: tuple[str, ...] = ()
    """Its measures if none are named."""
    example: str = ""
    """A measure to name in hints."""
    items: tuple[str, ...] = ()
    """The columns that a run's results need."""
    nothing: Reason | None = None
    """The reason that counts queries for which gold of this kind holds nothing to find."""
    hint: str = ""
    """How gold of this kind is given, where that is not obvious."""
    made_from: tuple[str, str] | None = None
    """Another kind of gold that it can be made from, and how."""
    empty: str = "nothing was retrieved"
    """What an explanation shows instead of an empty list."""
    is_graded: bool = False
    """Whether items are judged by their ids: they have grades, or are unjudged. Only such a family
    reads other lists with level="doc" or unjudged="skip"."""

    @property
    def reads_gold(self) -> bool:
        """Whether it reads more of gold than which queries there are."""
        return self.gold is not None

    @cached_property
    def absent(self) -> Reason:
        """The reason that counts queries without gold of this kind."""
        return Reason(
            f"no_{self.gold}",
            f"{{}} of gold without {self.gold}",
            _is_excluded,
            detail=lambda _: f"gold has no {self.gold} for this query, so it is left out",
        )

    def table(self, gold: Gold) -> pl.DataFrame | None:
        """Return the table of gold of this kind, if there is one."""
        table: pl.DataFrame | None = None if self.gold is None else getattr(gold, self.gold)
        return table

    def is_in(self, gold: PreparedGold) -> bool:
        """Return whether gold of this kind is present."""
        if self.is_graded:  # the table of judgments is empty where there are none
            return bool(gold.judged.any())
        return self.table(gold.gold) is not None

    @property
    def compares_ids(self) -> bool:
        """Whether the ids of items are compared, and nothing else of them."""
        return self.items == ("item_id",)

    @property
    def compares_documents(self) -> bool:
        """Whether places in documents are compared, so that document ids must agree."""
        return "doc_id" in self.items

    @property
    def compares_texts(self) -> bool:
        """Whether texts are compared, by a rule for which texts match."""
        return "text" in self.items


def _is_excluded(_: Conventions) -> bool:
    return True


def _nothing_to_find(conventions: Conventions, _: Collection[Family]) -> str:
    words = {"one": " scored 1", "recall": " scored 1 by recall, 0 by other measures"}
    return words.get(conventions.no_gold, " scored 0")


def _failed(_: Conventions, families: Collection[Family]) -> str:
    parts = []
    if any(family.reads_gold for family in families):
        parts.append("scored as nothing retrieved")
    if not all(family.reads_gold for family in families):
        parts.append("excluded from latency, cost and context")
    return f" {', '.join(parts)}"


def _repeated(conventions: Conventions, _: Collection[Family]) -> str:
    words = {"count": " counted each time", "set": " removed"}
    return words.get(conventions.duplicates, " counted once")


UNKNOWN = Reason("unknown", "{} of the run not in gold", _is_excluded)
NOT_RUN = Reason(
    "not_run",
    "{} of gold not in the run",
    _is_excluded,
    " of latency, cost and context",
    detail=lambda _: "the run lacks this query, so it is left out",
)
NO_TIMINGS = Reason(
    "no_timings",
    "{} without the timing asked for",
    _is_excluded,
    " of latency",
    detail=lambda _: "the run has no such timing for this query, so it is left out",
)
NO_TOKENS = Reason(
    "no_tokens",
    "{} with items of unknown tokens",
    _is_excluded,
    " of context",
    detail=lambda _: "the tokens of an item are not known, so the query is left out",
)
MISSING = Reason(
    "missing",
    "{} of gold not in the run",
    lambda words: words.missing == "skip",
    outcome=lambda _, __: " scored as nothing retrieved",
    detail=lambda words: f"the run lacks this query: missing={words.missing}",
)
FAILED = Reason("failed", "{} that the retriever failed on", outcome=_failed)
UNPRICED = Reason(
    "unpriced",
    "{} without a price or its tokens",
    outcome=lambda _, __: "; cost of their queries unknown",
    detail=lambda _: "a call has no price, or not the tokens it is for: the cost is not known",
    noun="call",
)
REPEATS = Reason(
    "repeats",
    "{} that stand again in a list",
    outcome=_repeated,
    detail=lambda words: f"an item stands again in the list: duplicates={words.duplicates}",
    noun="item",
)


def _ranked(gold: PreparedGold, run: Run, plan: Plan) -> FamilyInput:
    run, removed = _without_repeats(
        gold, collapse_to_documents(run) if plan.level == "doc" else run, plan
    )
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
        REPEATS.key: hits.repeats.count,
        "relevant": hits.n_relevant(1),
        "relevant_found": hits.relevant(1).count,
        **removed,
    }
    asked = match.present, match.unknown
    return FamilyInput(hits, gold.judged, partial(_nothing_relevant, hits=hits), counts, asked)


def _nothing_relevant(measure: Measure, *, hits: Hits) -> Flags:
    gain = measure.params.get("gain")
    if isinstance(gain, dict):
        rewarded = hits.gold.where(gain_of_grades(hits.gold.grade, gain) > 0).count
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
        for query, _ in (query_and_rank(gold.query_ids, run), query_and_rank(gold.query_ids, kept))
    ]
    return kept, {REPEATS.key: lengths[0] - lengths[1]}


def _spanned(gold: PreparedGold, run: Run, plan: Plan) -> FamilyInput:
    run, removed = _without_repeats(gold, run, plan, "doc_id", "start", "end")
    touching = any(measure.declaration.needs_chunks for measure in plan.measures)
    coverage = match_spans(gold, run, plan.chunks, touching=touching)
    empty: Flags = coverage.gold_characters == 0
    return FamilyInput(
        coverage,
        coverage.has_gold,
        lambda _: empty,
        removed,
        characters=lambda k: coverage.within(k).raw,
    )


def _evidenced(gold: PreparedGold, run: Run, plan: Plan) -> FamilyInput:
    run, removed = _without_repeats(gold, run, plan)
    found = match_evidence(gold, run, plan.matching, plan.chunks)
    if plan.conventions.duplicates == "error" and found.is_repeat.any():
        at = found.is_repeat.argmax()
        raise repeat_error(gold, found.items.query[at], found.rank[at])
    empty: Flags = found.targets.count == 0
    repeats = np.bincount(found.items.query[found.is_repeat], minlength=found.has_gold.size)
    counts = {REPEATS.key: repeats, **removed}
    characters = partial(_characters_of_texts, found)
    return FamilyInput(found, found.has_gold, lambda _: empty, counts, characters=characters)


def _characters_of_texts(found: EvidenceMatches, k: int) -> Ints | Floats:
    lengths = np.fromiter(map(len, found.items.text), np.float64)
    kept = found.rank <= k
    return np.bincount(found.items.query[kept], lengths[kept], found.has_gold.size)


def _timed(gold: PreparedGold, run: Run, plan: Plan) -> FamilyInput:
    if run.timings is None:
        raise InputError(
            "the run holds no timings",
            field="latency_ms",
            hint='write them into each line of a native run: "latency_ms": {"total": 123.4}',
        )
    timings = UsageTable.of(gold.query_ids, run, run.timings)
    lacking = [
        timings.present & (timings.where(**measure.params).rows.count == 0)
        for measure in plan.of_family(LATENCY.name)
    ]
    return _of_the_run(timings, {NO_TIMINGS.key: np.logical_or.reduce(lacking)})


def _called(gold: PreparedGold, run: Run, plan: Plan) -> FamilyInput:
    if run.calls is None:
        raise InputError(
            "the run holds no calls",
            field="calls",
            hint='write them into the lines of a native run: "calls": [{"model": "…", '
            '"prompt_tokens": 812, "completion_tokens": 64, "price_per_1k": 0.002}]',
        )
    calls = UsageTable.of(gold.query_ids, run, run.calls)
    wanted = [calls.matches(measure.params) for measure in plan.of_family(COST.name)]
    unpriced = np.isnan(prices_of(calls)) & np.logical_or.reduce(wanted)
    return _of_the_run(calls, {UNPRICED.key: calls.rows.where(unpriced).count})


def _delivered(gold: PreparedGold, run: Run, plan: Plan) -> FamilyInput:
    if "tokens" not in run.results.columns:
        raise InputError(
            "the run does not say how many tokens its items hold",
            field="tokens",
            hint='write them into the results of a native run: {"id": "…", "tokens": 128}; '
            "karat run --tokenizer counts them",
        )
    results = UsageTable.of(gold.query_ids, run, run.results)
    unknown = results.rows.where(np.isnan(tokens_of(results)))
    lacking = [
        unknown.within(measure.cutoff).count > 0
        for measure in plan.of_family(CONTEXT.name)
        if isinstance(measure.cutoff, int | None)
    ]
    return _of_the_run(results, {NO_TOKENS.key: np.logical_or.reduce(lacking)})


def _of_the_run(usage: UsageTable, counts: Counts) -> FamilyInput:
    """Return a reading of which gold has no say but for its queries."""
    every = np.ones(usage.present.size, np.bool_)
    known = {**counts, NOT_RUN.key: ~usage.in_run}
    return FamilyInput(usage, every, lambda _: ~every, known, (usage.in_run, usage.unknown))


RANK = Family(
    "rank",
    _ranked,
    gold="judgments",
    noun="judgment",
    defaults=("nDCG@10", "R@10", "R@100", "RR@10", "Success@10"),
    example="R@10",
    items=("item_id",),
    nothing=Reason(
        "no_relevant",
        "{} with nothing relevant in gold",
        lambda words: words.no_gold == "skip",
        outcome=_nothing_to_find,
        detail=lambda words: f"gold holds nothing relevant here: no_gold={words.no_gold}",
    ),
    is_graded=True,
)
SPAN = Family(
    "span",
    _spanned,
    gold="spans",
    noun="span",
    # At equal k, larger chunks win; a budget of characters is fair to chunks of any size.
    defaults=("span.recall@2000c", "span.precision@2000c", "span.iou@2000c"),
    example="span.recall@2000c",
    items=("doc_id", "start", "end"),
    nothing=Reason(
        "no_characters",
        "{} with no characters in gold's spans",
        lambda words: words.no_gold == "skip",
        outcome=lambda _, __: " scored as nothing to find",
        detail=lambda words: f"gold's spans hold no characters here: no_gold={words.no_gold}",
    ),
    made_from=("evidence", "karat locate makes spans of evidence"),
)
EVIDENCE = Family(
    "evidence",
    _evidenced,
    gold="evidence",
    noun="evidence text",
    defaults=(
        "evidence.P@5",
        "evidence.recall@3",
        "evidence.recall@10",
        "evidence.coverage@3",
        "evidence.coverage@10",
        "evidence.full@3",
        "evidence.full@10",
        "evidence.AP",
        "evidence.RR",
        "evidence.Success@10",
    ),
    example="evidence.recall@10",
    items=("text",),
    nothing=Reason(
        "no_texts",
        "{} with no text in gold's evidence",
        lambda words: words.no_gold in ("family", "skip"),
        outcome=_nothing_to_find,
        detail=lambda words: f"gold's evidence holds no text here: no_gold={words.no_gold}",
    ),
    hint='; texts are given as "evidence": ["…"] in each record of gold, or as '
    "Gold.of(evidence={query: [text, …]})",
)
LATENCY = Family("latency", _timed, empty="nothing was timed")
COST = Family("cost", _called, empty="no call is known of")
CONTEXT = Family("context", _delivered)

# The order in which they are read: of several that count repeats, the last one's count is shown.
_ALL = (RANK, SPAN, EVIDENCE, LATENCY, COST, CONTEXT)
FAMILIES: dict[FamilyName, Family] = {family.name: family for family in _ALL}
# Gold has several kinds: default measures use the first of them that the run can answer.
BY_GOLD: dict[str, Family] = {str(family.gold): family for family in (SPAN, EVIDENCE, RANK)}
"""The families that read gold, by its kind, the most specific kind first."""

_REASONS = (
    UNKNOWN,
    *(family.absent for family in _ALL if family.reads_gold),
    NOT_RUN,
    NO_TIMINGS,
    NO_TOKENS,
    MISSING,
    FAILED,
    *(family.nothing for family in _ALL if family.nothing is not None),
    UNPRICED,
    REPEATS,
)
REASONS: dict[str, Reason] = {reason.key: reason for reason in _REASONS}


def read_inputs(gold: PreparedGold, run: Run, plan: Plan) -> dict[FamilyName, FamilyInput]:
    """Match gold and run for every family that the plan asks for."""
    wanted = {name: family for name, family in FAMILIES.items() if name in plan.families}
    return {name: family.read(gold, run, plan) for name, family in wanted.items()}
