"""Deciding many pairs exactly while computing hardly any ratio."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import repeat
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rapidfuzz import fuzz, process
from rapidfuzz.distance import Indel

from karat.arrays import Flags, Ints
from karat.errors import InputError
from karat.match.text.ratios import sequence_ratio, token_share, tokens, window_ratio
from karat.match.text.rule import Judge, Matching

MATCH_KINDS = ("not", "exact", "substring", "fuzzy", "function")
"""What the codes of a decision mean."""
_NOT, _EXACT, _SUBSTRING, _FUZZY, _FUNCTION = range(5)

_SLACK = 1e-5  # rapidfuzz rounds its cutoffs to 32 bits: 1e-8 lost pairs that reach a threshold
_MANY = 256  # pairs from which on a second thread is worth starting

Texts = NDArray[np.object_]
Codes = NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class _Pairs:
    """Normalised texts side by side."""

    evidence: Texts
    chunks: Texts

    @property
    def texts(self) -> tuple[Texts, Texts]:
        return self.evidence, self.chunks

    @cached_property
    def lengths(self) -> tuple[Ints, Ints]:
        size = self.evidence.size
        evidence, chunks = (np.fromiter(map(len, side), np.int64, size) for side in self.texts)
        return evidence, chunks

    def where(self, keep: Flags) -> _Pairs:
        return _Pairs(self.evidence[keep], self.chunks[keep])

    def at_least(self, threshold: float, scorer: Any, scale: int, workers: int) -> Flags:
        """Tell which may reach the threshold by a score of rapidfuzz, in threads if many."""
        cutoff = scale * max(threshold - _SLACK, 0.0)
        scores = process.cpdist(
            *self.texts,
            scorer=scorer,
            score_cutoff=cutoff,
            dtype=np.float64,
            workers=workers if self.evidence.size >= _MANY else 1,
        )
        return scores >= cutoff  # a score below the cutoff comes back as 0


def covers(evidence: str, chunk: str, matching: Matching | None = None) -> bool:
    r"""Tell whether a chunk covers an evidence.

    >>> covers("paid within 14 days", "The refund is paid\nwithin 14 days.")
    True
    """
    matching = matching or Matching()
    wanted = matching.normalize(evidence)
    pair = np.array([wanted, matching.normalize(chunk)], object)
    return bool(wanted) and bool(classify_pairs(pair[:1], pair[1:], matching, workers=1)[0])


def classify_pairs(evidence: Texts, chunks: Texts, matching: Matching, *, workers: int) -> Codes:
    """Decide pairs of normalised texts, of which no evidence is empty.

    Each step settles what it can and leaves the rest to the next, which is dearer. A bound may
    only say no, and only where the matcher's number could not reach the threshold.
    """
    how = np.zeros(evidence.size, np.uint8)
    left = chunks != ""
    pairs = _Pairs(evidence, chunks)
    if matching.judge:
        left[left] = _by_function(pairs.where(left), matching.judge, matching.fuzzy_threshold)
        how[left] = _FUNCTION
        return how
    _settle(how, left, _EXACT, operator.eq, chunks, evidence)
    _settle(how, left, _SUBSTRING, operator.contains, chunks, evidence)
    if matching.either:
        _settle(how, left, _SUBSTRING, operator.contains, evidence, chunks)
    left[left] = _FUZZILY[str(matching.matcher)](pairs.where(left), matching, workers)
    how[left] = _FUZZY
    return how


def _settle(
    how: Codes, left: Flags, code: int, found: Callable[..., bool], one: Texts, other: Texts
) -> None:
    """Mark those that are found so, and leave the others."""
    at = np.flatnonzero(left)
    at = at[np.fromiter(map(found, one[at], other[at]), np.bool_, at.size)]
    how[at] = code
    left[at] = False


def _by_ratio(pairs: _Pairs, matching: Matching, workers: int) -> Flags:
    # The blocks of SequenceMatcher are a common subsequence of both texts, with autojunk too. So
    # they hold no more characters than the shorter text (the same formula as SequenceMatcher's,
    # so that they round alike), nor than the longest common subsequence, which Indel counts.
    threshold = matching.fuzzy_threshold
    short, both = np.minimum(*pairs.lengths), np.add(*pairs.lengths)
    able = 2.0 * short / both >= threshold
    able[able] = pairs.where(able).at_least(threshold, Indel.normalized_similarity, 1, workers)
    ratios = map(sequence_ratio, *pairs.where(able).texts, repeat(matching.autojunk))
    able[able] = np.fromiter(ratios, np.float64) >= threshold
    return able


def _by_window(pairs: _Pairs, matching: Matching, workers: int) -> Flags:
    threshold = matching.fuzzy_threshold
    size, chunk_size = pairs.lengths
    slides = chunk_size != size if matching.either else chunk_size > size
    able = np.empty(slides.size, np.bool_)
    # Where there is nothing to slide along, the window is the whole chunk, and Indel its ratio.
    for some, scorer, scale in (
        (slides, fuzz.partial_ratio, 100),
        (~slides, Indel.normalized_similarity, 1),
    ):
        able[some] = pairs.where(some).at_least(threshold, scorer, scale, workers)
    ratios = map(window_ratio, *pairs.where(able).texts, repeat(matching.either))
    able[able] = np.fromiter(ratios, np.float64) >= threshold
    return able


def _by_tokens(pairs: _Pairs, matching: Matching, workers: int) -> Flags:  # noqa: ARG001
    split = cache(tokens)  # a chunk comes back for each evidence of its query
    shares = map(token_share, map(split, pairs.evidence), map(split, pairs.chunks))
    return np.fromiter(shares, np.float64) >= matching.fuzzy_threshold


_FUZZILY = {"ratio": _by_ratio, "partial": _by_window, "tokens": _by_tokens}


def _by_function(pairs: _Pairs, judge: Judge, threshold: float) -> Flags:
    """Ask the function, which may answer with a decision or with a number."""
    answers = np.zeros(pairs.evidence.size, np.bool_)
    for at, pair in enumerate(zip(*pairs.texts, strict=True)):
        answer = judge(*pair)
        if not isinstance(answer, (bool, np.bool_, Real)) or answer != answer:
            raise InputError(
                f"the function answered {answer!r} for an evidence and a chunk",
                field="matcher",
                hint="return True or False, or a number to compare with fuzzy_threshold",
            )
        is_decision = isinstance(answer, (bool, np.bool_))
        answers[at] = answer if is_decision else answer >= threshold
    return answers


_BLOCK = 1 << 16  # pairs that are looked at together


@dataclass(frozen=True, eq=False)
class TextLists:
    """Texts of all queries one after the other, in any order: a row each."""

    query: Ints
    text: Sequence[str]


@dataclass(frozen=True, eq=False)
class Covering:
    """Which chunks cover which evidence, in the order of the chunks' rows, then the evidence's.

    `chunk` and `evidence` are row numbers of what came in, and `how` their code in HOW. Of
    evidence that is the same after normalisation only the first row of a query counts.
    """

    chunk: Ints
    evidence: Ints
    how: Codes
    counted: Ints
    """The rows of evidence that count: neither empty nor repeated."""
    empty: Ints
    """The rows of evidence that have no text."""
    repeated: Ints
    """The rows of evidence that their query has already."""


def cover(
    evidence: TextLists, chunks: TextLists, matching: Matching | None = None, *, workers: int = -1
) -> Covering:
    """Find every chunk that covers an evidence of its own query.

    `workers` is the number of threads, all cores by default; it changes nothing else.
    """
    matching = matching or Matching()
    texts, (wanted, given) = _numbered(matching, evidence.text, chunks.text)
    filled = texts[wanted] != ""
    first = np.zeros(wanted.size, np.bool_)
    first[np.unique(evidence.query * texts.size + wanted, return_index=True)[1]] = True
    counted = np.flatnonzero(first & filled)

    parts = [(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.uint8))]
    for row, chunk in _pairs(evidence.query, chunks.query, counted, wanted):
        # Queries often share an evidence and chunks; all their pairs stand in the same block.
        pairs, which = np.unique(wanted[row] * texts.size + given[chunk], return_inverse=True)
        one, other = np.divmod(pairs, texts.size)
        how = classify_pairs(texts[one], texts[other], matching, workers=workers)[which]
        parts.append((chunk[how > 0], row[how > 0], how[how > 0]))
    chunk, row, how = map(np.concatenate, zip(*parts, strict=True))
    order = np.lexsort((row, chunk))
    return Covering(
        chunk[order],
        row[order],
        how[order],
        counted=counted,
        empty=np.flatnonzero(~filled),
        repeated=np.flatnonzero(filled & ~first),
    )


def _numbered(matching: Matching, *columns: Sequence[str]) -> tuple[Texts, list[Ints]]:
    """Return the distinct normalised texts, and which of them stands in each row."""
    number: dict[str, int] = {}
    seen: dict[str, int] = {}

    def number_of(text: str) -> int:
        if text not in seen:
            seen[text] = number.setdefault(matching.normalize(text), len(number))
        return seen[text]

    rows = [np.fromiter(map(number_of, column), np.int64, len(column)) for column in columns]
    return np.fromiter(number, object, len(number)), rows


def _pairs(
    evidence_query: Ints, chunk_query: Ints, counted: Ints, wanted: Ints
) -> Iterator[tuple[Ints, Ints]]:
    """Yield every evidence with every chunk of its query, by blocks of whole evidence texts."""
    order = np.argsort(chunk_query, kind="stable")
    ordered = chunk_query[order]
    rows = counted[np.argsort(wanted[counted], kind="stable")]
    first = np.searchsorted(ordered, evidence_query[rows], "left")
    each = np.searchsorted(ordered, evidence_query[rows], "right") - first
    text = wanted[rows]
    cuts = np.append(np.flatnonzero(text[1:] != text[:-1]) + 1, rows.size)
    through = np.cumsum(each)
    start = 0
    while start < rows.size:
        full = np.searchsorted(through, through[start] - each[start] + _BLOCK, "right")
        least, most = np.searchsorted(cuts, (start, full), "right")
        end = int(cuts[max(least, most - 1)])
        repeats = each[start:end]
        offset = np.arange(repeats.sum()) - np.repeat(np.cumsum(repeats) - repeats, repeats)
        yield (
            np.repeat(rows[start:end], repeats),
            order[np.repeat(first[start:end], repeats) + offset],
        )
        start = end


def shared_characters(
    evidence: TextLists,
    chunks: TextLists,
    rank: Ints,
    covering: Covering,
    matching: Matching,
    least: int,
) -> tuple[Ints, Ints, Ints]:
    """Return for each evidence that counts, rank by rank, how many characters are held first there.

    A character is held where it stands in a stretch of at least `least` characters that the chunk
    has too; of an evidence that is shorter, all of it must be there. Spaces are not counted, since
    one is lost where a text is cut. Chunks stand in rank order.
    """
    stops = np.searchsorted(chunks.query, evidence.query[covering.counted], "right")
    starts = np.searchsorted(chunks.query, evidence.query[covering.counted], "left")
    texts: dict[int, str] = {}
    rows: list[tuple[int, int, int]] = []
    for piece, (row, start, stop) in enumerate(
        zip(covering.counted.tolist(), starts.tolist(), stops.tolist(), strict=True)
    ):
        wanted = matching.normalize(evidence.text[row])
        size = min(least, len(wanted))
        first = np.zeros(len(wanted), np.int64)
        for at in range(start, stop):
            if at not in texts:
                texts[at] = matching.normalize(chunks.text[at])
            for place in _held(wanted, texts[at], size):
                held = first[place : place + size]
                held[held == 0] = rank[at]
        inked = np.fromiter((character != " " for character in wanted), np.bool_, len(wanted))
        ranks, characters = np.unique(first[inked & (first > 0)], return_counts=True)
        rows += [(piece, *each) for each in zip(ranks.tolist(), characters.tolist(), strict=True)]
    table = np.array(rows, np.int64).reshape(-1, 3)
    return table[:, 0], table[:, 1], table[:, 2]


def _held(text: str, chunk: str, size: int) -> list[int]:
    """Return where the stretches of a size begin that the chunk has too.

    However a text is cut into blocks of half that size, a stretch holds one whole; so only those
    around a block that the chunk has are looked for.
    """
    half, last = (size + 1) // 2, len(text) - size
    starts: set[int] = set()
    for at in range(0, len(text) - half + 1, half):
        if text[at : at + half] in chunk:
            starts.update(range(max(at + half - size, 0), min(at, last) + 1))
    return [start for start in starts if text[start : start + size] in chunk]
