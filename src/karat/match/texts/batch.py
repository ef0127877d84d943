"""Matching all queries at once: each text normalised once, each pair compared once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from karat.arrays import Ints
from karat.match.texts.cascade import Codes, Texts, decide
from karat.match.texts.matching import Matching

_BLOCK = 1 << 16  # pairs that are looked at together


@dataclass(frozen=True, eq=False)
class Listed:
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
    evidence: Listed, chunks: Listed, matching: Matching | None = None, *, workers: int = -1
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
        how = decide(texts[one], texts[other], matching, workers=workers)[which]
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
