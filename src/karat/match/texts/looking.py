"""Looking at one evidence: its exact number, its place in a chunk, the chunk nearest to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from rapidfuzz import process
from rapidfuzz.distance import Indel

from karat.match.texts.matching import Matching
from karat.match.texts.normal import places
from karat.match.texts.ratios import (
    Stretch,
    sequence_ratio,
    sequence_stretch,
    token_share,
    token_stretch,
    tokens,
    window_ratio,
    window_stretch,
)


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


def where(evidence: str, chunk: str, matching: Matching | None = None) -> Stretch | None:
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
    starts, ends = places(
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
        return window_stretch(evidence, chunk, matching.either)
    if matching.matcher == "tokens":
        return token_stretch(evidence, chunk)
    return sequence_stretch(evidence, chunk, matching.autojunk)
