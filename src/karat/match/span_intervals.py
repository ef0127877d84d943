"""Spans of many documents as flat arrays: merge them, intersect them, and count new characters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from karat.arrays import Flags, Ints

Span = tuple[int, int]
"""Start and end of a span in one text."""

_MAX_CANDIDATES = 8
"""Candidate pairs per interval above which `overlaps` groups the intervals by size."""


@dataclass(frozen=True, eq=False)
class Intervals:
    """Half-open intervals `[start, end)`; only intervals of the same text can overlap.

    `text` is the number of a document within a query, so intervals of different queries never
    overlap.
    """

    text: Ints
    start: Ints
    end: Ints

    @property
    def length(self) -> Ints:
        """The number of characters of each interval."""
        return self.end - self.start

    def where(self, keep: Flags | Ints) -> Intervals:
        """Return the intervals that a mask or row numbers select."""
        return Intervals(self.text[keep], self.start[keep], self.end[keep])

    @property
    def distinct(self) -> tuple[Intervals, Ints]:
        """The non-empty intervals, sorted and without duplicates, and the row of each."""
        order = np.lexsort((self.end, self.start, self.text))
        order = order[self.length[order] > 0]
        columns = [column[order] for column in (self.text, self.start, self.end)]
        first = np.ones(order.size, np.bool_)
        first[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in columns])
        return self.where(order[first]), order[first]

    @property
    def merged(self) -> Intervals:
        """The same characters, with overlapping and adjacent intervals joined."""
        filled = self.where(self.length > 0)
        if not filled.text.size:
            return filled
        width = _key_width(filled)
        order = np.argsort(filled.text * width + filled.start, kind="stable")
        starts = filled.text[order] * width + filled.start[order]
        # The keys of a text are larger than all ends of the text before it, so the running
        # maximum never carries over.
        reach = np.maximum.accumulate(filled.text[order] * width + filled.end[order])
        opens = np.concatenate(([True], starts[1:] > reach[:-1]))
        last = np.append(np.flatnonzero(opens)[1:] - 1, starts.size - 1)
        text = starts[opens] // width
        return Intervals(text, starts[opens] - text * width, reach[last] - text * width)


def overlaps(one: Intervals, other: Intervals) -> tuple[Ints, Ints, Ints]:
    """Return all pairs of intervals that share characters, and how many characters they share.

    The result is (row in `one`, row in `other`, characters), sorted by the row in `one`.

    With `other` sorted by start, the candidates for an interval are a range: they start before it
    ends, and the range begins where the running maximum of the ends passes its start.
    """
    width = max(_key_width(one), _key_width(other))
    order = np.argsort(other.text * width + other.start, kind="stable")
    starts = (other.text * width + other.start)[order]
    reach = np.maximum.accumulate((other.text * width + other.end)[order])
    first = np.searchsorted(reach, one.text * width + one.start, "right")
    stop = np.maximum(first, np.searchsorted(starts, one.text * width + one.end, "left"))
    if int((stop - first).sum()) > _MAX_CANDIDATES * (first.size + order.size):
        sizes = np.frexp(other.length)[1]  # rounded up to a power of two
        if sizes.min() < sizes.max():
            return _overlaps_by_size(one, other, sizes)
    left, position = _expand_ranges(first, stop)
    right = order[position]
    shared = np.minimum(one.end[left], other.end[right])
    shared -= np.maximum(one.start[left], other.start[right])
    keep = shared > 0
    return left[keep], right[keep], shared[keep]


def _overlaps_by_size(one: Intervals, other: Intervals, sizes: Ints) -> tuple[Ints, Ints, Ints]:
    """Compute `overlaps` separately for each size class of `other`.

    A long interval, such as a whole document among its chunks, makes every later interval a
    candidate. Within a size class an interval is at most twice as long as the others.
    """
    groups = [np.flatnonzero(sizes == size) for size in np.unique(sizes)]
    results = []
    for group in groups:
        left, right, shared = overlaps(one, other.where(group))
        results.append((left, group[right], shared))
    left, right, shared = map(np.concatenate, zip(*results, strict=True))
    order = np.argsort(left, kind="stable")
    return left[order], right[order], shared[order]


def added_characters(items: Intervals, gold: Intervals) -> tuple[Ints, Ints]:
    """Return how many characters, and how many gold characters, each item adds to those before it.

    Every text is cut at all starts and ends. Each of the resulting segments belongs to the first
    item that covers it, so the work is a sort and a few sums.
    """
    n = items.text.size
    width = max(_key_width(items), _key_width(gold))
    parts = [
        intervals.text * width + offset
        for intervals in (items, gold)
        for offset in (intervals.start, intervals.end)
    ]
    cuts, positions = _distinct_keys(np.concatenate(parts))
    if cuts.size < 2:
        return np.zeros(n, np.int64), np.zeros(n, np.int64)
    starts, ends, gold_starts, gold_ends = np.split(
        positions, np.cumsum([part.size for part in parts[:3]])
    )
    length = np.diff(cuts)
    item, segment = _expand_ranges(starts, ends)
    owner = np.full(length.size, n)
    owner[segment[::-1]] = item[::-1]  # the last assignment remains, and that is the first item
    is_gold = np.zeros(length.size, np.bool_)
    is_gold[_expand_ranges(gold_starts, gold_ends)[1]] = True
    added = np.bincount(owner, length, n + 1)[:n]
    added_gold = np.bincount(owner[is_gold], length[is_gold], n + 1)[:n]
    return added.astype(np.int64), added_gold.astype(np.int64)


def _distinct_keys(keys: Ints) -> tuple[Ints, Ints]:
    """Return the distinct keys in order, and the position of each key among them."""
    bits = keys.size.bit_length()
    if int(keys.max(initial=0)).bit_length() + bits < 63:
        # With the row number in the low bits, a plain sort is enough; it takes half the time.
        packed = pl.Series((keys << bits) | np.arange(keys.size)).sort().to_numpy()
        order, ordered = packed & ((1 << bits) - 1), packed >> bits
    else:
        order = np.argsort(keys, kind="stable")
        ordered = keys[order]
    opens = np.ones(keys.size, np.bool_)
    opens[1:] = ordered[1:] != ordered[:-1]
    positions = np.empty(keys.size, np.int64)
    positions[order] = np.cumsum(opens) - 1
    return ordered[opens], positions


def _expand_ranges(first: Ints, stop: Ints) -> tuple[Ints, Ints]:
    """Return all numbers of the ranges [first, stop), and the row of the range of each."""
    counts = stop - first
    row = np.repeat(np.arange(counts.size), counts)
    offset = np.arange(row.size) - np.repeat(np.cumsum(counts) - counts, counts)
    return row, np.repeat(first, counts) + offset


def _key_width(intervals: Intervals) -> int:
    """Return a number above all ends, so that text * width + offset is unique per text."""
    return int(intervals.end.max(initial=0)) + 1
