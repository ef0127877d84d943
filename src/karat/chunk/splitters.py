"""Chunks from the splitters of other libraries, with exact offsets.

LangChain and LlamaIndex are known by the shape of their splitters and never imported.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from karat.chunk.by_size import Place, cut
from karat.data import Chunks
from karat.data.offsets import DenseText, dense
from karat.errors import InputError, KaratWarning, counted

Overlaps = Callable[[str], bool]


def with_splitter(corpus: Any, splitter: Any) -> Chunks:
    """Cut documents with a splitter of LangChain or LlamaIndex, or any function text → texts.

    Each piece is searched for from the last one on. Where the splitter changed white space, the
    chunk is the stretch of the document that the piece stands for, and a warning says so; where
    it changed more, the piece cannot be found, which is an InputError.

    >>> with_splitter({"d": "one, two"}, lambda text: text.split(", ")).frame["item_id"].to_list()
    ['d#0-3', 'd#5-8']
    """
    overlaps = _overlaps(splitter)
    changed: list[str] = []

    def places(doc_id: str, text: str) -> Iterator[Place]:
        document = _Document(text)
        texts = _pieces(splitter, text) if text.strip() else ()
        for number, piece in enumerate(texts, 1):
            if not piece.strip():
                continue
            found = document.find(piece, overlaps)
            if found is None:
                raise _not_found(doc_id, number, piece)
            if text[slice(*found)] != piece:
                changed.append(f"piece {number} of {doc_id!r}")
            yield found

    chunks = cut(corpus, places)
    if changed:
        warnings.warn(
            KaratWarning(
                f"the splitter changed white space in {counted(len(changed), 'chunk')} of "
                f"{len(chunks):,}, such as {changed[0]}; they are kept as the document has them"
            ),
            stacklevel=2,
        )
    return chunks


class _Document(DenseText):
    """A text to find pieces in, one after the other, whatever white space they have."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.last = (0, 0)
        """The place in `dense` of the last piece that was found."""

    def find(self, piece: str, overlaps: Overlaps) -> Place | None:
        """Return where a piece stands: the first place after the last one, which it may overlap."""
        wanted = dense(piece)
        at = self._search(wanted, overlaps)
        if at < 0:
            return None
        self.last = (at, at + len(wanted))
        place = self.original_span(*self.last)
        whole = place[0] - (len(piece) - len(piece.lstrip()))
        if whole >= 0 and self.text.startswith(piece, whole):
            return whole, whole + len(piece)
        return place

    def _search(self, wanted: str, overlaps: Overlaps) -> int:
        """Find the place that ends no earlier than the last one and overlaps it as it may.

        So a short piece is not taken for the same words inside the chunk before it. Where only a
        greater overlap leaves no gap, the count of the overlap was not exact, and it is taken.
        """
        start, end = self.last
        at = self._after(wanted, max(start, end - len(wanted)))
        greater = -1
        while 0 <= at < end and not overlaps(self._between(at, end)):
            greater = at
            at = self._after(wanted, at + 1)
        if greater >= 0 and not 0 <= at <= end:
            return greater
        return at if at >= 0 else self._after(wanted, start)

    def _after(self, wanted: str, begin: int) -> int:
        at = self.dense.find(wanted, begin)
        same = (at, at + len(wanted)) == self.last
        return self.dense.find(wanted, at + 1) if same else at

    def _between(self, at: int, end: int) -> str:
        return self.text[slice(*self.original_span(at, end))]


def _overlaps(splitter: Any) -> Overlaps:
    """Return what tells whether two chunks may have a text in common, as far as that is known.

    LangChain has a function of lengths, LlamaIndex a tokenizer.
    """
    most = getattr(splitter, "_chunk_overlap", getattr(splitter, "chunk_overlap", None))
    length = getattr(splitter, "_length_function", None)
    tokenizer = getattr(splitter, "_tokenizer", None)
    if most is None:
        return lambda _: True
    if most == 0:
        return lambda _: False
    if callable(length):
        return lambda text: bool(length(text) <= most)
    if callable(tokenizer):
        return lambda text: len(tokenizer(text)) <= most
    return lambda _: True


def _pieces(splitter: Any, text: str) -> Iterator[str]:
    """Split a text, whatever the library; a piece may be a text or hold one."""
    given: Iterable[Any]
    if hasattr(splitter, "split_text"):
        given = splitter.split_text(text)
    elif hasattr(splitter, "get_nodes_from_documents"):
        # Whoever has a node parser has imported this.
        document = sys.modules["llama_index.core.schema"].Document(text=text)
        given = splitter.get_nodes_from_documents([document])
    elif callable(splitter):
        given = splitter(text)
    else:
        raise InputError(
            f"a {type(splitter).__name__} is no splitter",
            hint="give a text splitter of LangChain, a node parser of LlamaIndex, or a function",
        )
    for piece in given:
        held = piece
        for name in ("page_content", "text"):
            held = getattr(held, name, held)
        if not isinstance(held, str):
            raise InputError(
                f"the splitter made a {type(piece).__name__}, which holds no text",
                hint="give a splitter that makes texts",
            )
        yield held


def _not_found(doc_id: str, number: int, piece: str) -> InputError:
    shown = piece.strip() if len(piece.strip()) <= 60 else f"{piece.strip()[:60]}…"
    return InputError(
        f"piece {number}, {shown!r}, is not in the text after the piece before it",
        field=doc_id,
        hint="the splitter changed more than white space, or its pieces are not in the order of "
        "the text; set it to keep the text as it is",
    )
