"""A document cut into pieces: which gold wants, which ranks brought them, and what they say."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

CONTEXT = 200
"""How many characters are shown before and after what is marked."""
MOST_TEXT = 20_000
"""How many characters are shown at most, of all documents of a query."""

Stretch = tuple[int, int]
Ranked = tuple[int, int, int]
"""A rank, and the start and the end of what it brought."""
_GOLD, _NEAR = -1, -2  # stand where the number of a run does


@dataclass(frozen=True)
class DocumentPart:
    """Characters in a row of which the same is true."""

    start: int
    end: int
    gold: bool
    ranks: tuple[tuple[int, ...], ...]
    """The ranks of each run that hold the piece."""
    text: str | None
    """None where it is not known, or stands too far from anything to be shown."""

    @property
    def marked(self) -> bool:
        """Whether gold or a run holds it."""
        return self.gold or any(self.ranks)

    def cut(self, at: int) -> list[DocumentPart]:
        """Return what stands before so many characters with its text, and the rest without."""
        assert self.text is not None
        middle = self.start + at
        head = [replace(self, end=middle, text=self.text[:at])] if at else []
        return [*head, replace(self, start=middle, text=None)]


@dataclass(frozen=True)
class KnownText:
    """What is known of the text of a document: parts in order, none touching another."""

    parts: tuple[tuple[int, str], ...] = ()

    def joined(self, texts: Iterable[tuple[int, str]]) -> KnownText:
        """Return what is known with some texts, each with its start; what came first is right."""
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
        """Where parts begin and end."""
        return [at for start, text in self.parts for at in (start, start + len(text))]

    def text(self, start: int, end: int) -> str | None:
        """Return what stands in a place; None if it is not known in full."""
        at = bisect_right(self.parts, start, key=lambda part: part[0]) - 1
        if at < 0:
            return None
        begin, text = self.parts[at]
        return text[start - begin : end - begin] if end <= begin + len(text) else None


def _uncovered(parts: list[tuple[int, str]], start: int, text: str) -> list[tuple[int, str]]:
    """Return what of a text stands in none of some ordered parts."""
    fresh, at, end = [], start, start + len(text)
    first = max(0, bisect_left(parts, start, key=lambda part: part[0]) - 1)
    for begin, held in parts[first:]:
        if begin >= end:
            break
        if begin > at:
            fresh.append((at, text[at - start : begin - start]))
        at = max(at, begin + len(held))
    return [*fresh, (at, text[at - start :])] if at < end else fresh


def mark_document(
    gold: Sequence[Stretch],
    runs: Sequence[Sequence[Ranked]],
    known: KnownText,
    length: int | None = None,
    context: int = CONTEXT,
) -> list[DocumentPart]:
    """Cut a document at all ends, from its start to its end or to the last that is known of it.

    Plain text is shown where it stands no further than the context from what is marked.

    >>> text = Known(((0, "Refunds take 14 days."),))
    >>> for piece in pieces([(13, 20)], [[(1, 0, 16)]], text):
    ...     print(piece.gold, piece.ranks, repr(piece.text))
    False ((1,),) 'Refunds take '
    True ((1,),) '14 '
    True ((),) 'days'
    False ((),) '.'
    """
    marks = [(_GOLD, 0, start, end) for start, end in gold]
    marks += [(run, *one) for run, ranked in enumerate(runs) for one in ranked]
    ends = [at for _, _, start, end in marks for at in (start, end)]
    last = max([0, *ends, *known.bounds]) if length is None else length
    marks += [
        (_NEAR, 0, max(0, start - context), min(last, end + context))
        for _, _, start, end in marks
        if start < end
    ]
    changes: dict[int, Counter[tuple[int, int]]] = {
        at: Counter() for at in (0, last, *known.bounds)
    }
    for run, rank, start, end in marks:
        changes.setdefault(start, Counter())[run, rank] += 1
        changes.setdefault(end, Counter())[run, rank] -= 1
    found, held = [], Counter[tuple[int, int]]()
    for start, end in pairwise(sorted(changes)):
        held.update(changes[start])
        here = sorted(mark for mark, times in held.items() if times > 0)
        ranks = [tuple(rank for run, rank in here if run == number) for number in range(len(runs))]
        text = known.text(start, end) if (_NEAR, 0) in here else None
        found.append(DocumentPart(start, end, (_GOLD, 0) in here, tuple(ranks), text))
    return list(_joined(found))


def _joined(found: list[DocumentPart]) -> Iterator[DocumentPart]:
    """Join neighbours of which the same is true."""
    before: DocumentPart | None = None
    for piece in found:
        if before is not None and _alike(before, piece):
            text = None if before.text is None else before.text + (piece.text or "")
            before = replace(before, end=piece.end, text=text)
            continue
        if before is not None:
            yield before
        before = piece
    if before is not None:
        yield before


def _alike(one: DocumentPart, other: DocumentPart) -> bool:
    same = one.gold == other.gold and one.ranks == other.ranks
    return same and (one.text is None) == (other.text is None)


def limit_text(
    documents: Sequence[list[DocumentPart]], most: int = MOST_TEXT
) -> list[list[DocumentPart]]:
    """Leave out text where there is too much: first of plain text, then of what runs brought."""
    every = [(at, piece) for at, pieces in enumerate(documents) for piece in pieces]
    first = sorted(range(len(every)), key=lambda n: (not every[n][1].gold, not every[n][1].marked))
    left, kept = most, {}
    for number in first:
        piece = every[number][1]
        size = 0 if piece.text is None else len(piece.text)
        kept[number] = [piece] if size <= left else piece.cut(left)
        left -= min(size, left)
    shown: list[list[DocumentPart]] = [[] for _ in documents]
    for number, (at, _) in enumerate(every):
        shown[at] += kept[number]
    return shown
