"""Evidence texts: the same texts and chunks for karat and, for a sample of pairs, for difflib."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import SequenceMatcher
from random import Random
from typing import Any

DEPTH, EVIDENCE_TEXTS, CHUNKS, LENGTH = 20, 3, 20_000, 1_000
LENGTHS = (200, 500, LENGTH)  # characters: a sentence, a paragraph, a whole chunk
VERBATIM, CHANGED = 0.25, 0.1  # shares of evidence texts that a retrieved chunk contains
SAMPLE = 300  # pairs that difflib compares
THRESHOLD = 0.7


@dataclass(frozen=True)
class Size:
    """The number of queries."""

    queries: int

    @property
    def pairs(self) -> int:
        return self.queries * DEPTH * EVIDENCE_TEXTS

    @property
    def name(self) -> str:
        return f"{self.queries:,} × {DEPTH} chunks × {EVIDENCE_TEXTS} evidence texts"


SMALL, LARGE = Size(1_000), Size(16_667)

Columns = tuple[Any, list[str]]


def columns(size: Size) -> tuple[Columns, Columns]:
    """Return the evidence texts and the retrieved chunks of all queries, generated with a seed."""
    import numpy as np

    random = np.random.default_rng(20_240_301)
    words = _vocabulary(random)
    corpus = [_prose(random, words) for _ in range(CHUNKS)]
    retrieved = random.integers(CHUNKS, size=(size.queries, DEPTH))
    evidence = []
    for ranked in retrieved:
        for length in LENGTHS:
            draw = random.random()
            is_retrieved = draw < VERBATIM + CHANGED
            text = corpus[random.choice(ranked) if is_retrieved else random.integers(CHUNKS)]
            start = random.integers(LENGTH - length + 1)
            part = text[start : start + length]
            is_changed = is_retrieved and draw >= VERBATIM
            evidence.append(_changed(random, part, words) if is_changed else part)
    numbers = np.arange(size.queries)
    chunks = [corpus[chunk] for chunk in retrieved.ravel()]
    return (np.repeat(numbers, EVIDENCE_TEXTS), evidence), (np.repeat(numbers, DEPTH), chunks)


def sample(size: Size) -> list[tuple[int, int]]:
    """Return random pairs of the rows of an evidence text and of a chunk."""
    rows = []
    for pair in Random(SAMPLE).sample(range(size.pairs), SAMPLE):
        query, rest = divmod(pair, DEPTH * EVIDENCE_TEXTS)
        chunk, evidence = divmod(rest, EVIDENCE_TEXTS)
        rows.append((query * EVIDENCE_TEXTS + evidence, query * DEPTH + chunk))
    return rows


def difflib_sample(evidence: list[str], chunks: list[str], size: Size) -> dict[str, float]:
    """Count the pairs of the sample that match, in the simplest way."""
    covered = 0
    for row, chunk in sample(size):
        text, chunk_text = (" ".join(t.split()).lower() for t in (evidence[row], chunks[chunk]))
        ratio = SequenceMatcher(None, text, chunk_text, autojunk=False).ratio
        covered += text in chunk_text or ratio() >= THRESHOLD
    return {"covered in the sample": covered}


def _vocabulary(random: Any) -> list[str]:
    """Return random words; some letters are more frequent than others, as in English."""
    letters = list("etaoinshrdlcumwfgypbvk")
    weights = [1 / (position + 3) for position in range(len(letters))]
    shares = [weight / sum(weights) for weight in weights]
    lengths = random.integers(2, 11, 5_000)
    return ["".join(random.choice(letters, length, p=shares)) for length in lengths]


def _prose(random: Any, words: list[str]) -> str:
    """Return sentences of words whose frequencies follow Zipf's law."""
    chosen = [words[i - 1] for i in (len(words) ** random.random(LENGTH // 3)).astype(int)]
    sentences = (chosen[start : start + 12] for start in range(0, len(chosen), 12))
    return " ".join(" ".join(s).capitalize() + "." for s in sentences)[:LENGTH]


def _changed(random: Any, text: str, words: list[str]) -> str:
    """Replace about a tenth of the words by other words."""
    return " ".join(
        words[random.integers(len(words))] if random.random() < 0.1 else word
        for word in text.split()
    )
