"""Where documents say nearly the same as a text.

Texts are compared in lower case and with white space collapsed. The similarity of a text and a
stretch is that of insertions and deletions, 2 × their longest common subsequence / their lengths.
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


def occurrences(wanted: pl.Series, documents: pl.Series) -> pl.DataFrame:
    """Return every place of every wanted text: wanted, document (its row), start, end.

    Places may overlap one another. All texts are looked for in one pass (Aho and Corasick, 1975),
    so the time follows the documents and not the number of texts.
    """
    found = pl.DataFrame(
        {
            "document": pl.int_range(documents.len(), eager=True),
            "wanted": documents.str.extract_many(wanted.implode(), overlapping=True),
            "start": documents.str.find_many(wanted.implode(), overlapping=True),
        }
    )
    found = found.filter(pl.col("start").list.len() > 0)
    parts = [
        found[at].explode("wanted", "start").with_columns(start=_code_points(documents[row], byte))
        for at, (row, byte) in enumerate(found.select("document", "start").iter_rows())
    ]
    every = pl.concat([found.clear().explode("wanted", "start").cast({"start": pl.Int64}), *parts])
    return every.select(
        "wanted", "document", "start", end=pl.col("start") + pl.col("wanted").str.len_chars()
    )


def _code_points(text: str, offsets: list[int]) -> npt.NDArray[np.int64]:
    """Turn offsets in bytes of UTF-8 into offsets in code points."""
    places = np.array(offsets, np.int64)
    if text.isascii():
        return places
    content = np.frombuffer(text.encode(), np.uint8)
    begun: npt.NDArray[np.int64] = np.cumsum(content & 0xC0 != 0x80)
    return begun[places] - 1


def strand_starts(text: str, other: str) -> Ints:
    """Return what tells the longest common subsequence of a text and each stretch of another.

    That is as long as `other[start:end]`, less one for each of the first `end` numbers that is
    `start` or more. This is the combing of Tiskin ('Semi-local string comparison', 2006): for each
    pair of characters a strand from the left and one from above meet, and go on crosswise where
    the characters are equal, or bounce where they crossed before. Cells on a diagonal do not
    depend on one another, so each diagonal is one step.

    >>> starts = strand_starts("ac", "abc")
    >>> 3 - int(sum(starts[:3] >= 0)), 2 - int(sum(starts[:3] >= 1))  # "abc" and "bc"
    (2, 1)
    """
    rows, columns = len(text), len(other)
    kind: type[np.signedinteger[Any]] = np.int16 if rows + columns < 1 << 15 else np.int64
    codes, others = _codes(text)[::-1], _codes(other)
    across = np.arange(-rows, 0, dtype=kind)
    down = np.arange(columns, dtype=kind)
    for diagonal in range(rows + columns - 1):
        first, last = max(0, diagonal - columns + 1), min(rows - 1, diagonal)
        here = slice(rows - 1 - last, rows - first)
        there = slice(diagonal - last, diagonal - first + 1)
        left, above = across[here], down[there]
        crossing = (codes[here] == others[there]) | (left > above)
        kept = np.where(crossing, above, left)
        np.copyto(above, left, where=crossing)
        left[:] = kept
    return down.astype(np.int64)


def _codes(text: str) -> npt.NDArray[np.uint32]:
    return np.frombuffer(text.encode("utf-32-le"), np.uint32)


_BLOCK = 1 << 20  # as many windows are looked at in one go


def windows(text: str, long: str, size: int, common: int) -> Iterator[tuple[int, int]]:
    """Yield stretches that together hold each window of a size with so much in common with a text.

    What is in common is the longest common subsequence. A window that moves on by one character
    gains or loses at most one, so between two windows that have too little for their distance none
    has enough. Where that does not show, the middle between them is looked at, and so on; at the
    end there may be windows in the stretches that have a little less.
    """
    last = max(0, len(long) - size)
    for begin in range(0, max(1, last), _BLOCK):
        end = min(begin + _BLOCK, last)
        step = max(1, size // 2)
        places = np.array([*range(begin, end, step), end])
        held = _in_common(text, long, size, places, common - step)
        here, there = (slice(-1), slice(1, None)) if end > begin else (slice(1), slice(1))
        left, right, at_left, at_right = places[here], places[there], held[here], held[there]
        while left.size:
            enough = at_left + at_right + (right - left) >= 2 * common
            left, right = left[enough], right[enough]
            at_left, at_right = at_left[enough], at_right[enough]
            if step <= max(1, size // 16):
                break
            step = (step + 1) // 2
            middle = (left + right) // 2
            held = _in_common(text, long, size, middle, common - step)
            left, right = np.concatenate((left, middle)), np.concatenate((middle, right))
            at_left, at_right = np.concatenate((at_left, held)), np.concatenate((held, at_right))
        yield from zip(left.tolist(), (right + size).tolist(), strict=True)


def _in_common(text: str, long: str, size: int, places: Ints, least: int) -> Ints:
    """Count what the windows at some places have in common with a text; 0 where it is less."""
    parts = [long[place : place + size] for place in places.tolist()]
    held: Ints = process.cdist(
        [text], parts, scorer=LCSseq.similarity, score_cutoff=max(0, least), dtype=np.int64
    )[0]
    return held


_BETWEEN = "\n"  # stands in no collapsed text

Stretch = tuple[int, int]


@dataclass(frozen=True)
class Similar:
    """A stretch of a document, and how similar it is to what was looked for."""

    document: int
    start: int
    end: int
    ratio: float


class SimilarTexts:
    """Documents, to find in them what is similar to a text."""

    def __init__(self, documents: Iterable[str]) -> None:
        self._documents = [_Document(text) for text in documents]
        self._joined = _BETWEEN.join(document.folded for document in self._documents)
        sizes = [len(document.folded) + len(_BETWEEN) for document in self._documents]
        self._begins = np.cumsum([0, *sizes])[:-1]

    def find(self, text: str, threshold: float) -> list[Similar]:
        """Return the places that reach the threshold, none overlapping another.

        They are what comes of this: take the most similar stretch of a document (of equal ones the
        first, then the shortest), then the most similar one that does not overlap it, and so on.
        A stretch begins and ends with a character that is not white space. Nothing is missed: each
        stretch that can reach the threshold lies in a region that is compared in full. Where the
        threshold is below 0.7 or so, that is true of unrelated text too, and the search is slow.
        """
        search = _Search(_folded(text), threshold)
        found = []
        for begin, end in _merged(search.regions(self._joined)):
            at = begin
            for part in self._joined[begin:end].split(_BETWEEN):
                number = int(np.searchsorted(self._begins, at, side="right")) - 1
                offset = at - int(self._begins[number])
                for start, stop, ratio in search.best(part):
                    place = self._documents[number].place(offset + start, offset + stop)
                    found.append(Similar(number, *place, ratio))
                at += len(part) + len(_BETWEEN)
        return found


class _Document:
    def __init__(self, text: str) -> None:
        self.text = text
        self.folded = _folded(text)

    @cached_property
    def dense(self) -> DenseText:
        return DenseText(self.text)

    def place(self, start: int, end: int) -> Stretch:
        """Return where a stretch of the folded text stands in the text itself."""
        first, last = (at - self.folded.count(" ", 0, at) for at in (start, end))
        return self.dense.original_span(first, last)


@dataclass(frozen=True)
class _Search:
    """A text that is looked for, and what follows from its length and the threshold."""

    text: str
    threshold: float

    @cached_property
    def shortest(self) -> int:
        """The shortest stretch that can reach the threshold: one that the text holds in full."""
        return _at_least(len(self.text) * self.threshold / (2 - self.threshold))

    @cached_property
    def longest(self) -> int:
        """The longest stretch that can: one that holds the text in full."""
        return math.floor(len(self.text) * (2 / self.threshold - 1) + 1e-9)

    def regions(self, joined: str) -> Iterator[Stretch]:
        """Yield regions that together hold each stretch that can reach the threshold.

        A stretch no longer than the text lies in a window of the text's length, a longer one in a
        window of the longest length, and so much in common with the text that the window shows it.
        """
        size = len(self.text)
        yield from windows(self.text, joined, size, self.shortest)
        if self.longest > size:
            yield from windows(self.text, joined, self.longest, _at_least(size * self.threshold))

    def best(self, part: str) -> Iterator[tuple[int, int, float]]:
        """Yield the most similar stretches of a part, none overlapping another."""
        if LCSseq.similarity(self.text, part) < self.shortest:
            return
        table = _Stretches(self, part)
        waiting = [(0, len(part))]
        while waiting:
            begin, end = waiting.pop()
            found = table.best(begin, end)
            if found is not None:
                yield found
                waiting += [(begin, found[0]), (found[1], end)]


class _Stretches:
    """All stretches of a part of a document, compared with a text."""

    def __init__(self, search: _Search, part: str) -> None:
        self.search = search
        self.part = part
        starts = strand_starts(search.text, part)
        self.ends = np.full(len(part), len(part))
        """Where the strand that starts at each character ends, if it does."""
        inside = np.flatnonzero(starts >= 0)
        self.ends[starts[inside]] = inside
        self.closed = np.array([False, *(character != " " for character in part)])
        """Whether a stretch may end before each character."""

    def best(self, begin: int, end: int) -> tuple[int, int, float] | None:
        """Return the most similar stretch within bounds that reaches the threshold."""
        size, shortest, longest = len(self.search.text), self.search.shortest, self.search.longest
        lengths = np.arange(shortest, longest + 1)
        missing = np.zeros(len(self.part) + 1, np.int64)
        """How many characters of [start, at) are not in common, for each `at`."""
        best, ratio = None, self.search.threshold
        for start in range(end - 1, begin - 1, -1):
            last = min(start + longest, end)
            missing[self.ends[start] + 1 : start + longest + 1] += 1
            if last - start - missing[last] < shortest or self.part[start] == " ":
                continue
            here = lengths[: last - start - shortest + 1]
            stops = slice(start + shortest, last + 1)
            ratios = 2 * (here - missing[stops]) / (size + here) * self.closed[stops]
            at = int(ratios.argmax())
            if ratios[at] >= ratio:
                ratio = float(ratios[at])
                best = start, start + shortest + at, ratio
        return best


def _folded(text: str) -> str:
    """Return a text in lower case, character for character, with white space collapsed."""
    # Of all characters only this one is two in lower case.
    return " ".join(text.replace("İ", "i").lower().split())


def _at_least(number: float) -> int:
    return math.ceil(number - 1e-9)


def _merged(stretches: Iterable[Stretch]) -> list[Stretch]:
    """Join stretches that overlap or touch."""
    merged: list[Stretch] = []
    for begin, end in sorted(stretches):
        if merged and begin <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((begin, end))
    return merged
