"""Families of measures, and reasons why a query is excluded or needs a remark: each declared once.

A family is what its kernels read. A new family needs an entry here and a way to read it in
`reading.py`; a new reason needs an entry here and must be counted in `reading.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Literal

from karat.conventions import Conventions

FamilyName = Literal["rank", "span", "evidence", "latency", "cost", "context"]


@dataclass(frozen=True)
class Family:
    """A family of measures: what its kernels read, and how it is described."""

    name: FamilyName
    """Also the prefix of its measures, except for rank measures, which have none."""
    gold: str | None = None
    """The kind of gold that it reads; None if it reads only which queries there are."""
    defaults: tuple[str, ...] = ()
    """Its measures if none are named."""
    example: str = ""
    """A measure to name in hints."""
    items: tuple[str, ...] = ()
    """The columns that a run's results need."""
    nothing: str | None = None
    """The reason that counts queries for which gold of this kind holds nothing to find."""
    hint: str = ""
    """How gold of this kind is given, where that is not obvious."""
    empty: str = "nothing was retrieved"
    """What an explanation shows instead of an empty list."""
    is_graded: bool = False
    """Whether items are judged by their ids: they have grades, or are unjudged."""

    @property
    def reads_gold(self) -> bool:
        """Whether it reads more of gold than which queries there are."""
        return self.gold is not None

    @property
    def compares_documents(self) -> bool:
        """Whether places in documents are compared, so that document ids must agree."""
        return "doc_id" in self.items

    @property
    def compares_texts(self) -> bool:
        """Whether texts are compared, by a rule for which texts match."""
        return "text" in self.items


# Gold has several kinds: default measures use the first of them that the run can answer.
_ALL = (
    Family(
        "span",
        gold="spans",
        # At equal k, larger chunks win; a budget of characters is fair to chunks of any size.
        defaults=("span.recall@2000c", "span.precision@2000c", "span.iou@2000c"),
        example="span.recall@2000c",
        items=("doc_id", "start", "end"),
        nothing="no_characters",
    ),
    Family(
        "evidence",
        gold="evidence",
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
        nothing="no_texts",
        hint='; texts are given as "evidence": ["…"] in each record of gold, or as '
        "Gold.of(evidence={query: [text, …]})",
    ),
    Family(
        "rank",
        gold="judgments",
        defaults=("nDCG@10", "R@10", "R@100", "RR@10", "Success@10"),
        example="R@10",
        items=("item_id",),
        nothing="no_relevant",
        is_graded=True,
    ),
    Family("latency", empty="nothing was timed"),
    Family("cost", empty="no call is known of"),
    Family("context"),
)
FAMILIES: dict[FamilyName, Family] = {family.name: family for family in _ALL}
BY_GOLD: dict[str, Family] = {family.gold: family for family in _ALL if family.gold is not None}
"""The families that read gold, by its kind, the most specific kind first."""


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


_REASONS = (
    Reason("unknown", "{} of the run not in gold", _is_excluded),
    Reason(
        "no_judgments",
        "{} of gold without judgments",
        _is_excluded,
        detail=lambda _: "gold has no judgments for this query, so it is left out",
    ),
    Reason(
        "no_spans",
        "{} of gold without spans",
        _is_excluded,
        detail=lambda _: "gold has no spans for this query, so it is left out",
    ),
    Reason(
        "no_evidence",
        "{} of gold without evidence",
        _is_excluded,
        detail=lambda _: "gold has no evidence for this query, so it is left out",
    ),
    Reason(
        "not_run",
        "{} of gold not in the run",
        _is_excluded,
        " of latency, cost and context",
        detail=lambda _: "the run lacks this query, so it is left out",
    ),
    Reason(
        "no_timings",
        "{} without the timing asked for",
        _is_excluded,
        " of latency",
        detail=lambda _: "the run has no such timing for this query, so it is left out",
    ),
    Reason(
        "no_tokens",
        "{} with items of unknown tokens",
        _is_excluded,
        " of context",
        detail=lambda _: "the tokens of an item are not known, so the query is left out",
    ),
    Reason(
        "missing",
        "{} of gold not in the run",
        lambda words: words.missing == "skip",
        outcome=lambda _, __: " scored as nothing retrieved",
        detail=lambda words: f"the run lacks this query: missing={words.missing}",
    ),
    Reason("failed", "{} that the retriever failed on", outcome=_failed),
    Reason(
        "no_relevant",
        "{} with nothing relevant in gold",
        lambda words: words.no_gold == "skip",
        outcome=_nothing_to_find,
        detail=lambda words: f"gold holds nothing relevant here: no_gold={words.no_gold}",
    ),
    Reason(
        "no_characters",
        "{} with no characters in gold's spans",
        lambda words: words.no_gold == "skip",
        outcome=lambda _, __: " scored as nothing to find",
        detail=lambda words: f"gold's spans hold no characters here: no_gold={words.no_gold}",
    ),
    Reason(
        "no_texts",
        "{} with no text in gold's evidence",
        lambda words: words.no_gold in ("family", "skip"),
        outcome=_nothing_to_find,
        detail=lambda words: f"gold's evidence holds no text here: no_gold={words.no_gold}",
    ),
    Reason(
        "unpriced",
        "{} without a price or its tokens",
        outcome=lambda _, __: "; cost of their queries unknown",
        detail=lambda _: "a call has no price, or not the tokens it is for: the cost is not known",
        noun="call",
    ),
    Reason(
        "repeats",
        "{} that stand again in a list",
        outcome=_repeated,
        detail=lambda words: f"an item stands again in the list: duplicates={words.duplicates}",
        noun="item",
    ),
)
REASONS: dict[str, Reason] = {reason.key: reason for reason in _REASONS}
