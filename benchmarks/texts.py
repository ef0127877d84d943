"""Text evidence: the same chunks and evidences for karat and for plain difflib on a sample."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import SequenceMatcher
from random import Random
from typing import Any

DEPTH, EVIDENCES, CHUNKS, LENGTH = 20, 3, 20_000, 1_000
LENGTHS = (200, 500, LENGTH)  # characters: a sentence, a paragraph, a whole chunk
FOUND, CHANGED = 0.25, 0.1  # shares of evidence that a chunk has verbatim, and with changed words
SAMPLE = 300  # pairs for difflib
THRESHOLD = 0.7


@dataclass(frozen=True)
class Size:
    """So many queries."""

    queries: int

    @property
    def pairs(self) -> int:
        return self.queries * DEPTH * EVIDENCES

    @property
    def name(self) -> str:
        return f"{self.queries:,} × {DEPTH} chunks × {EVIDENCES} evidences"


SMALL, LARGE = Size(1_000), Size(16_667)

Columns = tuple[Any, list[str]]


def columns(size: Size) -> tuple[Columns, Columns]:
    """Make the evidence and the retrieved chunks of every query, always the same."""
    import numpy as np

    random = np.random.default_rng(20_240_301)
    words = _vocabulary(random)
    corpus = [_prose(random, words) for _ in range(CHUNKS)]
    retrieved = random.integers(CHUNKS, size=(size.queries, DEPTH))
    evidence = []
    for ranked in retrieved:
        for length in LENGTHS:
            lot = random.random()
            known = lot < FOUND + CHANGED
            text = corpus[random.choice(ranked) if known else random.integers(CHUNKS)]
            start = random.integers(LENGTH - length + 1)
            cut = text[start : start + length]
            evidence.append(_changed(random, cut, words) if known and lot >= FOUND else cut)
    numbers = np.arange(size.queries)
    chunks = [corpus[chunk] for chunk in retrieved.ravel()]
    return (np.repeat(numbers, EVIDENCES), evidence), (np.repeat(numbers, DEPTH), chunks)


def sample(size: Size) -> list[tuple[int, int]]:
    """Return some pairs of rows of evidence and chunks, drawn from all of them."""
    found = []
    for pair in Random(SAMPLE).sample(range(size.pairs), SAMPLE):
        query, rest = divmod(pair, DEPTH * EVIDENCES)
        found.append((query * EVIDENCES + rest % EVIDENCES, query * DEPTH + rest // EVIDENCES))
    return found


def difflib_sample(evidence: list[str], chunks: list[str], size: Size) -> dict[str, float]:
    """Decide the sample as one would write it down."""
    covered = 0
    for row, chunk in sample(size):
        one, other = (" ".join(text.split()).lower() for text in (evidence[row], chunks[chunk]))
        ratio = SequenceMatcher(None, one, other, autojunk=False).ratio
        covered += one in other or ratio() >= THRESHOLD
    return {"covered in the sample": covered}


def _vocabulary(random: Any) -> list[str]:
    """Make words of letters that are as frequent as in English."""
    letters = list("etaoinshrdlcumwfgypbvk")
    share = [1 / (place + 3) for place in range(len(letters))]
    share = [one / sum(share) for one in share]
    lengths = random.integers(2, 11, 5_000)
    return ["".join(random.choice(letters, length, p=share)) for length in lengths]


def _prose(random: Any, words: list[str]) -> str:
    """Write words as often as Zipf's law says, in sentences."""
    places = (len(words) ** random.random(LENGTH // 3)).astype(int) - 1
    text = " ".join(
        words[place].capitalize() if at % 12 == 0 else words[place] + "." * (at % 12 == 11)
        for at, place in enumerate(places)
    )
    return text[:LENGTH]


def _changed(random: Any, text: str, words: list[str]) -> str:
    """Replace every tenth word or so by another."""
    return " ".join(
        words[random.integers(len(words))] if random.random() < 0.1 else word
        for word in text.split()
    )
