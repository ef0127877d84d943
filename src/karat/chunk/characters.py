"""Chunks of so many characters."""

from __future__ import annotations

from typing import Any

from karat import checks
from karat.chunk.cutting import Place, cut
from karat.data import Chunks
from karat.errors import InputError


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
