"""What several chunks hold of an evidence together, word for word."""

from __future__ import annotations

import numpy as np

from karat.arrays import Ints
from karat.match.texts.batch import Covering, Listed
from karat.match.texts.matching import Matching


def shared(
    evidence: Listed,
    chunks: Listed,
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
