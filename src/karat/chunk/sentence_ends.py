"""Chunks of whole sentences."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from karat import checks
from karat.chunk.cutting import Place, cut, merged, trimmed
from karat.chunk.separators import pieces
from karat.data import Chunks

# A stop with its closing quotes and the white space after it; a full-width stop, which needs none;
# or a blank line. A row of stops is looked at from its first one only: else its length squared
# would be the time it takes.
_ENDS = re.compile(
    r"""(?<![.!?…؟।])(?P<stop>[.!?…؟।]+)["'”’»)\]]*(?P<space>\s+)"""
    r"""|[。！？｡]+["'”’」』）]*\s*"""
    r"""|(?:\r?\n[ \t]*){2,}"""
)
_LAST_WORD = re.compile(r"[^\W\d_]+(?:\.[^\W\d_]+)*\Z")
# After these a stop is part of the word. An end that is missed makes a chunk longer; one that is
# invented tears a sentence apart.
_ABBREVIATION = re.compile(
    r"mrs?|ms|dr|prof|st|jr|sr|vs|etc|inc|ltd|co|corp|vol|figs?|eq|pp|cf|al|approx|e\.g|i\.e|u\.s|u\.k"
    r"|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec",
    re.IGNORECASE,
)
_LONGEST_WORD = 12


def sentences(corpus: Any, *, size: int = 800) -> Chunks:
    """Cut documents into chunks of whole sentences, as many as fit `size`.

    A sentence that is longer than `size` is cut as `recursive` cuts.

    >>> sentences({"d": "Ask Dr. Low. He knows! Who else?"}, size=24).frame["text"].to_list()
    ['Ask Dr. Low. He knows!', 'Who else?']
    """
    checks.integer(size, "size", least=1, hint="a number of characters")

    def places(_: str, text: str) -> list[Place]:
        found = trimmed(text, _sentences(text))
        short = [piece for place in found for piece in pieces(text, place, size)]
        return trimmed(text, merged(short, size))

    return cut(corpus, places)


def _sentences(text: str) -> Iterator[Place]:
    """Yield the sentences, which touch each other."""
    start = 0
    for end in _ENDS.finditer(text):
        if end["stop"] is None or not _goes_on(text, end):
            yield start, end.end()
            start = end.end()
    yield start, len(text)


def _goes_on(text: str, end: re.Match[str]) -> bool:
    """Tell whether a sentence goes on after what may be its end."""
    if end["space"].count("\n") > 1:
        return False
    if text[end.end() : end.end() + 1].islower():
        return True
    if end["stop"] != ".":
        return False
    word = _LAST_WORD.search(text[max(0, end.start() - _LONGEST_WORD) : end.start()])
    if word is None:
        return False
    # One capital letter is an initial: J. Smith.
    initial = len(word[0]) == 1 and word[0].isupper() and word[0] != "I"
    return initial or _ABBREVIATION.fullmatch(word[0]) is not None
