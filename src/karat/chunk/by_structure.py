"""Chunks along the structure of a text: `sentences` and `markdown`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from karat.chunk.by_size import (
    TextSpan,
    check_size,
    merge_spans,
    split_corpus,
    split_span,
    strip_spans,
)
from karat.data import Chunks
from karat.errors import InputError

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

# The end of a sentence: a stop with closing quotes and white space after it; a full-width stop,
# which needs no white space; or a blank line. The lookbehind matches a row of stops only at its
# first one; otherwise the time would be quadratic in the length of the row.
_SENTENCE_END = re.compile(
    r"""(?<![.!?…؟।])(?P<stop>[.!?…؟।]+)["'”’»)\]]*(?P<space>\s+)"""
    r"""|[。！？｡]+["'”’」』）]*\s*"""
    r"""|(?:\r?\n[ \t]*){2,}"""
)
_LAST_WORD = re.compile(r"[^\W\d_]+(?:\.[^\W\d_]+)*\Z")
# A stop after one of these does not end the sentence. When in doubt, a word is listed: a missed end
# only makes a chunk longer, while a wrong one splits a sentence.
_ABBREVIATION = re.compile(
    r"mrs?|ms|dr|prof|st|jr|sr|vs|etc|inc|ltd|co|corp|vol|figs?|eq|pp|cf|al|approx|e\.g|i\.e|u\.s|u\.k"
    r"|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec",
    re.IGNORECASE,
)
_LONGEST_ABBREVIATION = 12

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|\Z)")  # as in section 2.1 of CommonMark 0.31
_FRONT_MATTER = re.compile(r"---[ \t]*\r?\n(?:.*\n)*?(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)")


def sentences(corpus: Any, *, size: int = 800) -> Chunks:
    """Split documents into chunks of whole sentences, as many as fit into `size`.

    A sentence that is longer than `size` is split as `recursive` does.

    Parameters
    ----------
    corpus : Corpus, mapping, table or path
        The documents: a `Corpus`, `{doc_id: text}`, a table with the columns doc_id and text, or
        a path that `Corpus.read` accepts.
    size : int, default 800
        Maximum number of characters (code points) per chunk, at least 1.

    Returns
    -------
    Chunks
        Table with item_id, doc_id, start, end and text, one row per chunk.

    Raises
    ------
    InputError
        If `size` is not an integer of at least 1.

    Notes
    -----
    Sentences end at a stop, question mark or exclamation mark that is followed by white space, at
    a full-width stop, and at a blank line. Common English abbreviations and initials ("Dr.",
    "J. Smith") do not end a sentence.

    Examples
    --------
    >>> sentences({"d": "Ask Dr. Low. He knows! Who else?"}, size=24).frame["text"].to_list()
    ['Ask Dr. Low. He knows!', 'Who else?']
    """
    check_size(size)

    def split(_: str, text: str) -> list[TextSpan]:
        sentence_spans = strip_spans(text, _sentence_spans(text))
        parts = [part for span in sentence_spans for part in split_span(text, span, size)]
        return strip_spans(text, merge_spans(parts, size))

    return split_corpus(corpus, split)


def markdown(corpus: Any, *, level: int = 6, size: int | None = None) -> Chunks:
    r"""Split Markdown documents before each heading.

    Headings are found as CommonMark defines them: `# Title` and underlined titles, but not lines
    inside code blocks, HTML blocks, block quotes, lists, tables or front matter.

    Parameters
    ----------
    corpus : Corpus, mapping, table or path
        The documents: a `Corpus`, `{doc_id: text}`, a table with the columns doc_id and text, or
        a path that `Corpus.read` accepts.
    level : int, default 6
        The deepest level of headings to split at, from 1 (`#`) to 6 (`######`). Deeper headings
        stay in the section that contains them.
    size : int, optional
        Maximum number of characters (code points) per chunk, at least 1. Longer sections are
        split as `recursive` does. By default every section is one chunk.

    Returns
    -------
    Chunks
        Table with item_id, doc_id, start, end and text, one row per chunk.

    Raises
    ------
    InputError
        If `level` is not an integer from 1 to 6, or `size` is not an integer of at least 1.

    Examples
    --------
    >>> markdown({"d": "Hello\n# One\n```\n# no\n```\n## Two"}).frame["text"].to_list()
    ['Hello', '# One\n```\n# no\n```', '## Two']
    """
    if level not in range(1, 7):
        raise InputError(
            f"must be an integer from 1 to 6, got {level!r}",
            field="level",
            hint="1 splits at # headings only, 6 at all headings",
        )
    if size is not None:
        check_size(size)
    parser = _block_parser()

    def split(_: str, text: str) -> list[TextSpan]:
        starts = [start for start, depth in _headings(text, parser) if depth <= level]
        sections = strip_spans(text, pairwise([0, *starts, len(text)]))
        if size is None:
            return sections
        parts = [part for section in sections for part in split_span(text, section, size)]
        return strip_spans(text, parts)

    return split_corpus(corpus, split)


def _sentence_spans(text: str) -> Iterator[TextSpan]:
    start = 0
    for end in _SENTENCE_END.finditer(text):
        if end["stop"] is None or not _continues(text, end):
            yield start, end.end()
            start = end.end()
    yield start, len(text)


def _continues(text: str, end: re.Match[str]) -> bool:
    """Return whether the sentence continues after a possible end."""
    if end["space"].count("\n") > 1:
        return False
    if text[end.end() : end.end() + 1].islower():
        return True
    if end["stop"] != ".":
        return False
    word = _LAST_WORD.search(text[max(0, end.start() - _LONGEST_ABBREVIATION) : end.start()])
    if word is None:
        return False
    is_initial = len(word[0]) == 1 and word[0].isupper() and word[0] != "I"  # J. Smith
    return is_initial or _ABBREVIATION.fullmatch(word[0]) is not None


def _block_parser() -> MarkdownIt:
    """Return a parser for blocks only: the text inside them does not affect headings."""
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark").enable("table").disable("inline")


def _headings(text: str, parser: MarkdownIt) -> Iterator[tuple[int, int]]:
    """Yield the start and the level of each heading that is not inside a list or a quote."""
    front_matter = _FRONT_MATTER.match(text)
    begin = front_matter.end() if front_matter else 0
    line_starts = [line.start() for line in _LINE.finditer(text, begin)]
    for token in parser.parse(text[begin:]):
        if token.type == "heading_open" and token.level == 0 and token.map is not None:
            yield line_starts[token.map[0]], int(token.tag.removeprefix("h"))
