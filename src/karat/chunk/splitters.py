"""Chunks from the splitters of other libraries, with exact offsets.

LangChain and LlamaIndex are known by the shape of their splitters and never imported.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from karat.chunk.cutting import Place, cut
from karat.data import Chunks
from karat.errors import InputError, KaratWarning, counted

_WHITE_SPACE = [code for code in range(0x3001) if chr(code).isspace()]


def with_splitter(corpus: Any, splitter: Any) -> Chunks:
    """Cut documents with a splitter of LangChain or LlamaIndex, or any function text → texts.

    Each piece is searched for from the last one on. Where the splitter changed white space, the
    chunk is the stretch of the document that the piece stands for, and a warning says so; where
    it changed more, the piece cannot be found, which is an InputError.

    >>> with_splitter({"d": "one, two"}, lambda text: text.split(", ")).frame["item_id"].to_list()
    ['d#0-3', 'd#5-8']
    """
    reach = _overlap(splitter)
    changed: list[str] = []

    def places(doc_id: str, text: str) -> Iterator[Place]:
        document = _Document(text)
        texts = _pieces(splitter, text) if text.strip() else ()
        for number, piece in enumerate(texts, 1):
            if not piece.strip():
                continue
            found = document.find(piece, reach)
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


class _Document:
    """A text to find pieces in, one after the other, whatever white space they have."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.dense = "".join(text.split())
        codes = np.frombuffer(text.encode("utf-32-le"), np.uint32)
        self.positions = np.flatnonzero(~np.isin(codes, _WHITE_SPACE))
        """Where each character of `dense` stands in the text."""
        self.last = (0, 0)
        """The place in `dense` of the last piece that was found."""

    def find(self, piece: str, reach: int | None) -> Place | None:
        """Return where a piece stands: the first place after the last one, which it may overlap.

        It ends no earlier than the last one, and reaches back into it by no more than `reach`
        characters, so a short piece is not taken for the same words inside the chunk before it.
        Splitters that keep to neither are searched from the start of the last chunk.
        """
        wanted = "".join(piece.split())
        start, end = self.last
        begin = end - len(wanted) if reach is None else self._reaching_back(reach)
        at = self._search(wanted, max(start, begin))
        if at < 0:
            at = self._search(wanted, start)
        if at < 0:
            return None
        self.last = (at, at + len(wanted))
        first, final = (int(self.positions[i]) for i in (at, at + len(wanted) - 1))
        whole = first - (len(piece) - len(piece.lstrip()))
        if whole >= 0 and self.text.startswith(piece, whole):
            return whole, whole + len(piece)
        return first, final + 1

    def _search(self, wanted: str, begin: int) -> int:
        at = self.dense.find(wanted, begin)
        if (at, at + len(wanted)) == self.last:
            at = self.dense.find(wanted, at + 1)
        return at

    def _reaching_back(self, reach: int) -> int:
        end = self.last[1]
        if not end:
            return 0
        return int(np.searchsorted(self.positions, self.positions[end - 1] + 1 - reach))


def _overlap(splitter: Any) -> int | None:
    """Return by how many characters chunks may overlap, None where that is not known.

    LangChain says so, unless it counts tokens; LlamaIndex always counts tokens, but none is none.
    """
    told = getattr(splitter, "_chunk_overlap", getattr(splitter, "chunk_overlap", None))
    characters = getattr(splitter, "_length_function", None) is len
    if isinstance(told, int) and (
        told == 0 or (characters and not hasattr(splitter, "_tokenizer"))
    ):
        return told
    return None


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
