"""Deciding many pairs exactly while computing hardly any ratio."""

from __future__ import annotations

import operator
from collections.abc import Callable
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
from karat.match.texts.matching import Judge, Matching
from karat.match.texts.ratios import sequence_ratio, token_share, tokens, window_ratio

HOW = ("not", "exact", "substring", "fuzzy", "function")
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
    return bool(wanted) and bool(decide(pair[:1], pair[1:], matching, workers=1)[0])


def decide(evidence: Texts, chunks: Texts, matching: Matching, *, workers: int) -> Codes:
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
