"""Stretches of documents as flat arrays: merging them, and who covers what first."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from karat.arrays import Flags, Ints

_MANY = 8  # pairs to look at for each stretch, before it pays to go by size


@dataclass(frozen=True, eq=False)
class Intervals:
    """Half-open stretches `[start, end)`; two of them meet only within one text.

    `text` numbers a document within a query, so stretches of different queries never mix.
    """

    text: Ints
    start: Ints
    end: Ints

    @property
    def length(self) -> Ints:
        """How many characters each holds."""
        return self.end - self.start

    def where(self, keep: Flags | Ints) -> Intervals:
        """Keep some of them."""
        return Intervals(self.text[keep], self.start[keep], self.end[keep])

    @property
    def distinct(self) -> tuple[Intervals, Ints]:
        """Those that hold characters, each once, in order; and where each stands."""
        order = np.lexsort((self.end, self.start, self.text))
        order = order[self.length[order] > 0]
        columns = [column[order] for column in (self.text, self.start, self.end)]
        first = np.ones(order.size, np.bool_)
        first[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in columns])
        return self.where(order[first]), order[first]

    @property
    def merged(self) -> Intervals:
        """Join those that overlap or touch, so that every character stands in one of them once."""
        held = self.where(self.length > 0)
        if not held.text.size:
            return held
        width = _width(held)
        order = np.argsort(held.text * width + held.start, kind="stable")
        begins = held.text[order] * width + held.start[order]
        # Keys rise from text to text by more than any end, so a running maximum never crosses.
        reach = np.maximum.accumulate(held.text[order] * width + held.end[order])
        opens = np.concatenate(([True], begins[1:] > reach[:-1]))
        last = np.append(np.flatnonzero(opens)[1:] - 1, begins.size - 1)
        text = begins[opens] // width
        return Intervals(text, begins[opens] - text * width, reach[last] - text * width)


def overlaps(one: Intervals, other: Intervals) -> tuple[Ints, Ints, Ints]:
    """Return every pair of stretches that share characters, and how many: by the first, in order.

    Of the others, sorted by their start, those can reach a stretch that begin before it ends, from
    the first on by which the text has been read beyond its start.
    """
    width = max(_width(one), _width(other))
    order = np.argsort(other.text * width + other.start, kind="stable")
    begins = (other.text * width + other.start)[order]
    reach = np.maximum.accumulate((other.text * width + other.end)[order])
    first = np.searchsorted(reach, one.text * width + one.start, "right")
    stop = np.maximum(first, np.searchsorted(begins, one.text * width + one.end, "left"))
    if int((stop - first).sum()) > _MANY * (first.size + order.size):
        sizes = np.frexp(other.length)[1]  # to the power of two
        if sizes.min() < sizes.max():
            return _by_size(one, other, sizes)
    left, at = _pieces(first, stop)
    right = order[at]
    shared = np.minimum(one.end[left], other.end[right])
    shared -= np.maximum(one.start[left], other.start[right])
    keep = shared > 0
    return left[keep], right[keep], shared[keep]


def _by_size(one: Intervals, other: Intervals, sizes: Ints) -> tuple[Ints, Ints, Ints]:
    """Do the same for others of about one size at a time.

    A long one, such as a whole document among its chunks, has the text read to its end, so that all
    that begin later have to be looked at. Among equals it can only be twice as long as the rest.
    """
    groups = [np.flatnonzero(sizes == size) for size in np.unique(sizes)]
    found = [overlaps(one, other.where(group)) for group in groups]
    left = np.concatenate([pairs[0] for pairs in found])
    right = np.concatenate([group[pairs[1]] for group, pairs in zip(groups, found, strict=True)])
    shared = np.concatenate([pairs[2] for pairs in found])
    order = np.argsort(left, kind="stable")
    return left[order], right[order], shared[order]


def added_characters(items: Intervals, gold: Intervals) -> tuple[Ints, Ints]:
    """Return for each item, taken in order, how many characters and gold characters it adds.

    Every text is cut at all ends of items and gold; each piece belongs to the first item that
    covers it. An item's pieces stand in a row, so the work is a sort and a few sums.
    """
    n = items.text.size
    width = max(_width(items), _width(gold))
    parts = [one.text * width + place for one in (items, gold) for place in (one.start, one.end)]
    cuts, at = _distinct(np.concatenate(parts))
    if cuts.size < 2:
        return np.zeros(n, np.int64), np.zeros(n, np.int64)
    begins, ends, gold_begins, gold_ends = np.split(
        at, np.cumsum([part.size for part in parts[:3]])
    )
    length = np.diff(cuts)
    item, piece = _pieces(begins, ends)
    owner = np.full(length.size, n)
    owner[piece[::-1]] = item[::-1]  # of several, the last that is written stays: the first item
    is_gold = np.zeros(length.size, np.bool_)
    is_gold[_pieces(gold_begins, gold_ends)[1]] = True
    added = np.bincount(owner, length, n + 1)[:n]
    added_gold = np.bincount(owner[is_gold], length[is_gold], n + 1)[:n]
    return added.astype(np.int64), added_gold.astype(np.int64)


def _distinct(keys: Ints) -> tuple[Ints, Ints]:
    """Return the distinct keys in order, and which of them each key is."""
    bits = keys.size.bit_length()
    if int(keys.max(initial=0)).bit_length() + bits < 63:
        # With its place packed behind the key, a plain sort does, which takes half the time.
        packed = pl.Series((keys << bits) | np.arange(keys.size)).sort().to_numpy()
        order, ordered = packed & ((1 << bits) - 1), packed >> bits
    else:
        order = np.argsort(keys, kind="stable")
        ordered = keys[order]
    opens = np.ones(keys.size, np.bool_)
    opens[1:] = ordered[1:] != ordered[:-1]
    at = np.empty(keys.size, np.int64)
    at[order] = np.cumsum(opens) - 1
    return ordered[opens], at


def _pieces(first: Ints, stop: Ints) -> tuple[Ints, Ints]:
    """Return every piece of each stretch, and whose it is."""
    counts = stop - first
    whose = np.repeat(np.arange(counts.size), counts)
    offset = np.arange(whose.size) - np.repeat(np.cumsum(counts) - counts, counts)
    return whose, np.repeat(first, counts) + offset


def _width(stretches: Intervals) -> int:
    """Return a number that no end reaches, to tell texts apart in one key."""
    return int(stretches.end.max(initial=0)) + 1
