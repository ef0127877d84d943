"""Find texts in documents: exact occurrences, and spans that are similar to a text.

`occurrences` finds exact copies. `SimilarTexts` finds similar spans: texts are compared in lower
case with white space collapsed, and the similarity of a text and a span is that of insertions and
deletions, 2 × longest common subsequence / sum of their lengths. The search has two steps:
`similar_windows` selects the regions that can contain a similar span, and `strand_starts` compares
the text with all spans of a region at once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
from rapidfuzz import process
from rapidfuzz.distance import LCSseq

from karat.arrays import Ints
from karat.data.offsets import DenseText
from karat.match.span_intervals import Span

_BLOCK = 1 << 20
"""How many windows are compared at a time."""
_SEPARATOR = "\n"
"""Separates documents; a text with collapsed white space does not contain it."""


def occurrences(texts: pl.Series, documents: pl.Series) -> pl.DataFrame:
    """Return all occurrences of the texts: text, document (its row), start, end.

    Occurrences may overlap. All texts are searched for in one pass (Aho and Corasick, 1975), so
    the time depends on the size of the documents, not on the number of texts.
    """
    by_document = pl.DataFrame(
        {
            "document": pl.int_range(documents.len(), eager=True),
            "text": documents.str.extract_many(texts.implode(), overlapping=True),
            "start": documents.str.find_many(texts.implode(), overlapping=True),
        }
    )
    by_document = by_document.filter(pl.col("start").list.len() > 0)
    parts = [
        by_document[row]
        .explode("text", "start")
        .with_columns(start=_code_point_offsets(documents[document], byte_offsets))
        for row, (document, byte_offsets) in enumerate(
            by_document.select("document", "start").iter_rows()
        )
    ]
    no_rows = by_document.clear().explode("text", "start").cast({"start": pl.Int64})
    return pl.concat([no_rows, *parts]).select(
        "text", "document", "start", end=pl.col("start") + pl.col("text").str.len_chars()
    )


def _code_point_offsets(text: str, byte_offsets: list[int]) -> npt.NDArray[np.int64]:
    offsets = np.array(byte_offsets, np.int64)
    if text.isascii():
        return offsets
    content = np.frombuffer(text.encode(), np.uint8)
    # All bytes of a character except the first have the form 10xxxxxx.
    code_points: npt.NDArray[np.int64] = np.cumsum(content & 0xC0 != 0x80)
    return code_points[offsets] - 1


@dataclass(frozen=True)
class Similar:
    """A span of a document, and its similarity to the text that was searched for."""

    document: int
    start: int
    end: int
    ratio: float


class SimilarTexts:
    """Documents in which similar texts can be searched for."""

    def __init__(self, documents: Iterable[str]) -> None:
        self._documents = [_Document(text) for text in documents]
        self._joined = _SEPARATOR.join(document.folded for document in self._documents)
        sizes = [len(document.folded) + len(_SEPARATOR) for document in self._documents]
        self._starts = np.cumsum([0, *sizes])[:-1]

    def find(self, text: str, threshold: float) -> list[Similar]:
        """Return the most similar spans that reach the threshold, without overlaps.

        The choice is greedy: the most similar span of a document (the first, then the shortest of
        several), then the most similar span that does not overlap it, and so on. Spans start and
        end with a character that is not white space. The search is exhaustive: every span that can
        reach the threshold is in a region that is compared in full. Below a threshold of about 0.7
        this is the case for unrelated text too, and the search becomes slow.
        """
        search = _Search(_fold(text), threshold)
        similar = []
        for region_start, region_end in _merge_spans(search.regions(self._joined)):
            position = region_start
            for part in self._joined[region_start:region_end].split(_SEPARATOR):
                number = int(np.searchsorted(self._starts, position, side="right")) - 1
                offset = position - int(self._starts[number])
                for start, end, ratio in search.best_spans(part):
                    span = self._documents[number].original_span(offset + start, offset + end)
                    similar.append(Similar(number, *span, ratio))
                position += len(part) + len(_SEPARATOR)
        return similar


class _Document:
    def __init__(self, text: str) -> None:
        self.text = text
        self.folded = _fold(text)

    @cached_property
    def dense(self) -> DenseText:
        return DenseText(self.text)

    def original_span(self, start: int, end: int) -> Span:
        """Convert a span of the folded text to a span of the original text."""
        dense_start = start - self.folded.count(" ", 0, start)
        dense_end = end - self.folded.count(" ", 0, end)
        return self.dense.original_span(dense_start, dense_end)


@dataclass(frozen=True)
class _Search:
    """A folded text to search for, and the lengths that a similar span can have."""

    text: str
    threshold: float

    @cached_property
    def shortest(self) -> int:
        """Length of the shortest span that can reach the threshold: all of it is in the text."""
        return _ceil(len(self.text) * self.threshold / (2 - self.threshold))

    @cached_property
    def longest(self) -> int:
        """Length of the longest span that can reach the threshold: it contains all of the text."""
        return math.floor(len(self.text) * (2 / self.threshold - 1) + 1e-9)

    def regions(self, joined: str) -> Iterator[Span]:
        """Yield regions that together contain every span that can reach the threshold.

        A span that is not longer than the text lies in a window of the length of the text, and a
        longer one in a window of the longest possible length. Either window has at least as much
        in common with the text as the span.
        """
        size = len(self.text)
        yield from similar_windows(self.text, joined, size, self.shortest)
        if self.longest > size:
            common = _ceil(size * self.threshold)
            yield from similar_windows(self.text, joined, self.longest, common)

    def best_spans(self, part: str) -> Iterator[tuple[int, int, float]]:
        """Yield (start, end, ratio) of the most similar spans of a part, without overlaps."""
        if LCSseq.similarity(self.text, part) < self.shortest:
            return
        table = _SpanTable(self, part)
        open_ranges = [(0, len(part))]
        while open_ranges:
            range_start, range_end = open_ranges.pop()
            best = table.best(range_start, range_end)
            if best is not None:
                yield best
                open_ranges += [(range_start, best[0]), (best[1], range_end)]


class _SpanTable:
    """All spans of a part of a document, compared with a text."""

    def __init__(self, search: _Search, part: str) -> None:
        self.search = search
        self.part = part
        starts = strand_starts(search.text, part)
        self.strand_ends = np.full(len(part), len(part))
        """Where the strand that starts at each character ends, len(part) if it does not end."""
        inside = np.flatnonzero(starts >= 0)
        self.strand_ends[starts[inside]] = inside
        self.can_end = np.array([False, *(character != " " for character in part)])
        """Whether a span may end before each character: not after a space."""

    def best(self, first: int, stop: int) -> tuple[int, int, float] | None:
        """Return (start, end, ratio) of the most similar span in [first, stop), if any."""
        size, shortest, longest = len(self.search.text), self.search.shortest, self.search.longest
        lengths = np.arange(shortest, longest + 1)
        # For each end, how many characters of [start, end) are not in common with the text.
        missing = np.zeros(len(self.part) + 1, np.int64)
        best, best_ratio = None, self.search.threshold
        for start in range(stop - 1, first - 1, -1):
            last = min(start + longest, stop)
            missing[self.strand_ends[start] + 1 : start + longest + 1] += 1
            if last - start - missing[last] < shortest or self.part[start] == " ":
                continue
            here = lengths[: last - start - shortest + 1]
            ends = slice(start + shortest, last + 1)
            ratios = 2 * (here - missing[ends]) / (size + here) * self.can_end[ends]
            position = int(ratios.argmax())
            if ratios[position] >= best_ratio:
                best_ratio = float(ratios[position])
                best = start, start + shortest + position, best_ratio
        return best


def similar_windows(text: str, long: str, size: int, common: int) -> Iterator[Span]:
    """Yield spans that contain every window of `size` with `common` characters in common.

    Characters in common are those of the longest common subsequence. Moving a window by one
    character changes their number by at most one. So if two windows have too few for their
    distance, all windows between them have too few as well; otherwise the window halfway between
    them is compared, and so on. The spans may also contain windows with slightly fewer characters
    in common.
    """
    last = max(0, len(long) - size)
    for block_start in range(0, max(1, last), _BLOCK):
        block_end = min(block_start + _BLOCK, last)
        step = max(1, size // 2)
        starts = np.array([*range(block_start, block_end, step), block_end])
        counts = _common_characters(text, long, size, starts, common - step)
        if block_end > block_start:
            left, right, left_count, right_count = starts[:-1], starts[1:], counts[:-1], counts[1:]
        else:  # there is only one window
            left = right = starts[:1]
            left_count = right_count = counts[:1]
        while left.size:
            enough = left_count + right_count + (right - left) >= 2 * common
            left, right = left[enough], right[enough]
            left_count, right_count = left_count[enough], right_count[enough]
            if step <= max(1, size // 16):
                break
            step = (step + 1) // 2
            middle = (left + right) // 2
            counts = _common_characters(text, long, size, middle, common - step)
            left, right = np.concatenate((left, middle)), np.concatenate((middle, right))
            left_count = np.concatenate((left_count, counts))
            right_count = np.concatenate((counts, right_count))
        yield from zip(left.tolist(), (right + size).tolist(), strict=True)


def _common_characters(text: str, long: str, size: int, starts: Ints, least: int) -> Ints:
    """Return the length of the longest common subsequence per window, 0 if below `least`."""
    windows = [long[start : start + size] for start in starts.tolist()]
    counts: Ints = process.cdist(
        [text], windows, scorer=LCSseq.similarity, score_cutoff=max(0, least), dtype=np.int64
    )[0]
    return counts


def strand_starts(text: str, other: str) -> Ints:
    """Return numbers that give the longest common subsequence of a text and any span of another.

    Its length for `other[start:end]` is `end - start`, less the number of strands among the first
    `end` that start at `start` or later. This is the combing of Tiskin ('Semi-local string
    comparison', 2006): for each pair of characters, a strand from the left and one from above
    meet. They cross, except that they bounce off if the characters are equal or if they crossed
    before. Cells on a diagonal are independent of each other, so each diagonal is one step.

    >>> starts = strand_starts("ac", "abc")
    >>> 3 - int(sum(starts[:3] >= 0)), 2 - int(sum(starts[:3] >= 1))  # "abc" and "bc"
    (2, 1)
    """
    rows, columns = len(text), len(other)
    dtype: type[np.signedinteger[Any]] = np.int16 if rows + columns < 1 << 15 else np.int64
    codes, other_codes = _code_points(text)[::-1], _code_points(other)
    across = np.arange(-rows, 0, dtype=dtype)
    down = np.arange(columns, dtype=dtype)
    for diagonal in range(rows + columns - 1):
        first, last = max(0, diagonal - columns + 1), min(rows - 1, diagonal)
        here = slice(rows - 1 - last, rows - first)
        there = slice(diagonal - last, diagonal - first + 1)
        left, above = across[here], down[there]
        swaps = (codes[here] == other_codes[there]) | (left > above)
        new_left = np.where(swaps, above, left)
        np.copyto(above, left, where=swaps)
        left[:] = new_left
    return down.astype(np.int64)


def _code_points(text: str) -> npt.NDArray[np.uint32]:
    return np.frombuffer(text.encode("utf-32-le"), np.uint32)


def _fold(text: str) -> str:
    """Return a text in lower case with white space collapsed; other characters stay one each."""
    # "İ" is the only character whose lower case has two characters.
    return " ".join(text.replace("İ", "i").lower().split())


def _ceil(number: float) -> int:
    return math.ceil(number - 1e-9)


def _merge_spans(spans: Iterable[Span]) -> list[Span]:
    """Join spans that overlap or touch."""
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged
