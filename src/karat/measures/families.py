"""The families of measures, and the reasons why a query is excluded or gets a remark.

A family is declared together with the function that matches gold and run into the input of its
kernels. To add a family, declare it here and write its kernels. To add a reason, declare it here
and count it in the function that detects it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
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
    """The input of all kernels of one family: gold and run, matched."""

    data: KernelInput
    has_gold: Flags
    """Which queries have gold of this kind, even if it contains nothing to find."""
    nothing_to_find: Callable[[Measure], Flags]
    """For a measure, which queries have nothing in gold that it could reward."""
    counts: Counts = field(default_factory=dict)
    """By reason (and for a few other counts), how often it applies to each query."""
    presence: tuple[Flags, int] | None = None
    """Which gold queries are in the run, and how many queries of the run are not in gold; None if
    matching has not determined it."""
    characters: Callable[[int], Ints | Floats] | None = None
    """For a cutoff, how many characters each query retrieved; None if ids alone are matched."""

    def data_as(self, kind: type[_Input]) -> _Input:
        """Return the input, which must be of this type."""
        assert isinstance(self.data, kind)
        return self.data


@dataclass(frozen=True)
class Reason:
    """Something that applies to some queries and changes how they are scored."""

    key: str
    """Its name in counts and in JSON files."""
    text: str
    """What is counted, with {} for the number."""
    excluded: Callable[[Conventions], bool] = lambda _: False
    """Whether such queries are excluded."""
    excluded_from: str = ""
    """The measures that they are excluded from, if not all."""
    outcome: Callable[[Conventions, Collection[Family]], str] = lambda _, __: ""
    """What happens to them if they are not excluded, given the conventions and the families that
    are measured."""
    detail: Callable[[Conventions], str] | None = None
    """What `karat explain` states about one such query."""
    noun: str = "query"
    """The word for what is counted."""


@dataclass(frozen=True, eq=False)
class Family:
    """A family of measures: what its kernels read, and how it is described to users."""

    name: FamilyName
    """Also the prefix of its measures; rank measures have no prefix."""
    read: Callable[[PreparedGold, Run, Plan], FamilyInput]
    """Matches gold and run into the input of its kernels."""
    gold: str | None = None
    """The kind of gold that it reads, which is also the attribute of Gold with its table; None if
    it reads only the ids of the queries."""
    noun: str = ""
    """The word for one piece of gold of this kind."""
    target: str = ""
    """The word for one thing to find."""
    defaults: tuple[str, ...] = ()
    """The measures that are used by default."""
    example: str = ""
    """The measure that hints suggest."""
    items: tuple[str, ...] = ()
    """The columns that the results of a run need."""
    nothing: Reason | None = None
    """The reason for queries with gold of this kind that contains nothing to find."""
    hint: str = ""
    """How to provide gold of this kind, appended to hints."""
    made_from: tuple[str, str] | None = None
    """Another kind of gold that it can be made from, and how."""
    empty: str = "nothing was retrieved"
    """What `karat explain` shows instead of an empty list."""
    is_graded: bool = False
    """Whether items have grades, or are unjudged. level="doc" and unjudged="skip" change only the
    lists of such a family."""

    @property
    def reads_gold(self) -> bool:
        """Whether it reads more of gold than the ids of the queries."""
        return self.gold is not None

    @cached_property
    def absent(self) -> Reason:
        """The reason for queries without gold of this kind."""
        return Reason(
            f"no_{self.gold}",
            f"{{}} of gold without {self.gold}",
            _always,
            detail=lambda _: f"gold has no {self.gold} for this query, so it is left out",
        )

    def table(self, gold: Gold) -> pl.DataFrame | None:
        """Return the table of gold of this kind, or None."""
        table: pl.DataFrame | None = None if self.gold is None else getattr(gold, self.gold)
        return table

    def is_in(self, gold: PreparedGold) -> bool:
        """Return whether gold of this kind is present."""
        if self.is_graded:  # the table of judgments is never None, only empty
            return gold.has_judgments
        return self.table(gold.gold) is not None

    @property
    def compares_ids(self) -> bool:
        """Whether only the ids of items are compared."""
        return self.items == ("item_id",)

    @property
    def compares_documents(self) -> bool:
        """Whether spans of documents are compared, so that document ids must agree."""
        return "doc_id" in self.items

    @property
    def compares_texts(self) -> bool:
        """Whether texts are compared, by the rule in `Matching`."""
        return "text" in self.items


def _always(_: Conventions) -> bool:
    return True


def _no_gold_outcome(conventions: Conventions, _: Collection[Family]) -> str:
    words = {"one": " scored 1", "recall": " scored 1 by recall, 0 by other measures"}
    return words.get(conventions.no_gold, " scored 0")


def _failed_outcome(_: Conventions, families: Collection[Family]) -> str:
    parts = []
    if any(family.reads_gold for family in families):
        parts.append("scored as if nothing was retrieved")
    if not all(family.reads_gold for family in families):
        parts.append("excluded from latency, cost and context")
    return f" {', '.join(parts)}"


def _repeats_outcome(conventions: Conventions, _: Collection[Family]) -> str:
    words = {"count": " counted each time", "set": " removed"}
    return words.get(conventions.duplicates, " counted once")


UNKNOWN = Reason("unknown", "{} of the run not in gold", _always)
UNANSWERABLE = Reason(
    "unanswerable",
    "{} without an answer",
    _always,
    detail=lambda _: (
        "gold marks this query as one without an answer (answerable: false), so it is left out"
    ),
)
NOT_RUN = Reason(
    "not_run",
    "{} of gold not in the run",
    _always,
    " of latency, cost and context",
    detail=lambda _: "the run lacks this query, so it is left out",
)
NO_TIMINGS = Reason(
    "no_timings",
    "{} without the requested timing",
    _always,
    " of latency",
    detail=lambda _: "the run has no such timing for this query, so it is left out",
)
NO_TOKENS = Reason(
    "no_tokens",
    "{} with items without a token count",
    _always,
    " of context",
    detail=lambda _: "an item has no token count, so the query is left out",
)
MISSING = Reason(
    "missing",
    "{} of gold not in the run",
    lambda conventions: conventions.missing == "skip",
    outcome=lambda _, __: " scored as if nothing was retrieved",
    detail=lambda conventions: f"the run lacks this query: missing={conventions.missing}",
)
FAILED = Reason("failed", "{} that the retriever failed on", outcome=_failed_outcome)
UNPRICED = Reason(
    "unpriced",
    "{} without a price or token count",
    outcome=lambda _, __: "; cost of their queries unknown",
    detail=lambda _: "a call has no price or no token count, so the cost is unknown",
    noun="call",
)
REPEATS = Reason(
    "repeats",
    "{} repeated in a list",
    outcome=_repeats_outcome,
    detail=lambda conventions: (
        f"an item is repeated in the list: duplicates={conventions.duplicates}"
    ),
    noun="item",
)


def _read_hits(gold: PreparedGold, run: Run, plan: Plan) -> FamilyInput:
    run, removed = _without_repeats(
        gold, collapse_to_documents(run) if plan.level == "doc" else run, plan
    )
    match = match_ids(gold, run, plan.conventions)
    highest = int(gold.ideal.grade.max(initial=0))
    if plan.largest_grade is not None and plan.largest_grade < highest:
        raise MeasureError(
            f"gold contains grade {highest}, but the plan has largest_grade={plan.largest_grade}",
            field="largest_grade",
            hint=f"set largest_grade to the largest grade of the whole gold, at least {highest}",
        )
    hits = replace(match.hits, largest_grade=plan.largest_grade)
    counts: dict[str, Ints | Flags] = {
        REPEATS.key: hits.repeats.count,
        "relevant": hits.n_relevant(1),
        "relevant_found": hits.relevant(1).count,
        **removed,
    }
    presence = match.present, match.unknown
    return FamilyInput(hits, gold.judged, partial(_nothing_relevant, hits=hits), counts, presence)


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
    """Remove repeated items if the convention is `duplicates=set`, and count them per query."""
    if plan.conventions.duplicates != "set":
        return run, {}
    distinct = run.distinct(*(identity or ("item_id",)))
    removed = _list_lengths(gold, run) - _list_lengths(gold, distinct)
    return distinct, {REPEATS.key: removed}


def _list_lengths(gold: PreparedGold, run: Run) -> Ints:
    query, _ = query_and_rank(gold.query_ids, run)
    lengths: Ints = np.bincount(query[query >= 0], minlength=gold.query_ids.len())
    return lengths


def _read_spans(gold: PreparedGold, run: Run, plan: Plan) -> FamilyInput:
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


def _read_evidence(gold: PreparedGold, run: Run, plan: Plan) -> FamilyInput:
    run, removed = _without_repeats(gold, run, plan)
    matches = match_evidence(gold, run, plan.matching, plan.chunks)
    if plan.conventions.duplicates == "error" and matches.is_repeat.any():
        at = matches.is_repeat.argmax()
        raise repeat_error(gold, matches.items.query[at], matches.rank[at])
    empty: Flags = matches.targets.count == 0
    repeats = np.bincount(matches.items.query[matches.is_repeat], minlength=matches.has_gold.size)
    counts = {REPEATS.key: repeats, **removed}
    characters = partial(_characters_of_texts, matches)
    return FamilyInput(matches, matches.has_gold, lambda _: empty, counts, characters=characters)


def _characters_of_texts(matches: EvidenceMatches, k: int) -> Ints | Floats:
    lengths = np.fromiter(map(len, matches.items.text), np.float64)
    in_top = matches.rank <= k
    return np.bincount(matches.items.query[in_top], lengths[in_top], matches.has_gold.size)


def _read_timings(gold: PreparedGold, run: Run, plan: Plan) -> FamilyInput:
    if run.timings is None:
        raise InputError(
            "the run has no timings",
            field="latency_ms",
            hint="add timings to each line of a run in karat's JSON Lines format: "
            '"latency_ms": {"total": 123.4}',
        )
    timings = UsageTable.of(gold.query_ids, run, run.timings)
    untimed = [
        timings.present & (timings.where(**measure.params).rows.count == 0)
        for measure in plan.of_family(LATENCY.name)
    ]
    return _usage_input(timings, {NO_TIMINGS.key: np.logical_or.reduce(untimed)})


def _read_calls(gold: PreparedGold, run: Run, plan: Plan) -> FamilyInput:
    if run.calls is None:
        raise InputError(
            "the run has no model calls",
            field="calls",
            hint="add the calls to each line of a run in karat's JSON Lines format: "
            '"calls": [{"model": "…", '
            '"prompt_tokens": 812, "completion_tokens": 64, "price_per_1k": 0.002}]',
        )
    calls = UsageTable.of(gold.query_ids, run, run.calls)
    is_counted = [calls.matches(measure.params) for measure in plan.of_family(COST.name)]
    unpriced = np.isnan(prices_of(calls)) & np.logical_or.reduce(is_counted)
    return _usage_input(calls, {UNPRICED.key: calls.rows.where(unpriced).count})


def _read_tokens(gold: PreparedGold, run: Run, plan: Plan) -> FamilyInput:
    if "tokens" not in run.results.columns:
        raise InputError(
            "the run has no token counts",
            field="tokens",
            hint="add token counts to the results of a run in karat's JSON Lines format: "
            '{"id": "…", "tokens": 128}; or let `karat run --tokenizer SPEC` count the tokens',
        )
    results = UsageTable.of(gold.query_ids, run, run.results)
    unknown = results.rows.where(np.isnan(tokens_of(results)))
    uncounted = [
        unknown.within(measure.cutoff).count > 0
        for measure in plan.of_family(CONTEXT.name)
        if isinstance(measure.cutoff, int | None)
    ]
    return _usage_input(results, {NO_TOKENS.key: np.logical_or.reduce(uncounted)})


def _usage_input(usage: UsageTable, counts: Counts) -> FamilyInput:
    """Return the input of a measure family that uses only the query ids of gold."""
    every = np.ones(usage.present.size, np.bool_)
    all_counts = {**counts, NOT_RUN.key: ~usage.in_run}
    return FamilyInput(usage, every, lambda _: ~every, all_counts, (usage.in_run, usage.unknown))


RANK = Family(
    "rank",
    _read_hits,
    gold="judgments",
    noun="judgment",
    target="relevant item",
    defaults=("nDCG@10", "R@10", "R@100", "RR@10", "Success@10"),
    example="R@10",
    items=("item_id",),
    nothing=Reason(
        "no_relevant",
        "{} with nothing relevant in gold",
        lambda conventions: conventions.no_gold == "skip",
        outcome=_no_gold_outcome,
        detail=lambda conventions: (
            f"gold has nothing relevant for this query: no_gold={conventions.no_gold}"
        ),
    ),
    is_graded=True,
)
SPAN = Family(
    "span",
    _read_spans,
    gold="spans",
    noun="span",
    target="gold span",
    # With the same k, larger chunks win; a budget of characters is fair to chunks of all sizes.
    defaults=("span.recall@2000c", "span.precision@2000c", "span.iou@2000c"),
    example="span.recall@2000c",
    items=("doc_id", "start", "end"),
    nothing=Reason(
        "no_characters",
        "{} with only empty spans in gold",
        lambda conventions: conventions.no_gold == "skip",
        outcome=lambda _, __: " scored as if there was nothing to find",
        detail=lambda conventions: (
            f"gold has only empty spans for this query: no_gold={conventions.no_gold}"
        ),
    ),
    made_from=("evidence", "`karat locate` finds the spans of evidence texts"),
)
EVIDENCE = Family(
    "evidence",
    _read_evidence,
    gold="evidence",
    noun="evidence text",
    target="evidence text",
    defaults=(
        "evidence.coverage@10",
        "evidence.coverage@3",
        "evidence.full@10",
        "evidence.full@3",
        "evidence.recall@10",
        "evidence.recall@3",
        "evidence.P@5",
        "evidence.AP",
        "evidence.RR",
        "evidence.Success@10",
    ),
    example="evidence.recall@10",
    items=("text",),
    nothing=Reason(
        "no_texts",
        "{} with only empty evidence texts in gold",
        lambda conventions: conventions.no_gold in ("family", "skip"),
        outcome=_no_gold_outcome,
        detail=lambda conventions: (
            f"gold has only empty evidence texts for this query: no_gold={conventions.no_gold}"
        ),
    ),
    hint='; add evidence texts as "evidence": ["…"] to each record of gold, or in Python with '
    "Gold.of(evidence={query: [text, …]})",
)
LATENCY = Family("latency", _read_timings, empty="nothing was timed")
COST = Family("cost", _read_calls, empty="no calls were recorded")
CONTEXT = Family("context", _read_tokens)

# Families are read in this order. If several count repeated items, the last count is shown.
_ALL = (RANK, SPAN, EVIDENCE, LATENCY, COST, CONTEXT)
FAMILIES: dict[FamilyName, Family] = {family.name: family for family in _ALL}
# If gold has several kinds, the default measures are those of the first kind that the run can
# be matched with.
BY_GOLD: dict[str, Family] = {str(family.gold): family for family in (SPAN, EVIDENCE, RANK)}
"""The families that read gold, by the kind of gold, the most specific kind first."""

_REASONS = (
    UNKNOWN,
    UNANSWERABLE,
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
    """Match gold and run for each family in the plan."""
    return dict(inputs_by_family(gold, run, plan))


def inputs_by_family(
    gold: PreparedGold, run: Run, plan: Plan
) -> Iterator[tuple[FamilyName, FamilyInput]]:
    """Yield each family in the plan with its input."""
    for name, family in FAMILIES.items():
        if name in plan.families:
            yield name, _without_unanswerable(family.read(gold, run, plan), gold)


def _without_unanswerable(reading: FamilyInput, gold: PreparedGold) -> FamilyInput:
    """Remove the gold and the counts of queries without an answer."""
    if not gold.unanswerable.any():
        return reading
    is_answerable = ~gold.unanswerable
    counts = {key: np.where(is_answerable, count, 0) for key, count in reading.counts.items()}
    return replace(reading, has_gold=reading.has_gold & is_answerable, counts=counts)
