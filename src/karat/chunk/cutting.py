"""What all chunkers share: places in a text become the table of chunks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import polars as pl

from karat.data import Chunks, Corpus

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
