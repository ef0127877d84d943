"""What matchers compare with their threshold, for one pair of normalised texts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from rapidfuzz import fuzz, process
from rapidfuzz.distance import Indel, LCSseq

from karat.match.text.normalize import original_offsets
from karat.match.text.rule import Matching

if TYPE_CHECKING:
    from difflib import SequenceMatcher
else:
    try:  # the same blocks and the same digits in a tenth of the time; no wheels from 3.14 on
        from cydifflib import SequenceMatcher
    except ImportError:
        from difflib import SequenceMatcher


Stretch = tuple[int, int]

# A character of a script that is written without spaces is a token of its own.
_ALONE = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_MARKS = r"\s!-/:-@\[-`{-~\xa1-\xbf\u2010-\u205e\u3000-\u303f\uff01-\uff0f\uff1a-\uff20"
_TOKEN = re.compile(f"[{_ALONE}]|[^{_ALONE}{_MARKS}]+")


def sequence_ratio(evidence: str, chunk: str, autojunk: bool) -> float:
    """Return SequenceMatcher's ratio: twice the characters in matching blocks / all characters."""
    return SequenceMatcher(None, evidence, chunk, autojunk).ratio()


def sequence_span(evidence: str, chunk: str, autojunk: bool) -> Stretch | None:
    """Return the stretch of the chunk from the first matching block to the last."""
    blocks = SequenceMatcher(None, evidence, chunk, autojunk).get_matching_blocks()[:-1]
    return (blocks[0].b, blocks[-1].b + blocks[-1].size) if blocks else None


def window_ratio(evidence: str, chunk: str, either: bool) -> float:
    """Return the ratio of the evidence with the window of the chunk that is likest to it.

    With `either`, a chunk that is shorter than the evidence is compared with its windows.
    """
    evidence, chunk = _windowed(evidence, chunk, either)
    start, end = _window(evidence, chunk)
    # From whole numbers, since a score of rapidfuzz is rounded twice.
    common = LCSseq.similarity(evidence, chunk[start:end])
    return 2.0 * common / (len(evidence) + end - start)


def window_span(evidence: str, chunk: str, either: bool) -> Stretch:
    """Return that window; the whole chunk where it is the chunk that is slid along."""
    if len(chunk) <= len(evidence):
        return 0, len(chunk)
    return _window(*_windowed(evidence, chunk, either))


def _windowed(evidence: str, chunk: str, either: bool) -> tuple[str, str]:
    """Return what is slid along, and along what."""
    return (chunk, evidence) if either and len(chunk) < len(evidence) else (evidence, chunk)


def _window(short: str, long: str) -> Stretch:
    """Return the best window, which is the whole where there is nothing to slide along.

    The whole also where rapidfuzz would slide the other way: a chunk "the" is no match for every
    evidence that has the word.
    """
    if len(long) <= len(short):
        return 0, len(long)
    aligned = fuzz.partial_ratio_alignment(short, long)
    assert aligned is not None  # only a score cutoff gives none
    return aligned.dest_start, aligned.dest_end


def tokens(text: str) -> list[str]:
    """Return the words of a text without punctuation, which stands at other places once cut."""
    return _TOKEN.findall(text)


def token_share(wanted: list[str], found: list[str]) -> float:
    """Return which share of the evidence's tokens stands in the chunk, in the same order."""
    return LCSseq.similarity(*_numbered(wanted, found)) / len(wanted) if wanted else 0.0


def token_span(evidence: str, chunk: str) -> Stretch | None:
    """Return the stretch of the chunk from the first of those tokens to the last."""
    found = list(_TOKEN.finditer(chunk))
    numbered = _numbered(tokens(evidence), [one.group() for one in found])
    same = [step for step in LCSseq.opcodes(*numbered) if step.tag == "equal"]
    if not same:
        return None
    return found[same[0].dest_start].start(), found[same[-1].dest_end - 1].end()


def _numbered(wanted: list[str], found: list[str]) -> tuple[list[int], list[int]]:
    """Return tokens as numbers, since rapidfuzz goes by hashes, and those of texts may collide."""
    number = {token: at for at, token in enumerate(dict.fromkeys(wanted))}
    absent = len(number)
    return [number[token] for token in wanted], [number.get(token, absent) for token in found]


@dataclass(frozen=True)
class Nearest:
    """Which of some chunks is likest to an evidence, by Indel similarity and not by its ratio."""

    chunk: int
    indel: float


def ratio(evidence: str, chunk: str, matching: Matching | None = None) -> float:
    """Return the number that the matcher compares with its threshold, computed in full.

    >>> round(ratio("paid within 14 days", "paid within 40 days"), 3)
    0.947
    """
    matching = matching or Matching()
    one, other = matching.normalize(evidence), matching.normalize(chunk)
    if matching.judge:
        return float(matching.judge(one, other))
    if matching.matcher == "partial":
        return window_ratio(one, other, matching.either)
    if matching.matcher == "tokens":
        return token_share(tokens(one), tokens(other))
    return sequence_ratio(one, other, matching.autojunk)


def locate_in_chunk(evidence: str, chunk: str, matching: Matching | None = None) -> Stretch | None:
    r"""Return where an evidence stands in a chunk, in code points of the chunk as it came.

    A substring where it stands first; else from the first to the last character that matches.
    None where nothing does, or a function decides.

    >>> where("paid within 14 days", "The refund is PAID\nwithin 14 days.")
    (14, 33)
    """
    matching = matching or Matching()
    one, other = matching.normalize(evidence), matching.normalize(chunk)
    found = _stretch(one, other, matching) if one and other else None
    if found is None:
        return None
    starts, ends = original_offsets(
        chunk, casefold=matching.casefold, nfkc=matching.nfkc, zero_width=matching.zero_width
    )
    return int(starts[found[0]]), int(ends[found[1] - 1])


def nearest(
    evidence: str, chunks: Sequence[str], matching: Matching | None = None
) -> Nearest | None:
    """Return the chunk with the highest Indel similarity, the first of equal ones.

    That similarity is at least SequenceMatcher's ratio and far cheaper; it decides nothing.
    """
    matching = matching or Matching()
    if not chunks:
        return None
    wanted, given = matching.normalize(evidence), [matching.normalize(chunk) for chunk in chunks]
    scorer = Indel.normalized_similarity
    similarity = process.cdist([wanted], given, scorer=scorer, dtype=np.float64)[0]
    best = int(similarity.argmax())
    return Nearest(best, float(similarity[best]))


def _stretch(evidence: str, chunk: str, matching: Matching) -> Stretch | None:
    if matching.judge:
        return None
    at = chunk.find(evidence)
    if at >= 0:
        return at, at + len(evidence)
    if matching.either and chunk in evidence:
        return 0, len(chunk)
    if matching.matcher == "partial":
        return window_span(evidence, chunk, matching.either)
    if matching.matcher == "tokens":
        return token_span(evidence, chunk)
    return sequence_span(evidence, chunk, matching.autojunk)
