"""Matching by place: which characters of gold's spans the retrieved items cover, rank by rank."""

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
from karat.match.gold_index import PreparedGold
from karat.match.hits import RankedRows
from karat.match.span_intervals import Intervals, added_characters, overlaps
from karat.match.targets import Targets

GOLD_SPANS = pl.col("grade") > 0
"""Which spans should be found: like an item, one of grade 0 need not be."""


@dataclass(frozen=True)
class Budget:
    """A cutoff in characters: in rank order, repeats included, the item that crosses it cut."""

    characters: int

    def __str__(self) -> str:
        return f"{self.characters}c"


@dataclass(frozen=True)
class MinOverlap:
    """How much of a gold span an item must hold: so many characters, or a share of the span."""

    characters: int = 1
    share: float = 0.0

    @classmethod
    def of(cls, amount: int | float | str | MinOverlap) -> MinOverlap:
        """Take a whole number as characters, and a number with a point, up to 1.0, as a share."""
        if isinstance(amount, MinOverlap):
            return amount
        pointed = isinstance(amount, float) or "." in str(amount)
        try:
            number = float(amount) if pointed else int(amount)
        except (TypeError, ValueError):
            number = 0
        if isinstance(number, int) and number > 0 and not isinstance(amount, bool):
            return cls(characters=number)
        if isinstance(number, float) and 0 < number <= 1:
            return cls(share=number)
        raise InputError(
            f"{amount!r} is no least overlap",
            field="min_overlap",
            hint="give characters as a whole number from 1 up, such as 20, or a share of the gold "
            "span from above 0 to 1.0, such as 0.5",
        )

    def reached(self, shared: Ints, length: Ints) -> Flags:
        """Tell where what is shared with a span of some length is enough."""
        enough: Flags = shared / length >= self.share if self.share else shared >= self.characters
        return enough

    def __str__(self) -> str:
        return str(self.share or self.characters)


@dataclass(frozen=True, eq=False)
class CoveredCharacters:
    """Per query, up to a cutoff: characters retrieved, each of them once, and those of gold."""

    raw: Ints
    merged: Ints
    gold: Ints


@dataclass(frozen=True, eq=False)
class Coverage:
    """The retrieved stretches of all queries in rank order, and gold's.

    `whose` is the query of each gold span; `given` says which queries have spans at all, be it
    none. `chunks`, where the table of all chunks is known, holds those that touch gold.
    """

    places: RankedRows
    items: Intervals
    spans: Intervals
    whose: Ints
    given: Flags
    chunks: Intervals | None = None
    _covered: dict[int | Budget | None, CoveredCharacters] = field(default_factory=dict, repr=False)
    _pieces: dict[MinOverlap, Targets] = field(default_factory=dict, repr=False)

    @cached_property
    def gold(self) -> Intervals:
        """Gold with every character once."""
        return self.spans.merged

    @cached_property
    def gold_characters(self) -> Ints:
        """How many characters gold holds in each query."""
        return self._summed_by_query(self.gold)

    def parts(self, cutoff: int | Budget | None) -> tuple[Ints, Ints, Ints]:
        """Return for each item its characters, and those and the gold ones that no rank had before.

        An item behind a budget holds none; of one that crosses it, the first ones count.
        """
        if not isinstance(cutoff, Budget):
            return (self.items.length, *self._added)
        items = self._cut(cutoff.characters)
        return (items.length, *added_characters(items, self.gold))

    @cached_property
    def _added(self) -> tuple[Ints, Ints]:
        return added_characters(self.items, self.gold)

    def within(self, cutoff: int | Budget | None) -> CoveredCharacters:
        """Return what the top of each list covers: cut first, then merged."""
        if cutoff not in self._covered:
            sums = _through(self.parts(cutoff)) if isinstance(cutoff, Budget) else self._sums
            count = self.places.count  # every item has its place, so rank k is the k-th of its list
            first = np.cumsum(count) - count
            stop = first + (np.minimum(count, cutoff) if isinstance(cutoff, int) else count)
            self._covered[cutoff] = CoveredCharacters(*(each[stop] - each[first] for each in sums))
        return self._covered[cutoff]

    @cached_property
    def _sums(self) -> list[Ints]:
        return _through(self.parts(None))

    def pieces(self, least: MinOverlap) -> Targets:
        """Return which items hold enough of which gold span, each distinct span being a piece."""
        if least not in self._pieces:
            held, at = self.spans.distinct
            item, span, shared = overlaps(self.items, held)
            enough = least.reached(shared, held.length[span])
            item, span = item[enough], span[enough]
            query, rank = self.places.query[item], self.places.rank[item]
            n = self.places.n_queries
            self._pieces[least] = Targets(n, self.whose[at], query, rank, span)
        return self._pieces[least]

    @cached_property
    def touched(self) -> tuple[Ints, Ints]:
        """Per query, the characters of all chunks that touch gold, and those of gold in them."""
        assert self.chunks is not None, "a plan that needs chunks has them"
        merged = self.chunks.merged
        _, at, shared = overlaps(self.gold, merged)
        held = Intervals(merged.text[at], np.zeros_like(shared), shared)
        return self._summed_by_query(merged), self._summed_by_query(held)

    def _summed_by_query(self, stretches: Intervals) -> Ints:
        order = np.argsort(self.spans.text, kind="stable")
        at = np.searchsorted(self.spans.text[order], stretches.text)
        query = self.whose[order][at]
        n = self.places.n_queries
        return np.bincount(query, stretches.length, n).astype(np.int64)

    def _cut(self, budget: int) -> Intervals:
        length = self.items.length
        through = np.cumsum(length)
        first = np.searchsorted(self.places.query, self.places.query)
        before = through - length - (through - length)[first] if length.size else length
        kept = np.clip(budget - before, 0, length)
        return Intervals(self.items.text, self.items.start, self.items.start + kept)


def _through(parts: tuple[Ints, ...]) -> list[Ints]:
    """Return the sums of everything before each item, and of all."""
    return [np.concatenate(([0], np.cumsum(part))) for part in parts]


def require_code_points(counted: Gold | Run) -> None:
    """Refuse places that are counted in anything but code points."""
    if counted.offsets != "codepoint":
        what = "gold" if isinstance(counted, Gold) else "the run"
        raise InputError(
            f"{what} counts its offsets in {counted.offsets}, and spans are scored in code points",
            field="offsets",
            hint="give the documents, through which they are converted: corpus=…, --corpus DIR",
        )


def relevant_spans(gold: Gold) -> pl.DataFrame:
    """Return the spans that should be found."""
    require_code_points(gold)
    return (NO_SPANS if gold.spans is None else gold.spans).filter(GOLD_SPANS)


def match_spans(
    gold: PreparedGold, run: Run, chunks: Chunks | None = None, *, touching: bool = False
) -> Coverage:
    """Bring gold's spans and the run together; texts of different queries never mix.

    A run that has ids alone stands where the table of all chunks says; `touching` asks which of
    those touch gold.
    """
    require_code_points(gold.gold)
    require_code_points(run)
    spans = NO_SPANS if gold.gold.spans is None else gold.gold.spans
    wanted = query_numbers(gold.query_ids, spans["query_id"])
    given = np.zeros(gold.query_ids.len(), np.bool_)
    given[wanted] = True
    given[query_numbers(gold.query_ids, pl.Series(gold.gold.empty_spans, dtype=pl.String))] = True
    spans, wanted = (
        spans.filter(GOLD_SPANS),
        wanted[spans.select(GOLD_SPANS).to_series().to_numpy()],
    )
    results = _with_places(with_chunk_columns(run, chunks, "doc_id", "start", "end"))
    query, rank = query_and_rank(gold.query_ids, run)
    if not query.size or query[0] < 0 or np.any(query[1:] < query[:-1]):
        known = np.flatnonzero(query >= 0)
        order = known[np.argsort(query[known], kind="stable")]
        results, query, rank = results[order], query[order], rank[order]
    cut = chunks.frame if chunks is not None and touching else NO_SPANS
    documents = number_documents(results, spans, cut)
    touched, toucher = _touching(spans, documents[1], cut, documents[2])
    queries = np.concatenate((query, wanted, wanted[touched]))
    document = np.concatenate((documents[0], documents[1], documents[1][touched]))
    text = _numbered(queries, document, max(map(_last, (results, spans, cut))))
    texts = np.split(text, np.cumsum((query.size, wanted.size)))
    return Coverage(
        RankedRows(given.size, query, rank, np.zeros(query.size, np.int64)),
        to_intervals(texts[0], results),
        to_intervals(texts[1], spans),
        wanted,
        given,
        to_intervals(texts[2], cut[toucher]) if touching else None,
    )


def to_intervals(text: Ints, table: pl.DataFrame) -> Intervals:
    """Take the places of a table, whose texts have these numbers."""
    return Intervals(text, table["start"].to_numpy(), table["end"].to_numpy())


def _touching(
    spans: pl.DataFrame, of_span: Ints, chunks: pl.DataFrame, of_chunk: Ints
) -> tuple[Ints, Ints]:
    """Return the pairs of a gold span and a chunk that share characters, whatever the query."""
    touched, toucher, _ = overlaps(
        to_intervals(of_span, spans), to_intervals(of_chunk, chunks)
    )
    return touched, toucher


def number_documents(*tables: pl.DataFrame) -> list[Ints]:
    """Give the documents of some tables numbers, the same document the same one."""
    every = pl.concat([table["doc_id"] for table in tables])
    numbers = every.cast(pl.Categorical).to_physical().to_numpy().astype(np.int64)
    return np.split(numbers, np.cumsum([table.height for table in tables[:-1]]))


def _numbered(query: Ints, document: Ints, last: int) -> Ints:
    """Give texts, a document of a query each, numbers so small that a key with a place fits."""
    pairs = query * (int(document.max(initial=0)) + 1) + document
    if int(pairs.max(initial=0)).bit_length() + last.bit_length() < 62:
        return pairs
    text: Ints = np.unique(pairs, return_inverse=True)[1]
    return text


def _last(table: pl.DataFrame) -> int:
    return int(table["end"].max() or 0) + 1  # type: ignore[arg-type]


def _with_places(results: pl.DataFrame) -> pl.DataFrame:
    """Return results if each says where it stands; none need say it where there are none."""
    if not results.height:
        return NO_SPANS
    for name in ("doc_id", "start", "end"):
        if name not in results.columns or results[name].null_count():
            raise InputError(
                "span measures need doc_id, start and end of every retrieved item",
                field=name,
                hint="add doc_id, start and end to every result (LangChain splitters store it "
                "with add_start_index=True; karat.chunk.with_splitter finds it for any splitter), "
                "or give the table of all chunks: chunks=…, --chunks FILE",
            )
    return results
