"""Chunks of a maximum size: `fixed` and `recursive`, and the helpers that all chunkers share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import polars as pl

from karat import checks
from karat.data import Chunks, Corpus
from karat.errors import InputError
from karat.steps import tracked

TextSpan = tuple[int, int]
"""Start and end of a part of a text; the end is exclusive."""

SEPARATORS = ("\n\n", "\r\n\r\n", "\n", " ", "")

_SCHEMA = {
    "item_id": pl.String,
    "doc_id": pl.String,
    "start": pl.Int64,
    "end": pl.Int64,
    "text": pl.String,
}


def fixed(corpus: Any, *, size: int = 800, overlap: int = 0) -> Chunks:
    """Split documents into chunks of a fixed number of characters.

    The last chunk of a document may be shorter. White space is kept.

    Parameters
    ----------
    corpus : Corpus, mapping, table or path
        The documents: a `Corpus`, `{doc_id: text}`, a table with the columns doc_id and text, or
        a path that `Corpus.read` accepts.
    size : int, default 800
        Number of characters (code points) per chunk, at least 1.
    overlap : int, default 0
        Number of characters that a chunk shares with the previous one. Must be less than `size`.

    Returns
    -------
    Chunks
        Table with item_id, doc_id, start, end and text, one row per chunk.

    Raises
    ------
    InputError
        If `size` or `overlap` is not an integer or out of range.

    See Also
    --------
    recursive : Split at paragraphs, lines and words instead of a fixed position.

    Examples
    --------
    >>> fixed({"d": "abcdefgh"}, size=4, overlap=1).frame["text"].to_list()
    ['abcd', 'defg', 'gh']
    """
    check_size(size)
    checks.integer(overlap, "overlap", least=0, hint="give a number of characters")
    if overlap >= size:
        raise InputError(
            f"must be less than the size, got an overlap of {overlap} and a size of {size}",
            field="overlap",
            hint="use a smaller overlap or a larger size",
        )

    def split(_: str, text: str) -> list[TextSpan]:
        # Stop at the chunk that reaches the end: another one would only repeat the overlap.
        last_start = max(len(text) - overlap, min(len(text), 1))
        starts = range(0, last_start, size - overlap)
        return [(start, min(start + size, len(text))) for start in starts]

    return split_corpus(corpus, split)


def recursive(corpus: Any, *, size: int = 800, separators: Sequence[str] = SEPARATORS) -> Chunks:
    r"""Split documents at the coarsest separator that makes the chunks small enough.

    A document is split at the first separator that occurs in it. Parts that are longer than `size`
    are split at the next separator, and so on; neighbouring short parts are merged up to `size`.
    White space at both ends of a chunk is removed.

    Parameters
    ----------
    corpus : Corpus, mapping, table or path
        The documents: a `Corpus`, `{doc_id: text}`, a table with the columns doc_id and text, or
        a path that `Corpus.read` accepts.
    size : int, default 800
        Maximum number of characters (code points) per chunk, at least 1.
    separators : sequence of str, default ("\n\n", "\r\n\r\n", "\n", " ", "")
        Separators, the coarsest first. A separator stays at the end of its chunk, except that a
        separator such as "\n## ", which has text after the white space, starts the next chunk.
        The empty separator splits at any character; without it, a part in which no separator
        occurs stays longer than `size`.

    Returns
    -------
    Chunks
        Table with item_id, doc_id, start, end and text, one row per chunk.

    Raises
    ------
    InputError
        If `size` is not an integer of at least 1, or `separators` is not a list of strings.

    See Also
    --------
    sentences : Split between sentences.
    markdown : Split at headings.

    Examples
    --------
    >>> recursive({"d": "one two\n\nthree four five"}, size=10).frame["text"].to_list()
    ['one two', 'three', 'four five']
    """
    check_size(size)
    if isinstance(separators, str) or not all(isinstance(one, str) for one in separators):
        raise InputError(
            f"must be a list of strings, got {separators!r}",
            field="separators",
            hint='for example ["\\n\\n", " "]',
        )
    all_separators = tuple(separators)

    def split(_: str, text: str) -> list[TextSpan]:
        return strip_spans(text, split_span(text, (0, len(text)), size, all_separators))

    return split_corpus(corpus, split)


def split_corpus(corpus: Any, split: Callable[[str, str], Iterable[TextSpan]]) -> Chunks:
    """Return the chunks of all documents; `split` returns the spans for a doc_id and a text."""
    rows: list[tuple[str, str, int, int, str]] = []
    documents = Corpus.open(corpus).documents
    texts = zip(documents["doc_id"], documents["text"], strict=True)
    for doc_id, text in tracked(texts, "splitting documents", documents.height):
        rows += [
            (f"{doc_id}#{start}-{end}", doc_id, start, end, text[start:end])
            for start, end in split(doc_id, text)
        ]
    return Chunks(pl.DataFrame(rows, schema=_SCHEMA, orient="row"))


def check_size(size: Any) -> None:
    """Raise an InputError unless the size of a chunk is a positive integer."""
    checks.integer(size, "size", least=1, hint="give a number of characters")


def strip_spans(text: str, spans: Iterable[TextSpan]) -> list[TextSpan]:
    """Remove white space from both ends of each span, and drop the spans without other text."""
    stripped = []
    for start, end in spans:
        part = text[start:end].lstrip()
        if part:
            first = end - len(part)
            stripped.append((first, first + len(part.rstrip())))
    return stripped


def merge_spans(spans: Iterable[TextSpan], size: int) -> list[TextSpan]:
    """Merge neighbouring spans as long as the result is not longer than `size`."""
    merged: list[TextSpan] = []
    for start, end in spans:
        if merged and end - merged[-1][0] <= size:
            merged[-1] = (merged[-1][0], end)
        else:
            merged.append((start, end))
    return merged


def split_span(
    text: str, span: TextSpan, size: int, separators: Sequence[str] = SEPARATORS
) -> list[TextSpan]:
    """Split a span into adjacent spans that are, where possible, not longer than `size`."""
    start, end = span
    if end - start <= size:
        return [span]
    coarsest = next(
        (i for i, separator in enumerate(separators) if text.find(separator, start, end) >= 0),
        None,
    )
    if coarsest is None:
        return [span]
    if not separators[coarsest]:
        return [(begin, min(begin + size, end)) for begin in range(start, end, size)]
    spans: list[TextSpan] = []
    short_spans: list[TextSpan] = []  # neighbours that are still to be merged
    for part in _split_at(text, span, separators[coarsest]):
        if part[1] - part[0] <= size:
            short_spans.append(part)
        else:
            spans += merge_spans(short_spans, size)
            spans += split_span(text, part, size, separators[coarsest + 1 :])
            short_spans = []
    return spans + merge_spans(short_spans, size)


def _split_at(text: str, span: TextSpan, separator: str) -> list[TextSpan]:
    start, end = span
    # ". " ends a sentence and stays with it, but the "## " of "\n## " belongs to the next part.
    leading_space = len(separator) - len(separator.lstrip())
    before_split = leading_space or len(separator)
    parts: list[TextSpan] = []
    position = text.find(separator, start, end)
    while position >= 0:
        parts.append((start, position + before_split))
        start = position + before_split
        position = text.find(separator, position + len(separator), end)
    if start < end:
        parts.append((start, end))
    return parts
