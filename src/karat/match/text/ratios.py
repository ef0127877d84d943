"""Similarities of an evidence text and a chunk, and the matching span of the chunk.

`ratio`, `locate_in_chunk` and `nearest` take the texts as they are and normalise them. Below them,
each matcher has a function for its similarity (`sequence_ratio`, `window_ratio`, `token_share`) and
one for the matching span (`sequence_span`, `window_span`, `token_span`) of normalised texts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from rapidfuzz import fuzz, process
from rapidfuzz.distance import Indel, LCSseq

from karat.match.span_intervals import Span
from karat.match.text.normalize import original_offsets
from karat.match.text.rule import Matching

if TYPE_CHECKING:
    from difflib import SequenceMatcher
else:
    try:  # the same result in a tenth of the time; there are no wheels from Python 3.14 on
        from cydifflib import SequenceMatcher
    except ImportError:
        from difflib import SequenceMatcher


# In scripts that are written without spaces, each character is a token.
_SINGLE = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_PUNCTUATION = r"\s!-/:-@\[-`{-~\xa1-\xbf\u2010-\u205e\u3000-\u303f\uff01-\uff0f\uff1a-\uff20"
_TOKEN = re.compile(f"[{_SINGLE}]|[^{_SINGLE}{_PUNCTUATION}]+")


def ratio(evidence: str, chunk: str, matching: Matching | None = None) -> float:
    """Return the similarity that the matcher compares with its threshold.

    >>> round(ratio("paid within 14 days", "paid within 40 days"), 3)
    0.947
    """
    matching = matching or Matching()
    evidence, chunk = matching.normalize(evidence), matching.normalize(chunk)
    if matching.judge:
        return float(matching.judge(evidence, chunk))
    if matching.matcher == "partial":
        return window_ratio(evidence, chunk, matching.either)
    if matching.matcher == "tokens":
        return token_share(tokens(evidence), tokens(chunk))
    return sequence_ratio(evidence, chunk, matching.autojunk)


def locate_in_chunk(evidence: str, chunk: str, matching: Matching | None = None) -> Span | None:
    r"""Return the span of a chunk that matches an evidence text, in code points of the chunk.

    For a substring, this is its first occurrence; otherwise the span from the first to the last
    matching character. None if nothing matches, or if the matcher is a function.

    >>> locate_in_chunk("paid within 14 days", "The refund is PAID\nwithin 14 days.")
    (14, 33)
    """
    matching = matching or Matching()
    normal_evidence, normal_chunk = matching.normalize(evidence), matching.normalize(chunk)
    if not normal_evidence or not normal_chunk:
        return None
    span = _normalised_span(normal_evidence, normal_chunk, matching)
    if span is None:
        return None
    starts, ends = original_offsets(
        chunk, casefold=matching.casefold, nfkc=matching.nfkc, zero_width=matching.zero_width
    )
    return int(starts[span[0]]), int(ends[span[1] - 1])


def _normalised_span(evidence: str, chunk: str, matching: Matching) -> Span | None:
    if matching.judge:
        return None
    start = chunk.find(evidence)
    if start >= 0:
        return start, start + len(evidence)
    if matching.either and chunk in evidence:
        return 0, len(chunk)
    if matching.matcher == "partial":
        return window_span(evidence, chunk, matching.either)
    if matching.matcher == "tokens":
        return token_span(evidence, chunk)
    return sequence_span(evidence, chunk, matching.autojunk)


@dataclass(frozen=True)
class Nearest:
    """The most similar of several chunks, by Indel similarity."""

    chunk: int
    """Its position among the chunks."""
    indel: float


def nearest(
    evidence: str, chunks: Sequence[str], matching: Matching | None = None
) -> Nearest | None:
    """Return the chunk with the highest Indel similarity, the first of several.

    Indel similarity is an upper bound of SequenceMatcher's ratio and much faster to compute. It is
    used only to show near misses.
    """
    matching = matching or Matching()
    if not chunks:
        return None
    similarities = process.cdist(
        [matching.normalize(evidence)],
        [matching.normalize(chunk) for chunk in chunks],
        scorer=Indel.normalized_similarity,
        dtype=np.float64,
    )[0]
    best = int(similarities.argmax())
    return Nearest(best, float(similarities[best]))


def sequence_ratio(evidence: str, chunk: str, autojunk: bool) -> float:
    """Return SequenceMatcher's ratio: 2 × characters in matching blocks / all characters."""
    return SequenceMatcher(None, evidence, chunk, autojunk).ratio()


def sequence_span(evidence: str, chunk: str, autojunk: bool) -> Span | None:
    """Return the span of the chunk from the first matching block to the last."""
    blocks = SequenceMatcher(None, evidence, chunk, autojunk).get_matching_blocks()[:-1]
    return (blocks[0].b, blocks[-1].b + blocks[-1].size) if blocks else None


def window_ratio(evidence: str, chunk: str, either: bool) -> float:
    """Return the ratio of the evidence text with the most similar window of the chunk.

    With `either`, a chunk that is shorter than the evidence text is compared with windows of the
    text.
    """
    short, long = _short_and_long(evidence, chunk, either)
    start, end = _best_window(short, long)
    # Computed from integers, since a score of rapidfuzz is rounded twice.
    common = LCSseq.similarity(short, long[start:end])
    return 2.0 * common / (len(short) + end - start)


def window_span(evidence: str, chunk: str, either: bool) -> Span:
    """Return the most similar window of the chunk, or the whole chunk if it is the shorter text."""
    if len(chunk) <= len(evidence):
        return 0, len(chunk)
    return _best_window(*_short_and_long(evidence, chunk, either))


def _short_and_long(evidence: str, chunk: str, either: bool) -> tuple[str, str]:
    """Return the text that slides along the other one, and that other one."""
    if either and len(chunk) < len(evidence):
        return chunk, evidence
    return evidence, chunk


def _best_window(short: str, long: str) -> Span:
    """Return the most similar window, or the whole text if it is not longer than `short`.

    rapidfuzz would exchange the texts in that case, and a chunk "the" would match every evidence
    text that contains the word.
    """
    if len(long) <= len(short):
        return 0, len(long)
    aligned = fuzz.partial_ratio_alignment(short, long)
    assert aligned is not None  # it is None only with a score cutoff
    return aligned.dest_start, aligned.dest_end


def tokens(text: str) -> list[str]:
    """Return the words of a text, without punctuation: it often differs where a text is cut."""
    return _TOKEN.findall(text)


def token_share(evidence_tokens: list[str], chunk_tokens: list[str]) -> float:
    """Return the share of the evidence tokens that the chunk contains in the same order."""
    if not evidence_tokens:
        return 0.0
    numbers = _number_tokens(evidence_tokens, chunk_tokens)
    return LCSseq.similarity(*numbers) / len(evidence_tokens)


def token_span(evidence: str, chunk: str) -> Span | None:
    """Return the span of the chunk from the first matching token to the last."""
    chunk_tokens = list(_TOKEN.finditer(chunk))
    numbers = _number_tokens(tokens(evidence), [token.group() for token in chunk_tokens])
    equal = [operation for operation in LCSseq.opcodes(*numbers) if operation.tag == "equal"]
    if not equal:
        return None
    return chunk_tokens[equal[0].dest_start].start(), chunk_tokens[equal[-1].dest_end - 1].end()


def _number_tokens(
    evidence_tokens: list[str], chunk_tokens: list[str]
) -> tuple[list[int], list[int]]:
    """Replace tokens by numbers: rapidfuzz compares hashes, and those of strings may collide."""
    numbers = {token: number for number, token in enumerate(dict.fromkeys(evidence_tokens))}
    absent = len(numbers)
    return (
        [numbers[token] for token in evidence_tokens],
        [numbers.get(token, absent) for token in chunk_tokens],
    )
