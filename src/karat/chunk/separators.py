"""Chunks cut at the coarsest separator that makes them small enough."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from karat import checks
from karat.chunk.cutting import Place, cut, merged, trimmed
from karat.data import Chunks
from karat.errors import InputError

SEPARATORS = ("\n\n", "\r\n\r\n", "\n", " ", "")


def recursive(corpus: Any, *, size: int = 800, separators: Sequence[str] = SEPARATORS) -> Chunks:
    r"""Cut documents at the first separator; what is longer than `size`, at the next one.

    Pieces are joined again up to `size`. A separator stays at the end of its piece, or, where it
    is white space and then something, such as "\n## ", begins the next one. The empty separator
    cuts anywhere; without it, a piece that has no separator stays longer than `size`.

    >>> recursive({"d": "one two\n\nthree four five"}, size=10).frame["text"].to_list()
    ['one two', 'three', 'four five']
    """
    checks.integer(size, "size", least=1, hint="a number of characters")
    if isinstance(separators, str) or not all(isinstance(one, str) for one in separators):
        raise InputError(
            "separators are no list of texts", field="separators", hint='such as ["\\n\\n", " "]'
        )
    return cut(
        corpus,
        lambda _, text: trimmed(text, pieces(text, (0, len(text)), size, tuple(separators))),
    )


def pieces(
    text: str, place: Place, size: int, separators: Sequence[str] = SEPARATORS
) -> list[Place]:
    """Cut a place into pieces that touch each other, none longer than `size` where possible."""
    start, end = place
    if end - start <= size:
        return [place]
    coarsest = next(
        (at for at, one in enumerate(separators) if text.find(one, start, end) >= 0), None
    )
    if coarsest is None:
        return [place]
    if not separators[coarsest]:
        return [(at, min(at + size, end)) for at in range(start, end, size)]
    done: list[Place] = []
    short: list[Place] = []
    for part in _parts(text, place, separators[coarsest]):
        if part[1] - part[0] <= size:
            short.append(part)
        else:
            done += merged(short, size)
            done += pieces(text, part, size, separators[coarsest + 1 :])
            short = []
    return done + merged(short, size)


def _parts(text: str, place: Place, separator: str) -> list[Place]:
    """Cut a place at every separator."""
    start, end = place
    # After ". " a sentence is over, but the "## " of "\n## " belongs to what follows.
    white = len(separator) - len(separator.lstrip())
    inside = white or len(separator)
    parts: list[Place] = []
    at = text.find(separator, start, end)
    while at >= 0:
        parts.append((start, at + inside))
        start = at + inside
        at = text.find(separator, at + len(separator), end)
    return [*parts, (start, end)] if start < end else parts
