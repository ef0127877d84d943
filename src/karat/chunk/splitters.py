"""Chunks from the splitters of other libraries, with exact offsets.

LangChain and LlamaIndex splitters are recognised by their methods; the libraries are never
imported.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from karat.chunk.by_size import TextSpan, split_corpus
from karat.data import Chunks
from karat.data.offsets import DenseText, dense
from karat.errors import InputError, counted, warn

AllowsOverlap = Callable[[str], bool]
"""Tells whether two neighbouring chunks may have this text in common."""


def with_splitter(corpus: Any, splitter: Any) -> Chunks:
    """Split documents with a text splitter of LangChain or LlamaIndex, or with a function.

    Other splitters return texts without offsets. Each text is searched in the document, from the
    position of the previous one on. If the splitter changed white space, the chunk keeps the
    original text of the document, and a `KaratWarning` reports it.

    Parameters
    ----------
    corpus : Corpus, mapping, table or path
        The documents: a `Corpus`, `{doc_id: text}`, a table with the columns doc_id and text, or
        a path that `Corpus.read` accepts.
    splitter : object or callable
        A LangChain text splitter (with `split_text`), a LlamaIndex node parser (with
        `get_nodes_from_documents`), or a function that takes a text and returns texts, or objects
        with `text` or `page_content`, in the order of the document.

    Returns
    -------
    Chunks
        Table with item_id, doc_id, start, end and text, one row per chunk.

    Raises
    ------
    InputError
        If `splitter` is not a splitter, or if a text is not found because the splitter changed
        more than white space.

    Examples
    --------
    >>> with_splitter({"d": "one, two"}, lambda text: text.split(", ")).frame["item_id"].to_list()
    ['d#0-3', 'd#5-8']
    """
    allows_overlap = _overlap_check(splitter)
    changed: list[str] = []

    def split(doc_id: str, text: str) -> Iterator[TextSpan]:
        if not text.strip():
            return
        document = _Document(text)
        for number, piece in enumerate(_split_text(splitter, text), 1):
            if not piece.strip():
                continue
            span = document.find(piece, allows_overlap)
            if span is None:
                raise _not_found(doc_id, number, piece)
            if text[slice(*span)] != piece:
                changed.append(f"piece {number} of {doc_id!r}")
            yield span

    chunks = split_corpus(corpus, split)
    if changed:
        warn(
            f"the splitter changed white space in {counted(len(changed), 'chunk')} of "
            f"{len(chunks):,}, for example in {changed[0]}; the chunks keep the original text "
            "of the document",
            stacklevel=2,
        )
    return chunks


class _Document(DenseText):
    """A text in which pieces are found one after the other, ignoring white space."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.last = (0, 0)
        """Start and end in `dense` of the last piece."""

    def find(self, piece: str, allows_overlap: AllowsOverlap) -> TextSpan | None:
        """Return the span of a piece: its first occurrence after, or overlapping, the last one."""
        dense_piece = dense(piece)
        start = self._search(dense_piece, allows_overlap)
        if start < 0:
            return None
        self.last = (start, start + len(dense_piece))
        span = self.original_span(*self.last)
        # Include the white space around the piece where the document has the same.
        exact_start = span[0] - (len(piece) - len(piece.lstrip()))
        if exact_start >= 0 and self.text.startswith(piece, exact_start):
            return exact_start, exact_start + len(piece)
        return span

    def _search(self, dense_piece: str, allows_overlap: AllowsOverlap) -> int:
        """Find the first occurrence that does not end before the last one, with an allowed overlap.

        So a short piece is not found inside the previous chunk, where the same words may occur. If
        all occurrences that leave no gap overlap too much, the splitter did not count its overlap
        exactly, and the last of them is used.
        """
        start, end = self.last
        position = self._find_from(dense_piece, max(start, end - len(dense_piece)))
        large_overlap = -1
        while 0 <= position < end and not allows_overlap(self._text_between(position, end)):
            large_overlap = position
            position = self._find_from(dense_piece, position + 1)
        if large_overlap >= 0 and not 0 <= position <= end:
            return large_overlap
        if position >= 0:
            return position
        return self._find_from(dense_piece, start)

    def _find_from(self, dense_piece: str, begin: int) -> int:
        """Find the first occurrence that is not exactly the last piece."""
        position = self.dense.find(dense_piece, begin)
        if (position, position + len(dense_piece)) == self.last:
            return self.dense.find(dense_piece, position + 1)
        return position

    def _text_between(self, start: int, end: int) -> str:
        return self.text[slice(*self.original_span(start, end))]


def _overlap_check(splitter: Any) -> AllowsOverlap:
    """Return a function that checks an overlap against the setting of the splitter, if known.

    LangChain splitters have a function that measures lengths, LlamaIndex splitters a tokenizer.
    """
    maximum = getattr(splitter, "_chunk_overlap", getattr(splitter, "chunk_overlap", None))
    length = getattr(splitter, "_length_function", None)
    tokenizer = getattr(splitter, "_tokenizer", None)
    if maximum is None:
        return lambda _: True
    if maximum == 0:
        return lambda _: False
    if callable(length):
        return lambda text: bool(length(text) <= maximum)
    if callable(tokenizer):
        return lambda text: len(tokenizer(text)) <= maximum
    return lambda _: True


def _split_text(splitter: Any, text: str) -> Iterator[str]:
    pieces: Iterable[Any]
    if hasattr(splitter, "split_text"):
        pieces = splitter.split_text(text)
    elif hasattr(splitter, "get_nodes_from_documents"):
        # The module is loaded: without it, nobody could have created a node parser.
        document = sys.modules["llama_index.core.schema"].Document(text=text)
        pieces = splitter.get_nodes_from_documents([document])
    elif callable(splitter):
        pieces = splitter(text)
    else:
        raise InputError(
            f"expected a splitter, got {type(splitter).__name__}",
            hint="give a LangChain text splitter, a LlamaIndex node parser, or a function that "
            "returns texts",
        )
    for piece in pieces:
        content = piece
        for name in ("page_content", "text"):
            content = getattr(content, name, content)
        if not isinstance(content, str):
            raise InputError(
                f"the splitter must return texts, got {type(piece).__name__}",
                hint="return strings, or objects with a text or page_content attribute",
            )
        yield content


def _not_found(doc_id: str, number: int, piece: str) -> InputError:
    excerpt = piece.strip()
    if len(excerpt) > 60:
        excerpt = f"{excerpt[:60]}…"
    return InputError(
        f"piece {number} returned by the splitter, {excerpt!r}, was not found in the document "
        "after the previous piece",
        field=doc_id,
        hint="configure the splitter to change nothing but white space, and to keep the order of "
        "the document",
    )
