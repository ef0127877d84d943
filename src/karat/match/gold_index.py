"""Gold indexed by query, prepared once and used for any number of runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from operator import methodcaller
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from karat.arrays import Flags, Ints
from karat.data.frames import GENERATED_ID, LARGEST_GRADE
from karat.data.gold import Gold
from karat.data.gold_source import PartitionedGold
from karat.data.gold_tables import NO_EVIDENCE, NO_SPANS
from karat.data.ranking import QuerySegments
from karat.data.span_checks import OffsetExplanation, WrongLengths, explain_offsets
from karat.errors import InputError, counted, for_example, warn
from karat.match.align import all_distinct, pair_hashes, query_numbers
from karat.match.hashed_ids import HashedIds
from karat.match.hits import Alternatives, RankedRows, ideal_rows

if TYPE_CHECKING:
    from karat.match.text import Matching


GOLD_SPANS = pl.col("grade") > 0
"""Selects the spans that should be found; as with items, spans of grade 0 are not selected."""


class PreparedGold:
    """Gold with an index of its queries, judgments and evidence texts.

    Queries are numbered in the order of `query_ids`, which are sorted as bytes.
    """

    def __init__(self, gold: Gold) -> None:
        self.gold = gold
        self._evidence: dict[tuple[bool, ...], pl.DataFrame] = {}

    @property
    def mapping(self) -> Mapping[str, Mapping[str, int]] | None:
        """The judgments as dicts, or None if gold was read from a table."""
        return self.gold.mapping

    @cached_property
    def query_ids(self) -> pl.Series:
        """The ids of all gold queries."""
        return self.gold.query_ids

    @cached_property
    def number(self) -> dict[str, int]:
        """The number of each query, by id."""
        return dict(zip(self.query_ids.to_list(), range(self.query_ids.len()), strict=True))

    def only(self, query_ids: Iterable[str]) -> Gold:
        """Return the gold of some queries."""
        return self.gold.only(*query_ids)

    @property
    def share_in_memory(self) -> float:
        """The approximate share of gold that fits into the memory limit."""
        return 1.0

    def equals(self, other: PreparedGold) -> bool:
        """Return whether the rows of both are equal, and in the same order."""
        if self.gold is other.gold:
            return True
        tables = [
            (prepared.gold.judgments, prepared.gold.spans, prepared.gold.evidence)
            for prepared in (self, other)
        ]
        return not isinstance(other, PreparedParts) and all(map(_are_equal, *tables))

    @cached_property
    def judged(self) -> Flags:
        """Which queries have a list of judgments, even an empty one."""
        flags: Flags = self.query_ids.is_in(self.gold.query_ids_judged.implode()).to_numpy()
        return flags

    @property
    def has_judgments(self) -> bool:
        """Whether a query has a list of judgments, even an empty one."""
        return bool(self.judged.any())

    @cached_property
    def has_hashes(self) -> bool:
        """Whether there are judgments, and all of their ids are hashes of texts."""
        item_ids = self.gold.judgments["item_id"]
        return bool(item_ids.len()) and _are_hashes(item_ids)

    @cached_property
    def unanswerable(self) -> Flags:
        """Which queries have no answer."""
        flags: Flags = self.query_ids.is_in(self.gold.unanswerable.implode()).to_numpy()
        return flags

    @cached_property
    def has_evidence(self) -> Flags:
        """Which queries have a list of evidence texts, even an empty one."""
        evidence = NO_EVIDENCE if self.gold.evidence is None else self.gold.evidence
        empty = pl.Series("query_id", self.gold.empty_evidence, pl.String)
        with_evidence = pl.concat([evidence["query_id"], empty])
        flags: Flags = self.query_ids.is_in(with_evidence.implode()).to_numpy()
        return flags

    def evidence(self, matching: Matching) -> pl.DataFrame:
        """Return the evidence texts (query_id, text), sorted, without those that are empty.

        A text is empty if nothing is left after normalisation. A warning counts the empty texts,
        once for each way to normalise.
        """
        key = _normalization(matching)
        if key not in self._evidence:
            evidence, empty = _split_evidence(self.gold, matching)
            _warn_of_empty_texts(empty["query_id"])
            self._evidence[key] = evidence.sort("query_id", "text")
        return self._evidence[key]

    def check_evidence(self, matching: Matching) -> None:
        """Warn of empty evidence texts, once for each way to normalise."""
        self.evidence(matching)

    @cached_property
    def table(self) -> pl.DataFrame:
        """The judgments (item_id, query, grade, key), with one row per query and item."""
        judgments = self.gold.judgments
        segments = QuerySegments.of(judgments["query_id"])
        numbers = query_numbers(self.query_ids, segments.query_ids)
        keys = pair_hashes(judgments["item_id"], numbers.astype(np.uint64), segments.lengths)
        table = judgments.select(
            "item_id", pl.Series("query", np.repeat(numbers, segments.lengths)), "grade", keys
        )
        # Without grouped queries, a repeated judgment can be anywhere.
        starts = segments.starts if segments.contiguous else segments.starts[:1]
        if all_distinct(keys, starts):
            return table
        table = table.group_by("query", "item_id").agg(pl.col("grade").max())
        return table.with_columns(_hash_column(table))

    @property
    def repeats(self) -> int:
        """How many judgments repeat one of the same query and item."""
        return 0 if self.mapping is not None else self.gold.judgments.height - self.table.height

    @property
    def contradictions(self) -> pl.DataFrame:
        """The queries without an answer that still have something to find."""
        return self.gold.unanswerable_with_gold

    @property
    def span_documents(self) -> pl.Series:
        """The distinct ids of the documents of all spans that should be found."""
        return _spans(self.gold).filter(GOLD_SPANS)["doc_id"].unique()

    @property
    def wrong_lengths(self) -> WrongLengths:
        """The spans that differ in length from their texts."""
        return WrongLengths.of(_spans(self.gold), self.gold.offsets)

    def explain_offsets(self) -> OffsetExplanation | None:
        """Return the likely cause if spans differ in length from their texts, or None."""
        return explain_offsets([_spans(self.gold)], self.gold.offsets)

    @cached_property
    def alternatives(self) -> Alternatives | None:
        """The groups of interchangeable items; `rank` holds row numbers of `table`, not ranks."""
        if self.gold.any_of is None:
            return None
        rows = self.table.select("query", "item_id", "grade").with_row_index("row")
        numbers = self.query_ids.to_frame().with_row_index("query")
        pairs = (
            self.gold.any_of.join(numbers, on="query_id")
            .with_columns(pl.col("query").cast(pl.Int64))
            .join(rows, on=["query", "item_id"])
            .select("query", "group", pl.col("row").cast(pl.Int64), "grade")
            .unique()
            .sort("query", "group", "row")
        )
        members = pairs.select("query", "row", "grade").unique().sort("row")
        groups = pairs.select("query", "group").unique().sort("query", "group")
        group = pairs.join(
            groups.with_row_index("number"), on=["query", "group"], maintain_order="left"
        )
        return Alternatives(
            query=members["query"].to_numpy(),
            rank=members["row"].to_numpy(),
            grade=members["grade"].to_numpy(),
            member=np.searchsorted(members["row"].to_numpy(), pairs["row"].to_numpy()),
            group=group["number"].cast(pl.Int64).to_numpy(),
            group_query=groups["query"].to_numpy(),
        )

    @cached_property
    def ideal(self) -> RankedRows:
        """The ideal list of each query: its grades, highest first."""
        query, grade = self.flat
        return ideal_rows(self.query_ids.len(), query, grade)

    @cached_property
    def relevant_ids(self) -> pl.Series | HashedIds:
        """The distinct ids of all relevant items, or of all judged items if none is relevant."""
        judgments = self.gold.judgments
        relevant = judgments.filter(pl.col("grade") > 0)
        if relevant.height:
            judgments = relevant
        return judgments["item_id"].unique().sort()

    @cached_property
    def largest_grade(self) -> int:
        """The highest grade of all judgments, at least 1."""
        return int(self.flat[1].max(initial=1))

    @cached_property
    def flat(self) -> tuple[Ints, Ints]:
        """The query number and the grade of all judgments, in the order of `mapping` or `table`."""
        query, grade = self._flat
        extreme = max(int(grade.max(initial=0)), int(grade.min(initial=0)), key=abs)
        if abs(extreme) >= LARGEST_GRADE:
            raise InputError(
                f"must be between {-LARGEST_GRADE + 1} and {LARGEST_GRADE - 1}, got {extreme}",
                field="grade",
                hint="use small integers such as 0, 1, 2, 3",
            )
        return query, grade

    @property
    def _flat(self) -> tuple[Ints, Ints]:
        if self.mapping is None:
            return self.table["query"].to_numpy(), self.table["grade"].to_numpy()
        counts = np.fromiter(map(len, self.mapping.values()), np.int64, len(self.mapping))
        values = chain.from_iterable(map(methodcaller("values"), self.mapping.values()))
        grade = np.fromiter(values, np.int64, int(counts.sum()))
        numbers = np.fromiter(map(self.number.__getitem__, self.mapping), np.int64, counts.size)
        return np.repeat(numbers, counts), grade


class PreparedParts(PreparedGold):
    """Gold in parts of whole queries, whose rows are in temporary files.

    It has what is known about the whole gold. The rows are only in its parts.
    """

    def __init__(self, gold: PartitionedGold) -> None:
        super().__init__(gold.outline)
        self._parts = gold
        self._facts = [_GoldFacts.of(part) for part in self.parts()]
        self._checked: set[tuple[bool, ...]] = set()
        """The ways to normalise for which empty evidence texts were counted."""

    @property
    def n_parts(self) -> int:
        """The number of the parts."""
        return self._parts.n_parts

    def part(self, number: int) -> PreparedGold:
        """Return the gold of a part."""
        return PreparedGold(self._parts.part(number))

    def parts(self) -> Iterator[PreparedGold]:
        """Yield the gold of each part."""
        return map(self.part, range(self.n_parts))

    def only(self, query_ids: Iterable[str]) -> Gold:
        """Return the gold of some queries."""
        return self._parts.only(*query_ids)

    @property
    def share_in_memory(self) -> float:
        """The approximate share of gold that fits into the memory limit."""
        return self._parts.share_in_memory

    def equals(self, other: PreparedGold) -> bool:
        """Return whether both have the same number of parts, with equal rows."""
        if self.gold is other.gold:
            return True
        if not isinstance(other, PreparedParts) or self.n_parts != other.n_parts:
            return False
        return all(map(PreparedGold.equals, self.parts(), other.parts()))

    @property
    def has_judgments(self) -> bool:
        """Whether a query has a list of judgments, even an empty one."""
        return any(facts.has_judgments for facts in self._facts)

    @property
    def has_hashes(self) -> bool:
        """Whether there are judgments, and all of their ids are hashes of texts."""
        of_parts = [facts.has_hashes for facts in self._facts if facts.has_items]
        return bool(of_parts) and all(of_parts)

    @property
    def repeats(self) -> int:
        """How many judgments repeat one of the same query and item."""
        return sum(facts.repeats for facts in self._facts)

    @property
    def contradictions(self) -> pl.DataFrame:
        """The queries without an answer that still have something to find."""
        return pl.concat([facts.contradictions for facts in self._facts]).sort(
            "query_id", maintain_order=True
        )

    @cached_property
    def largest_grade(self) -> int:
        """The highest grade of all judgments, at least 1."""
        return max(facts.largest_grade for facts in self._facts)

    @property
    def span_documents(self) -> pl.Series:
        """The distinct ids of the documents of all spans that should be found."""
        return pl.concat([facts.span_documents for facts in self._facts]).unique()

    @property
    def wrong_lengths(self) -> WrongLengths:
        """The spans that differ in length from their texts."""
        return WrongLengths.merged(facts.wrong_lengths for facts in self._facts)

    def explain_offsets(self) -> OffsetExplanation | None:
        """Return the likely cause if spans differ in length from their texts, or None."""
        tables = (_spans(part.gold) for part in self.parts())
        return explain_offsets(tables, self.gold.offsets)

    def check_evidence(self, matching: Matching) -> None:
        """Warn of empty evidence texts, once for each way to normalise."""
        if _normalization(matching) in self._checked:
            return
        self._checked.add(_normalization(matching))
        empty = [_split_evidence(part.gold, matching)[1]["query_id"] for part in self.parts()]
        _warn_of_empty_texts(pl.concat(empty))

    @cached_property
    def relevant_ids(self) -> pl.Series | HashedIds:
        """The distinct ids that `PreparedGold.relevant_ids` has, as hashes."""
        return HashedIds(self._relevant_ids_of_parts)

    def _relevant_ids_of_parts(self) -> Iterator[pl.Series]:
        has_relevant = any(facts.has_relevant for facts in self._facts)
        for part in self.parts():
            judgments = part.gold.judgments
            if has_relevant:
                judgments = judgments.filter(pl.col("grade") > 0)
            yield judgments["item_id"].unique()


@dataclass(frozen=True)
class _GoldFacts:
    """What is known about gold apart from its rows, for one part."""

    has_judgments: bool
    has_items: bool
    has_hashes: bool
    has_relevant: bool
    repeats: int
    largest_grade: int
    contradictions: pl.DataFrame
    span_documents: pl.Series
    wrong_lengths: WrongLengths

    @classmethod
    def of(cls, part: PreparedGold) -> _GoldFacts:
        judgments = part.gold.judgments
        return cls(
            part.has_judgments,
            judgments.height > 0,
            part.has_hashes,
            bool((judgments["grade"] > 0).any()),
            part.repeats,
            part.largest_grade,
            part.contradictions,
            part.span_documents,
            part.wrong_lengths,
        )


class GoldParts:
    """Gold of which parts, with some of the queries, are taken quickly."""

    def __init__(self, prepared: PreparedGold) -> None:
        self.query_ids = prepared.query_ids
        self._judged = prepared.judged
        self._gold = gold = prepared.gold
        tables = {
            "judgment_data": gold.judgments,
            "query_data": gold.query_data,
            "spans": gold.spans,
            "evidence": gold.evidence,
            "any_of": gold.any_of,
        }
        self._tables = {
            name: None if table is None else _TableByQuery.of(table, self.query_ids)
            for name, table in tables.items()
        }

    def numbers(self, query_ids: pl.Series) -> Ints:
        """Return the number of each query, or -1 if gold does not have it."""
        return _query_numbers(self.query_ids, query_ids)

    def part(self, numbers: Ints) -> PreparedGold:
        """Return the gold of some queries, given by their numbers."""
        numbers = np.sort(numbers)
        ids = set(self.query_ids.gather(numbers)) if self._has_empty_lists else set()
        gold = self._gold
        rows: dict[str, Any] = {
            name: None if table is None else table.rows(numbers)
            for name, table in self._tables.items()
        }
        part = Gold(
            **rows,
            empty_judgments=[query for query in gold.empty_judgments if query in ids],
            empty_spans=[query for query in gold.empty_spans if query in ids],
            empty_evidence=[query for query in gold.empty_evidence if query in ids],
            offsets=gold.offsets,
            name=gold.name,
        )
        return _PreparedPart(part, self.query_ids.gather(numbers), self._judged[numbers])

    @property
    def _has_empty_lists(self) -> bool:
        gold = self._gold
        return bool(gold.empty_judgments or gold.empty_spans or gold.empty_evidence)


class _PreparedPart(PreparedGold):
    """Gold of some queries, with what is known from the whole gold."""

    def __init__(self, gold: Gold, query_ids: pl.Series, judged: Flags) -> None:
        super().__init__(gold)
        self._known = query_ids, judged

    @cached_property
    def query_ids(self) -> pl.Series:
        """The ids of the queries."""
        return self._known[0]

    @cached_property
    def judged(self) -> Flags:
        """Which queries have a list of judgments, even an empty one."""
        return self._known[1]


@dataclass(frozen=True, eq=False)
class _TableByQuery:
    """A table sorted by query, and the position of the first row of each query."""

    table: pl.DataFrame
    starts: Ints

    @classmethod
    def of(cls, table: pl.DataFrame, query_ids: pl.Series) -> _TableByQuery:
        segments = QuerySegments.of(table["query_id"])
        numbers = np.repeat(_query_numbers(query_ids, segments.query_ids), segments.lengths)
        if (numbers[1:] < numbers[:-1]).any():
            order = np.argsort(numbers, kind="stable")
            table, numbers = table[order], numbers[order]
        return cls(table, np.searchsorted(numbers, np.arange(query_ids.len() + 1)))

    def rows(self, numbers: Ints) -> pl.DataFrame:
        """Return the rows of some queries, given by their sorted numbers."""
        if not numbers.size:
            return self.table.clear()
        first, last = int(numbers[0]), int(numbers[-1])
        if last - first + 1 == numbers.size:
            return self.table[int(self.starts[first]) : int(self.starts[last + 1])]
        starts = self.starts[numbers]
        lengths = self.starts[numbers + 1] - starts
        before = np.cumsum(lengths) - lengths
        positions: Ints = np.arange(lengths.sum()) + np.repeat(starts - before, lengths)
        return self.table.select(pl.all().gather(positions))


def _query_numbers(query_ids: pl.Series, ids: pl.Series) -> Ints:
    """Return the position of each id in sorted ids, or -1 if it is not there."""
    if not query_ids.len() or not ids.len():
        return np.full(ids.len(), -1)
    # Most runs are in the order of gold, and comparing ids is faster than searching them.
    first = query_ids.search_sorted(ids[0])
    if query_ids.slice(first, ids.len()).equals(ids):
        return np.arange(first, first + ids.len())
    position = query_ids.search_sorted(ids).clip(0, query_ids.len() - 1)
    is_there = (query_ids.gather(position) == ids).to_numpy()
    return np.where(is_there, position.to_numpy().astype(np.int64), -1)


def _are_equal(table: pl.DataFrame | None, other: pl.DataFrame | None) -> bool:
    return table is other if table is None or other is None else table.equals(other)


def _spans(gold: Gold) -> pl.DataFrame:
    return NO_SPANS if gold.spans is None else gold.spans


def _normalization(matching: Matching) -> tuple[bool, ...]:
    """Return the options that decide how texts are normalised."""
    return matching.casefold, matching.nfkc, matching.zero_width


def _split_evidence(gold: Gold, matching: Matching) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the evidence texts, and those of which nothing is left after normalisation."""
    evidence = NO_EVIDENCE if gold.evidence is None else gold.evidence
    texts = evidence["text"].to_list()
    nonempty = pl.Series([matching.normalize(text) != "" for text in texts], dtype=pl.Boolean)
    return evidence.filter(nonempty), evidence.filter(~nonempty)


def _warn_of_empty_texts(query_ids: pl.Series) -> None:
    """Warn of empty evidence texts, given the query of each."""
    if n_empty := query_ids.len():
        warn(
            f"ignored {counted(n_empty, 'empty evidence text')}"
            f"{for_example(n_empty, f'query {query_ids.min()!r}')}",
            stacklevel=3,
        )


def _hash_column(table: pl.DataFrame) -> pl.Series:
    query = table["query"].to_numpy().astype(np.uint64)
    return pair_hashes(table["item_id"], query, np.ones(query.size, np.int64))


def _are_hashes(item_ids: pl.Series) -> bool:
    """Return whether all ids are hashes of texts."""
    is_hash = f"^{GENERATED_ID}$"
    return bool(item_ids.head(100).str.contains(is_hash).all()) and bool(
        item_ids.str.contains(is_hash).all()
    )


def prepare(gold: Gold) -> PreparedGold:
    """Index gold by query, and warn of items that are judged twice (the highest grade counts)."""
    prepared = PreparedGold(gold)
    warn_of_repeats(prepared)
    return prepared


def warn_of_repeats(gold: PreparedGold) -> None:
    """Warn of items that are judged twice."""
    if repeats := gold.repeats:
        warn(
            f"found {counted(repeats, 'repeated judgment')} of the same query and item; "
            "the highest grade counts",
            stacklevel=3,
        )
