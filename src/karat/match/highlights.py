"""Split a document into parts: which of them are gold, which ranks retrieved them, and their text.

The HTML report shows these parts as highlighted documents.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from karat.match.span_intervals import Span

CONTEXT = 200
"""How many characters are shown before and after gold."""
MOST_TEXT = 20_000
"""The maximum number of characters shown, in all documents of a query together."""

RankedSpan = tuple[int, int, int]
"""Rank, start and end of a retrieved span."""
_GOLD, _CONTEXT = -1, -2
"""Used in place of the number of a run for gold spans and for their context."""


@dataclass(frozen=True)
class DocumentPart:
    """Consecutive characters of a document with the same marks."""

    start: int
    end: int
    gold: bool
    ranks: tuple[tuple[int, ...], ...]
    """For each run, the ranks that retrieved this part."""
    text: str | None
    """None if the text is not known, or if it was not retrieved and is too far from gold."""

    @property
    def marked(self) -> bool:
        """Whether the part is gold or was retrieved by a run."""
        return self.gold or any(self.ranks)

    def cut(self, length: int) -> list[DocumentPart]:
        """Split the part after `length` characters; the second part has no text."""
        assert self.text is not None
        middle = self.start + length
        head = [replace(self, end=middle, text=self.text[:length])] if length else []
        return [*head, replace(self, start=middle, text=None)]


@dataclass(frozen=True)
class KnownText:
    """The known text of a document: sorted (start, text) pairs that do not touch each other."""

    parts: tuple[tuple[int, str], ...] = ()

    def joined(self, texts: Iterable[tuple[int, str]]) -> KnownText:
        """Add texts with their starts; where texts overlap, the earlier one takes precedence."""
        parts = list(self.parts)
        for start, text in texts:
            parts.extend(_uncovered(parts, start, text))
            parts.sort()
        merged: list[tuple[int, str]] = []
        for start, text in parts:
            if merged and merged[-1][0] + len(merged[-1][1]) == start:
                merged[-1] = (merged[-1][0], merged[-1][1] + text)
            else:
                merged.append((start, text))
        return KnownText(tuple(merged))

    @property
    def bounds(self) -> list[int]:
        """The starts and ends of the known parts."""
        return [bound for start, text in self.parts for bound in (start, start + len(text))]

    def text(self, start: int, end: int) -> str | None:
        """Return the text of a span, or None if it is not known completely."""
        position = bisect_right(self.parts, start, key=lambda part: part[0]) - 1
        if position < 0:
            return None
        part_start, text = self.parts[position]
        if end > part_start + len(text):
            return None
        return text[start - part_start : end - part_start]


def _uncovered(parts: list[tuple[int, str]], start: int, text: str) -> list[tuple[int, str]]:
    """Return the parts of a text that none of the sorted `parts` covers."""
    uncovered, position, end = [], start, start + len(text)
    first = max(0, bisect_left(parts, start, key=lambda part: part[0]) - 1)
    for part_start, part_text in parts[first:]:
        if part_start >= end:
            break
        if part_start > position:
            uncovered.append((position, text[position - start : part_start - start]))
        position = max(position, part_start + len(part_text))
    if position < end:
        uncovered.append((position, text[position - start :]))
    return uncovered


def mark_document(
    gold: Sequence[Span],
    runs: Sequence[Sequence[RankedSpan]],
    known: KnownText,
    length: int | None = None,
    context: int = CONTEXT,
) -> list[DocumentPart]:
    """Split a document at the starts and ends of all spans.

    The parts reach to `length`, or to the last known offset if it is None. Unmarked text is
    included only within `context` characters of gold.

    >>> known = KnownText(((0, "Refunds take 14 days."),))
    >>> for part in mark_document([(13, 20)], [[(1, 0, 16)]], known):
    ...     print(part.gold, part.ranks, repr(part.text))
    False ((1,),) 'Refunds take '
    True ((1,),) '14 '
    True ((),) 'days'
    False ((),) '.'
    """
    marks = [(_GOLD, 0, start, end) for start, end in gold]
    marks += [(run, *ranked_span) for run, spans in enumerate(runs) for ranked_span in spans]
    if length is None:
        length = max([0, *known.bounds, *(max(start, end) for _, _, start, end in marks)])
    marks += [
        (_CONTEXT, 0, max(0, start - context), min(length, end + context))
        for start, end in gold
        if start < end
    ]
    # At each offset, how many marks of each kind start (positive) or end (negative).
    changes: dict[int, Counter[tuple[int, int]]] = {
        offset: Counter() for offset in (0, length, *known.bounds)
    }
    for run, rank, start, end in marks:
        changes.setdefault(start, Counter())[run, rank] += 1
        changes.setdefault(end, Counter())[run, rank] -= 1
    parts, active = [], Counter[tuple[int, int]]()
    for start, end in pairwise(sorted(changes)):
        active.update(changes[start])
        here = sorted(mark for mark, count in active.items() if count > 0)
        ranks = [tuple(rank for run, rank in here if run == number) for number in range(len(runs))]
        text = known.text(start, end) if here else None
        parts.append(DocumentPart(start, end, (_GOLD, 0) in here, tuple(ranks), text))
    return list(_join_equal_parts(parts))


def _join_equal_parts(parts: list[DocumentPart]) -> Iterator[DocumentPart]:
    """Join neighbours that have the same marks."""
    joined: DocumentPart | None = None
    for part in parts:
        if joined is not None and _has_same_marks(joined, part):
            text = None if joined.text is None else joined.text + (part.text or "")
            joined = replace(joined, end=part.end, text=text)
            continue
        if joined is not None:
            yield joined
        joined = part
    if joined is not None:
        yield joined


def _has_same_marks(one: DocumentPart, other: DocumentPart) -> bool:
    same = one.gold == other.gold and one.ranks == other.ranks
    return same and (one.text is None) == (other.text is None)


def limit_text(
    documents: Sequence[list[DocumentPart]], most: int = MOST_TEXT
) -> list[list[DocumentPart]]:
    """Remove text beyond a limit: first unmarked text, then retrieved text, then gold."""
    all_parts = [(document, part) for document, parts in enumerate(documents) for part in parts]
    by_priority = sorted(
        range(len(all_parts)),
        key=lambda number: (not all_parts[number][1].gold, not all_parts[number][1].marked),
    )
    remaining, shortened = most, {}
    for number in by_priority:
        part = all_parts[number][1]
        size = 0 if part.text is None else len(part.text)
        shortened[number] = [part] if size <= remaining else part.cut(remaining)
        remaining -= min(size, remaining)
    limited: list[list[DocumentPart]] = [[] for _ in documents]
    for number, (document, _) in enumerate(all_parts):
        limited[document] += shortened[number]
    return limited
