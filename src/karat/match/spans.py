"""Matching by span: which characters of gold spans the retrieved items cover, rank by rank."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import polars as pl

from karat.arrays import Flags, Ints
from karat.data.chunks import Chunks
from karat.data.gold import Gold
from karat.data.gold_tables import NO_SPANS
from karat.data.run import Run
from karat.errors import InputError
from karat.match.align import query_and_rank, query_numbers, with_chunk_columns
from karat.match.gold_index import GOLD_SPANS, PreparedGold
from karat.match.hits import RankedRows
from karat.match.span_intervals import Intervals, added_characters, overlaps
from karat.match.targets import Targets


@dataclass(frozen=True)
class Budget:
    """A cutoff in characters.

    Items count in rank order, repeated items included. The item that crosses the budget is cut.
    """

    characters: int

    def __str__(self) -> str:
        return f"{self.characters}c"


@dataclass(frozen=True)
class MinOverlap:
    """How much of a gold span an item must contain: a number of characters or a share."""

    characters: int = 1
    share: float = 0.0

    @classmethod
    def of(cls, amount: int | float | str | MinOverlap) -> MinOverlap:
        """Read an integer as characters, and a number with a decimal point as a share up to 1.0."""
        if isinstance(amount, MinOverlap):
            return amount
        is_share = isinstance(amount, float) or "." in str(amount)
        try:
            number = float(amount) if is_share else int(amount)
        except (TypeError, ValueError):
            number = 0
        if isinstance(number, int) and number > 0 and not isinstance(amount, bool):
            return cls(characters=number)
        if isinstance(number, float) and 0 < number <= 1:
            return cls(share=number)
        raise InputError(
            f"expected a number of characters or a share of a span, got {amount!r}",
            field="min_overlap",
            hint="use an integer of at least 1 for characters, such as 20, or a number above 0 and "
            "up to 1.0 for a share of the gold span, such as 0.5",
        )

    def is_reached(self, shared: Ints, length: Ints) -> Flags:
        """Return where an item shares enough characters with a span of the given length."""
        enough: Flags = shared >= self.characters
        if self.share:
            enough = shared / length >= self.share
        return enough

    def __str__(self) -> str:
        return str(self.share or self.characters)


@dataclass(frozen=True, eq=False)
class CoveredCharacters:
    """Characters per query that the ranks up to a cutoff retrieve."""

    raw: Ints
    """All retrieved characters."""
    merged: Ints
    """Retrieved characters, each counted once."""
    gold: Ints
    """Retrieved characters of gold spans, each counted once."""


@dataclass(frozen=True, eq=False)
class Coverage:
    """The intervals of all retrieved items, in rank order, and those of gold."""

    rows: RankedRows
    """Query and rank of each item."""
    items: Intervals
    spans: Intervals
    span_query: Ints
    """The query of each gold span."""
    has_gold: Flags
    """Which queries have a list of spans, even an empty one."""
    chunks: Intervals | None = None
    """The chunks that touch gold, if the table of chunks is known."""
    _covered: dict[int | Budget | None, CoveredCharacters] = field(default_factory=dict, repr=False)
    _targets: dict[MinOverlap, Targets] = field(default_factory=dict, repr=False)

    @cached_property
    def gold(self) -> Intervals:
        """The gold spans merged, so that each character occurs once."""
        return self.spans.merged

    @cached_property
    def gold_characters(self) -> Ints:
        """The number of gold characters of each query."""
        return self._sum_by_query(self.gold)

    def item_characters(self, cutoff: int | Budget | None) -> tuple[Ints, Ints, Ints]:
        """Return for each item: characters, new characters, new gold characters.

        Characters are new if no earlier rank has them. A budget cuts the item that crosses it, and
        leaves no characters to the items after it.
        """
        if not isinstance(cutoff, Budget):
            return (self.items.length, *self._added)
        items = self._cut(cutoff.characters)
        return (items.length, *added_characters(items, self.gold))

    @cached_property
    def _added(self) -> tuple[Ints, Ints]:
        return added_characters(self.items, self.gold)

    def within(self, cutoff: int | Budget | None) -> CoveredCharacters:
        """Return what each list covers up to a cutoff; items are cut first, then merged."""
        if cutoff not in self._covered:
            if isinstance(cutoff, Budget):
                sums = _running_sums(self.item_characters(cutoff))
            else:
                sums = self._sums
            count = self.rows.count  # every item has a row, so rank k is the k-th row of its query
            first = np.cumsum(count) - count
            stop = first + (np.minimum(count, cutoff) if isinstance(cutoff, int) else count)
            raw, merged, gold = (column[stop] - column[first] for column in sums)
            self._covered[cutoff] = CoveredCharacters(raw, merged, gold)
        return self._covered[cutoff]

    @cached_property
    def _sums(self) -> list[Ints]:
        return _running_sums(self.item_characters(None))

    def targets(self, min_overlap: MinOverlap) -> Targets:
        """Return the pairs of an item and a gold span (target) that it contains enough of."""
        if min_overlap not in self._targets:
            distinct, row = self.spans.distinct
            item, span, shared = overlaps(self.items, distinct)
            enough = min_overlap.is_reached(shared, distinct.length[span])
            item, span = item[enough], span[enough]
            self._targets[min_overlap] = Targets(
                self.rows.n_queries,
                self.span_query[row],
                self.rows.query[item],
                self.rows.rank[item],
                span,
            )
        return self._targets[min_overlap]

    @cached_property
    def touching_characters(self) -> tuple[Ints, Ints]:
        """Per query: the characters of all chunks that touch gold, and their gold characters."""
        assert self.chunks is not None, "a plan that needs chunks has them"
        merged = self.chunks.merged
        _, chunk, shared = overlaps(self.gold, merged)
        gold_in_chunks = Intervals(merged.text[chunk], np.zeros_like(shared), shared)
        return self._sum_by_query(merged), self._sum_by_query(gold_in_chunks)

    def _sum_by_query(self, intervals: Intervals) -> Ints:
        order = np.argsort(self.spans.text, kind="stable")
        position = np.searchsorted(self.spans.text[order], intervals.text)
        query = self.span_query[order][position]
        return np.bincount(query, intervals.length, self.rows.n_queries).astype(np.int64)

    def _cut(self, budget: int) -> Intervals:
        length = self.items.length
        before = np.cumsum(length) - length
        if length.size:
            first = np.searchsorted(self.rows.query, self.rows.query)
            before = before - before[first]
        kept = np.clip(budget - before, 0, length)
        return Intervals(self.items.text, self.items.start, self.items.start + kept)


def _running_sums(columns: tuple[Ints, ...]) -> list[Ints]:
    """Return for each column the sums of the first 0, 1, 2, … rows."""
    return [np.concatenate(([0], np.cumsum(column))) for column in columns]


def match_spans(
    gold: PreparedGold, run: Run, chunks: Chunks | None = None, *, touching: bool = False
) -> Coverage:
    """Match the retrieved items against the gold spans of their query.

    The table of chunks provides the spans of a run that has only ids. With `touching`, the result
    also contains the chunks that touch gold.
    """
    require_code_points(gold.gold)
    require_code_points(run)
    all_spans = NO_SPANS if gold.gold.spans is None else gold.gold.spans
    span_query = query_numbers(gold.query_ids, all_spans["query_id"])
    has_gold = np.zeros(gold.query_ids.len(), np.bool_)
    has_gold[span_query] = True
    empty = pl.Series(gold.gold.empty_spans, dtype=pl.String)
    has_gold[query_numbers(gold.query_ids, empty)] = True
    spans = all_spans.filter(GOLD_SPANS)
    span_query = span_query[all_spans.select(GOLD_SPANS).to_series().to_numpy()]
    results, query, rank = _ranked_results(gold, run, chunks)
    chunk_table = chunks.frame if chunks is not None and touching else NO_SPANS
    item_document, span_document, chunk_document = number_documents(results, spans, chunk_table)
    touched_span, touching_chunk, _ = overlaps(
        to_intervals(span_document, spans), to_intervals(chunk_document, chunk_table)
    )
    queries = np.concatenate((query, span_query, span_query[touched_span]))
    documents = np.concatenate((item_document, span_document, span_document[touched_span]))
    text = _number_texts(queries, documents, max(map(_last_end, (results, spans, chunk_table))))
    texts = np.split(text, np.cumsum((query.size, span_query.size)))
    return Coverage(
        RankedRows(has_gold.size, query, rank, np.zeros(query.size, np.int64)),
        to_intervals(texts[0], results),
        to_intervals(texts[1], spans),
        span_query,
        has_gold,
        to_intervals(texts[2], chunk_table[touching_chunk]) if touching else None,
    )


def _ranked_results(
    gold: PreparedGold, run: Run, chunks: Chunks | None
) -> tuple[pl.DataFrame, Ints, Ints]:
    """Return the results of gold queries, sorted by query, with their query numbers and ranks."""
    results = _require_spans(with_chunk_columns(run, chunks, "doc_id", "start", "end"))
    query, rank = query_and_rank(gold.query_ids, run)
    if not query.size or query[0] < 0 or np.any(query[1:] < query[:-1]):
        known = np.flatnonzero(query >= 0)
        order = known[np.argsort(query[known], kind="stable")]
        results, query, rank = results[order], query[order], rank[order]
    return results, query, rank


def require_code_points(source: Gold | Run) -> None:
    """Raise an InputError if offsets are counted in another unit than code points."""
    if source.offsets != "codepoint":
        name = "gold" if isinstance(source, Gold) else "the run"
        raise InputError(
            f"{name} counts offsets in {source.offsets}, but spans are scored in code points",
            field="offsets",
            hint="provide the documents to convert the offsets: corpus=…, --corpus DIR",
        )


def _require_spans(results: pl.DataFrame) -> pl.DataFrame:
    if not results.height:
        return NO_SPANS
    for name in ("doc_id", "start", "end"):
        if name not in results.columns or results[name].null_count():
            raise InputError(
                "span measures require doc_id, start and end of every retrieved item",
                field=name,
                hint="add doc_id, start and end to every result (LangChain splitters store the "
                "start with add_start_index=True; karat.chunk.with_splitter finds the offsets for "
                "any splitter), or provide the table of chunks: chunks=…, --chunks FILE",
            )
    return results


def relevant_spans(gold: Gold) -> pl.DataFrame:
    """Return the spans that should be found."""
    require_code_points(gold)
    return (NO_SPANS if gold.spans is None else gold.spans).filter(GOLD_SPANS)


def to_intervals(text: Ints, table: pl.DataFrame) -> Intervals:
    """Build intervals from the columns `start` and `end` of a table."""
    return Intervals(text, table["start"].to_numpy(), table["end"].to_numpy())


def number_documents(*tables: pl.DataFrame) -> list[Ints]:
    """Assign numbers to the documents of all tables; return one array of numbers per table."""
    doc_ids = pl.concat([table["doc_id"] for table in tables])
    numbers = doc_ids.cast(pl.Categorical).to_physical().to_numpy().astype(np.int64)
    return np.split(numbers, np.cumsum([table.height for table in tables[:-1]]))


def _number_texts(query: Ints, document: Ints, last: int) -> Ints:
    """Return numbers of (query, document) pairs that fit, with an offset, into a 64-bit key."""
    pairs = query * (int(document.max(initial=0)) + 1) + document
    if int(pairs.max(initial=0)).bit_length() + last.bit_length() < 62:
        return pairs
    text: Ints = np.unique(pairs, return_inverse=True)[1]
    return text


def _last_end(table: pl.DataFrame) -> int:
    return int(table["end"].max() or 0) + 1  # type: ignore[arg-type]
