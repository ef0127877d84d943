"""Matching by place: which characters of gold's spans the retrieved items cover, rank by rank."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import polars as pl

from karat.data.gold import NO_SPANS
from karat.data.run import Run
from karat.errors import InputError
from karat.match.hits import Flags, Ints, Places
from karat.match.numbers import numbers_of
from karat.match.prepared import PreparedGold
from karat.match.stretches import Stretches, first_to_cover


@dataclass(frozen=True)
class Budget:
    """A cutoff in characters: in rank order, repeats included, the item that crosses it cut."""

    characters: int

    def __str__(self) -> str:
        return f"{self.characters}c"


@dataclass(frozen=True, eq=False)
class Covered:
    """Per query, up to a cutoff: characters retrieved, each of them once, and those of gold."""

    raw: Ints
    merged: Ints
    gold: Ints


@dataclass(frozen=True, eq=False)
class Coverage:
    """The retrieved stretches of all queries in rank order, and gold's characters.

    `given` says which queries have spans at all, be it none.
    """

    places: Places
    items: Stretches
    gold: Stretches
    gold_characters: Ints
    given: Flags
    _covered: dict[int | Budget | None, Covered] = field(default_factory=dict, repr=False)

    @cached_property
    def added(self) -> tuple[Ints, Ints]:
        """For each item, the characters and the gold characters that no rank before it had."""
        return first_to_cover(self.items, self.gold)

    def within(self, cutoff: int | Budget | None) -> Covered:
        """Return what the top of each list covers: cut first, then merged."""
        if cutoff not in self._covered:
            self._covered[cutoff] = self._within(cutoff)
        return self._covered[cutoff]

    def _within(self, cutoff: int | Budget | None) -> Covered:
        if isinstance(cutoff, Budget):
            items = self._cut(cutoff.characters)
            return self._summed(items.length, first_to_cover(items, self.gold), None)
        return self._summed(self.items.length, self.added, cutoff)

    def _summed(self, raw: Ints, added: tuple[Ints, Ints], cutoff: int | None) -> Covered:
        keep = self.places.rank <= (np.inf if cutoff is None else cutoff)
        query, n = self.places.query[keep], self.places.n_queries
        sums = [np.bincount(query, part[keep], n).astype(np.int64) for part in (raw, *added)]
        return Covered(*sums)

    def _cut(self, budget: int) -> Stretches:
        length = self.items.length
        through = np.cumsum(length)
        first = np.searchsorted(self.places.query, self.places.query)
        before = through - length - (through - length)[first] if length.size else length
        kept = np.clip(budget - before, 0, length)
        return Stretches(self.items.text, self.items.start, self.items.start + kept)


def match_spans(gold: PreparedGold, run: Run) -> Coverage:
    """Bring gold's spans and the run together; texts of different queries never mix."""
    spans = NO_SPANS if gold.gold.spans is None else gold.gold.spans
    if gold.gold.offsets != "codepoint":
        raise InputError(
            f"gold counts its offsets in {gold.gold.offsets}, and spans are scored in code points",
            field="offsets",
            hint="count them in code points, as Python's len does",
        )
    results = _with_places(run.results)
    n = gold.query_ids.len()
    number = numbers_of(gold.query_ids, run.segments.query_ids)
    query = np.repeat(number, run.segments.lengths)
    rank = np.arange(1, query.size + 1) - np.repeat(run.segments.starts, run.segments.lengths)
    if not query.size or query[0] < 0 or np.any(query[1:] < query[:-1]):
        known = np.flatnonzero(query >= 0)
        order = known[np.argsort(query[known], kind="stable")]
        results, query, rank = results[order], query[order], rank[order]
    wanted = numbers_of(gold.query_ids, spans["query_id"])
    documents = pl.concat([results["doc_id"], spans["doc_id"]])
    document = documents.cast(pl.Categorical).to_physical().to_numpy().astype(np.int64)
    n_documents = int(document.max(initial=0)) + 1
    pairs = np.concatenate((query, wanted)) * n_documents + document
    distinct, text = _numbered(pairs, max(_last(results), _last(spans)))
    items = Stretches(text[: query.size], results["start"].to_numpy(), results["end"].to_numpy())
    stretches = Stretches(text[query.size :], spans["start"].to_numpy(), spans["end"].to_numpy())
    merged = stretches.merged
    given = np.zeros(n, np.bool_)
    given[wanted] = True
    given[numbers_of(gold.query_ids, pl.Series(gold.gold.empty_spans, dtype=pl.String))] = True
    return Coverage(
        Places(n, query, rank, np.zeros(query.size, np.int64)),
        items,
        merged,
        np.bincount(distinct(merged.text) // n_documents, merged.length, n).astype(np.int64),
        given,
    )


def _numbered(pairs: Ints, last: int) -> tuple[Callable[[Ints], Ints], Ints]:
    """Give texts numbers: their pair, or where such keys would be too long, its place."""
    if int(pairs.max(initial=0)).bit_length() + last.bit_length() < 62:
        return lambda text: text, pairs
    distinct, text = np.unique(pairs, return_inverse=True)
    if distinct.size.bit_length() + last.bit_length() >= 62:
        raise InputError(
            f"a span ends at {last - 1:,}, further than a document goes",
            field="end",
            hint="offsets count code points from the start of one document",
        )
    return lambda text: distinct[text], text


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
                hint="write where each chunk stands in its document, in code points",
            )
    return results
