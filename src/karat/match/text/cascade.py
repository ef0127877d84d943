"""Decide for many pairs of texts whether the chunk covers the evidence text.

`cover` compares the evidence texts of each query with its chunks, `covers` compares one pair, and
`shared_characters` counts the characters that chunks contain verbatim. `classify_pairs` is the
cascade: cheap tests settle most pairs, so that a similarity is computed for hardly any.
"""

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
from karat.steps import tracked

Texts = NDArray[np.object_]
Codes = NDArray[np.uint8]

MATCH_KINDS = ("not", "exact", "substring", "fuzzy", "function")
"""The names of the codes that `classify_pairs` returns."""
_NOT, _EXACT, _SUBSTRING, _FUZZY, _FUNCTION = range(5)

_SLACK = 1e-5
"""rapidfuzz rounds cutoffs to 32 bits; with 1e-8, pairs that reach the threshold were lost."""
_PAIRS_FOR_THREADS = 256
"""The number of pairs from which more than one thread is worthwhile."""
_BLOCK = 1 << 16
"""How many pairs are compared at a time."""


@dataclass(frozen=True, eq=False)
class TextLists:
    """The texts of all queries in one list, with the query of each; the order is arbitrary."""

    query: Ints
    text: Sequence[str]


@dataclass(frozen=True, eq=False)
class Covering:
    """Which chunks cover which evidence texts, sorted by chunk and evidence text.

    `chunk` and `evidence` are row numbers of the input, and `how` is a code of MATCH_KINDS. If a
    query has several evidence texts that are equal after normalisation, only the first counts.
    """

    chunk: Ints
    evidence: Ints
    how: Codes
    counted: Ints
    """The rows of the evidence texts that count: neither empty nor repeated."""
    empty: Ints
    """The rows of empty evidence texts."""
    repeated: Ints
    """The rows of evidence texts that repeat an earlier one of the same query."""


def covers(evidence: str, chunk: str, matching: Matching | None = None) -> bool:
    r"""Return whether a chunk covers an evidence text.

    >>> covers("paid within 14 days", "The refund is paid\nwithin 14 days.")
    True
    """
    matching = matching or Matching()
    normal_evidence, normal_chunk = matching.normalize(evidence), matching.normalize(chunk)
    if not normal_evidence:
        return False
    pair = np.array([normal_evidence, normal_chunk], object)
    return bool(classify_pairs(pair[:1], pair[1:], matching, workers=1)[0])


def cover(
    evidence: TextLists, chunks: TextLists, matching: Matching | None = None, *, workers: int = -1
) -> Covering:
    """Find all chunks that cover an evidence text of the same query.

    `workers` is the number of threads, -1 for all cores. It does not affect the result.
    """
    matching = matching or Matching()
    texts, (evidence_text, chunk_text) = _distinct_texts(matching, evidence.text, chunks.text)
    nonempty = texts[evidence_text] != ""
    is_first = np.zeros(evidence_text.size, np.bool_)
    keys = evidence.query * texts.size + evidence_text
    is_first[np.unique(keys, return_index=True)[1]] = True
    counted = np.flatnonzero(is_first & nonempty)

    parts = [(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.uint8))]
    blocks = _pair_blocks(evidence.query, chunks.query, counted, evidence_text)
    for row, chunk in tracked(
        blocks, "matching evidence", counted.size, size=lambda block: np.unique(block[0]).size
    ):
        # Queries often share texts, and all pairs of an evidence text are in the same block, so
        # each distinct pair of texts is compared once.
        pair_keys, pair = np.unique(
            evidence_text[row] * texts.size + chunk_text[chunk], return_inverse=True
        )
        left, right = np.divmod(pair_keys, texts.size)
        how = classify_pairs(texts[left], texts[right], matching, workers=workers)[pair]
        parts.append((chunk[how > 0], row[how > 0], how[how > 0]))
    chunk, row, how = map(np.concatenate, zip(*parts, strict=True))
    order = np.lexsort((row, chunk))
    return Covering(
        chunk[order],
        row[order],
        how[order],
        counted=counted,
        empty=np.flatnonzero(~nonempty),
        repeated=np.flatnonzero(nonempty & ~is_first),
    )


def _distinct_texts(matching: Matching, *columns: Sequence[str]) -> tuple[Texts, list[Ints]]:
    """Return the distinct normalised texts, and the number of the text in each row."""
    number_by_normal: dict[str, int] = {}
    number_by_text: dict[str, int] = {}

    def number_of(text: str) -> int:
        if text not in number_by_text:
            normal = matching.normalize(text)
            number_by_text[text] = number_by_normal.setdefault(normal, len(number_by_normal))
        return number_by_text[text]

    rows = [np.fromiter(map(number_of, column), np.int64, len(column)) for column in columns]
    return np.fromiter(number_by_normal, object, len(number_by_normal)), rows


def _pair_blocks(
    evidence_query: Ints, chunk_query: Ints, counted: Ints, evidence_text: Ints
) -> Iterator[tuple[Ints, Ints]]:
    """Yield the pairs of an evidence text and a chunk of its query, in blocks.

    All pairs of the same evidence text are in the same block.
    """
    order = np.argsort(chunk_query, kind="stable")
    ordered = chunk_query[order]
    rows = counted[np.argsort(evidence_text[counted], kind="stable")]
    first = np.searchsorted(ordered, evidence_query[rows], "left")
    n_chunks = np.searchsorted(ordered, evidence_query[rows], "right") - first
    text = evidence_text[rows]
    cuts = np.append(np.flatnonzero(text[1:] != text[:-1]) + 1, rows.size)
    n_pairs = np.cumsum(n_chunks)
    start = 0
    while start < rows.size:
        full = np.searchsorted(n_pairs, n_pairs[start] - n_chunks[start] + _BLOCK, "right")
        least, most = np.searchsorted(cuts, (start, full), "right")
        end = int(cuts[max(least, most - 1)])
        counts = n_chunks[start:end]
        offset = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        yield (
            np.repeat(rows[start:end], counts),
            order[np.repeat(first[start:end], counts) + offset],
        )
        start = end


@dataclass(frozen=True, eq=False)
class _Pairs:
    """Pairs of normalised texts."""

    evidence: Texts
    chunks: Texts

    @property
    def texts(self) -> tuple[Texts, Texts]:
        return self.evidence, self.chunks

    @cached_property
    def lengths(self) -> tuple[Ints, Ints]:
        size = self.evidence.size
        evidence, chunks = (np.fromiter(map(len, texts), np.int64, size) for texts in self.texts)
        return evidence, chunks

    def where(self, keep: Flags) -> _Pairs:
        return _Pairs(self.evidence[keep], self.chunks[keep])

    def can_reach(self, threshold: float, scorer: Any, scale: int, workers: int) -> Flags:
        """Return which pairs may reach the threshold according to a scorer of rapidfuzz."""
        cutoff = scale * max(threshold - _SLACK, 0.0)
        scores = process.cpdist(
            *self.texts,
            scorer=scorer,
            score_cutoff=cutoff,
            dtype=np.float64,
            workers=workers if self.evidence.size >= _PAIRS_FOR_THREADS else 1,
        )
        return scores >= cutoff  # rapidfuzz returns 0 for scores below the cutoff


def classify_pairs(evidence: Texts, chunks: Texts, matching: Matching, *, workers: int) -> Codes:
    """Return a code of MATCH_KINDS for each pair of normalised texts.

    The evidence texts must not be empty.

    Each step settles some pairs and leaves the others to the next step, which is more expensive.
    The bounds are safe: they reject a pair only if its similarity cannot reach the threshold.
    """
    how = np.full(evidence.size, _NOT, np.uint8)
    is_open = chunks != ""
    pairs = _Pairs(evidence, chunks)
    if matching.judge:
        is_open[is_open] = _match_by_function(
            pairs.where(is_open), matching.judge, matching.fuzzy_threshold
        )
        how[is_open] = _FUNCTION
        return how
    _settle(how, is_open, _EXACT, operator.eq, chunks, evidence)
    _settle(how, is_open, _SUBSTRING, operator.contains, chunks, evidence)
    if matching.either:
        _settle(how, is_open, _SUBSTRING, operator.contains, evidence, chunks)
    match_fuzzily = _FUZZY_MATCHERS[str(matching.matcher)]
    is_open[is_open] = match_fuzzily(pairs.where(is_open), matching, workers)
    how[is_open] = _FUZZY
    return how


def _settle(
    how: Codes, is_open: Flags, code: int, test: Callable[..., bool], left: Texts, right: Texts
) -> None:
    """Assign the code to the open pairs that pass the test, and close them."""
    rows = np.flatnonzero(is_open)
    rows = rows[np.fromiter(map(test, left[rows], right[rows]), np.bool_, rows.size)]
    how[rows] = code
    is_open[rows] = False


def _match_by_ratio(pairs: _Pairs, matching: Matching, workers: int) -> Flags:
    # The matching blocks of SequenceMatcher form a common subsequence of both texts, with autojunk
    # too. So they contain at most as many characters as the shorter text (computed with the same
    # formula as SequenceMatcher's, so that both round alike), and at most as many as the longest
    # common subsequence, which Indel counts.
    threshold = matching.fuzzy_threshold
    shorter, total = np.minimum(*pairs.lengths), np.add(*pairs.lengths)
    possible = 2.0 * shorter / total >= threshold
    possible[possible] = pairs.where(possible).can_reach(
        threshold, Indel.normalized_similarity, 1, workers
    )
    ratios = map(sequence_ratio, *pairs.where(possible).texts, repeat(matching.autojunk))
    possible[possible] = np.fromiter(ratios, np.float64) >= threshold
    return possible


def _match_by_window(pairs: _Pairs, matching: Matching, workers: int) -> Flags:
    threshold = matching.fuzzy_threshold
    size, chunk_size = pairs.lengths
    has_windows = chunk_size != size if matching.either else chunk_size > size
    possible = np.empty(has_windows.size, np.bool_)
    # Without windows the whole chunk is compared, and Indel similarity is its ratio.
    for group, scorer, scale in (
        (has_windows, fuzz.partial_ratio, 100),
        (~has_windows, Indel.normalized_similarity, 1),
    ):
        possible[group] = pairs.where(group).can_reach(threshold, scorer, scale, workers)
    ratios = map(window_ratio, *pairs.where(possible).texts, repeat(matching.either))
    possible[possible] = np.fromiter(ratios, np.float64) >= threshold
    return possible


def _match_by_tokens(pairs: _Pairs, matching: Matching, workers: int) -> Flags:  # noqa: ARG001
    split = cache(tokens)  # a chunk occurs once for each evidence text of its query
    shares = map(token_share, map(split, pairs.evidence), map(split, pairs.chunks))
    return np.fromiter(shares, np.float64) >= matching.fuzzy_threshold


_FUZZY_MATCHERS = {
    "ratio": _match_by_ratio,
    "partial": _match_by_window,
    "tokens": _match_by_tokens,
}


def _match_by_function(pairs: _Pairs, judge: Judge, threshold: float) -> Flags:
    is_match = np.zeros(pairs.evidence.size, np.bool_)
    for row, (evidence, chunk) in enumerate(zip(*pairs.texts, strict=True)):
        answer = judge(evidence, chunk)
        if not isinstance(answer, (bool, np.bool_, Real)) or answer != answer:
            raise InputError(
                f"expected the function to return a bool or a number, got {answer!r}",
                field="matcher",
                hint="return True or False, or a number to compare with fuzzy_threshold",
            )
        is_decision = isinstance(answer, (bool, np.bool_))
        is_match[row] = answer if is_decision else answer >= threshold
    return is_match


def shared_characters(
    evidence: TextLists,
    chunks: TextLists,
    rank: Ints,
    covering: Covering,
    matching: Matching,
    least: int,
) -> tuple[Ints, Ints, Ints]:
    """Return (target, rank, characters): how many characters are in no chunk at an earlier rank.

    Targets are the evidence texts that count. `characters` is the number of characters of the
    target that are in the chunk at this rank and in no earlier chunk. A character is in a chunk if
    the chunk contains it together with its neighbours: a piece of the evidence text of `least` or
    more characters. If the evidence text is shorter than `least`, the chunk must contain all of it.
    Spaces do not count, since they are lost where a text is cut. Chunks must be sorted by query
    and rank.
    """
    stops = np.searchsorted(chunks.query, evidence.query[covering.counted], "right")
    starts = np.searchsorted(chunks.query, evidence.query[covering.counted], "left")
    chunk_texts: dict[int, str] = {}
    rows: list[tuple[int, int, int]] = []
    for target, (row, start, stop) in enumerate(
        zip(covering.counted.tolist(), starts.tolist(), stops.tolist(), strict=True)
    ):
        text = matching.normalize(evidence.text[row])
        size = min(least, len(text))
        first_rank = np.zeros(len(text), np.int64)
        for chunk in range(start, stop):
            if chunk not in chunk_texts:
                chunk_texts[chunk] = matching.normalize(chunks.text[chunk])
            for offset in _shared_offsets(text, chunk_texts[chunk], size):
                window = first_rank[offset : offset + size]
                window[window == 0] = rank[chunk]
        not_space = np.fromiter((character != " " for character in text), np.bool_, len(text))
        ranks, counts = np.unique(first_rank[not_space & (first_rank > 0)], return_counts=True)
        rows += zip([target] * ranks.size, ranks.tolist(), counts.tolist(), strict=True)
    table = np.array(rows, np.int64).reshape(-1, 3)
    return table[:, 0], table[:, 1], table[:, 2]


def _shared_offsets(text: str, chunk: str, size: int) -> list[int]:
    """Return the offsets of the windows of `size` characters that the chunk contains.

    If a text is cut into blocks of half that size, every window contains a whole block. So only
    the windows around blocks that the chunk contains are candidates.
    """
    half, last = (size + 1) // 2, len(text) - size
    offsets: set[int] = set()
    for block in range(0, len(text) - half + 1, half):
        if text[block : block + half] in chunk:
            offsets.update(range(max(block + half - size, 0), min(block, last) + 1))
    return [offset for offset in offsets if text[offset : offset + size] in chunk]
