"""Chunks of Markdown, a section each."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from karat import checks
from karat.chunk.by_size import Place, cut, merged, pieces, trimmed
from karat.data import Chunks
from karat.errors import InputError

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


# As CommonMark 0.31 has them: sections 4.2, 4.3 and 4.5, and lines as in section 2.1.
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|\Z)")
_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]|$)")
_UNDERLINE = re.compile(r" {0,3}(=+|-+)[ \t]*$")
_FENCE = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})")
_INDENTED = re.compile(r" {4}|\t")
_OTHER = re.compile(
    r" {0,3}(?:[>|]|[-+*](?:[ \t]|$)|\d{1,9}[.)](?:[ \t]|$)|(?:\*[ \t]*){3,}$|(?:_[ \t]*){3,}$)"
)
"""Quotes, tables, lists and rules: no paragraph that an underline makes a heading."""
_FRONT_MATTER = re.compile(r"---[ \t]*\r?\n(?:.*\n)*?(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)")


def markdown(corpus: Any, *, level: int = 6, size: int | None = None) -> Chunks:
    r"""Cut Markdown before each heading down to `level`; what is longer than `size`, further.

    Without `size`, a section is one chunk. With it, longer ones are cut as `recursive` cuts.
    Headings inside fenced code and front matter are none.

    >>> markdown({"d": "Hello\n# One\n```\n# no\n```\n## Two"}).frame["text"].to_list()
    ['Hello', '# One\n```\n# no\n```', '## Two']
    """
    if level not in range(1, 7):
        raise InputError(f"there are no headings of level {level!r}", field="level", hint="1 to 6")
    if size is not None:
        checks.integer(size, "size", least=1, hint="a number of characters")

    def places(_: str, text: str) -> list[Place]:
        starts = [at for at, found in _headings(text) if found <= level]
        sections = trimmed(text, pairwise([0, *starts, len(text)]))
        if size is None:
            return sections
        return trimmed(text, (part for place in sections for part in pieces(text, place, size)))

    return cut(corpus, places)


def _headings(text: str) -> Iterator[tuple[int, int]]:
    """Yield where each heading starts, and its level."""
    front = _FRONT_MATTER.match(text)
    fence = ""
    block: int | None = None  # where the paragraph started, -1 in any other block, None between
    for found in _LINE.finditer(text, front.end() if front else 0):
        line = found[0].rstrip()
        if fence:
            if _closes(line, fence):
                fence = ""
        elif opening := _FENCE.match(line):
            fence, block = opening[1], None
        elif heading := _HEADING.match(line):
            yield found.start(), len(heading[1])
            block = None
        elif underline := _UNDERLINE.match(line):
            if block is not None and block >= 0:
                yield block, 1 if underline[1][0] == "=" else 2
            block = None
        elif not line:
            block = None
        elif _OTHER.match(line) or (block is None and _INDENTED.match(line)):
            block = -1
        elif block is None:
            block = found.start()


def _closes(line: str, fence: str) -> bool:
    """Tell whether a line ends fenced code: the same marks, no fewer, and nothing else."""
    marks = line.lstrip(" ")
    return len(line) - len(marks) < 4 and marks.startswith(fence) and not marks.strip(fence[0])
