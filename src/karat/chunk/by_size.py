"""Chunks cut at the coarsest separator that makes them small enough."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import polars as pl

from karat import checks
from karat.data import Chunks, Corpus
from karat.errors import InputError

Place = tuple[int, int]
"""A stretch [start, end) of a text."""

_SCHEMA = {
    "item_id": pl.String,
    "doc_id": pl.String,
    "start": pl.Int64,
    "end": pl.Int64,
    "text": pl.String,
}


def cut(corpus: Any, places: Callable[[str, str], Iterable[Place]]) -> Chunks:
    """Cut every document at the places that are found for its id and text."""
    rows: list[tuple[str, str, int, int, str]] = []
    documents = Corpus.open(corpus).documents
    for doc_id, text in zip(documents["doc_id"], documents["text"], strict=True):
        rows += [
            (f"{doc_id}#{start}-{end}", doc_id, start, end, text[start:end])
            for start, end in places(doc_id, text)
        ]
    return Chunks(pl.DataFrame(rows, schema=_SCHEMA, orient="row"))


def trimmed(text: str, places: Iterable[Place]) -> list[Place]:
    """Take white space off both ends of each place; one that holds nothing else is left out."""
    kept = []
    for start, end in places:
        piece = text[start:end].lstrip()
        if piece:
            begin = end - len(piece)
            kept.append((begin, begin + len(piece.rstrip())))
    return kept


def merged(places: Iterable[Place], size: int) -> list[Place]:
    """Join neighbours for as long as they fit the size together."""
    joined: list[Place] = []
    for start, end in places:
        if joined and end - joined[-1][0] <= size:
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((start, end))
    return joined


def fixed(corpus: Any, *, size: int = 800, overlap: int = 0) -> Chunks:
    """Cut documents into chunks of `size` characters, each with `overlap` of the one before.

    >>> fixed({"d": "abcdefgh"}, size=4, overlap=1).frame["text"].to_list()
    ['abcd', 'defg', 'gh']
    """
    checks.integer(size, "size", least=1, hint="a number of characters")
    checks.integer(overlap, "overlap", least=0, hint="a number of characters")
    if overlap >= size:
        raise InputError(
            f"an overlap of {overlap} leaves nothing new in chunks of {size}",
            field="overlap",
            hint="make it smaller than size",
        )

    def places(_: str, text: str) -> list[Place]:
        # The last chunk is the one that reaches the end: a further one would hold nothing new.
        stop = max(len(text) - overlap, min(len(text), 1))
        return [(at, min(at + size, len(text))) for at in range(0, stop, size - overlap)]

    return cut(corpus, places)


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
