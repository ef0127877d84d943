"""Chunks: the stretches of documents that a retriever can return."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import polars as pl

from karat.data import frames, row_files
from karat.data.columns import Columns
from karat.data.data_file import DataFile, PathSource
from karat.data.formats.json_lines import Id, Offset
from karat.errors import InputError, counted

ITEM_ID = tuple(name for name in frames.ITEM_ID if name not in frames.DOC_ID)


class ChunkLine(row_files.RowLine):
    """A chunk in JSON Lines."""

    doc_id: Id
    start: Offset
    end: Offset
    text: str | None = None
    item_id: Id | None = None
    chunk_id: Id | None = None
    id: Id | None = None

    def row(self) -> dict[str, Any]:
        """Return the row of the chunk."""
        return {
            "item_id": row_files.first_id(self.item_id, self.chunk_id, self.id),
            "doc_id": str(self.doc_id),
            "start": self.start,
            "end": self.end,
            "text": self.text,
        }


class Chunks:
    """Stretches [start, end) of documents, counted in code points, each an item by its id.

    >>> Chunks.of(pl.DataFrame({"id": ["a"], "doc_id": ["d"], "start": [0], "end": [9]}))
    <Chunks: 1 chunk of 1 document>
    """

    def __init__(self, frame: pl.DataFrame) -> None:
        """Hold a checked table; `Chunks.of` and `Chunks.read` make it from anything else."""
        self.frame = frame
        """The table (item_id, doc_id, start, end), and text where there is one."""

    def __len__(self) -> int:
        return self.frame.height

    @classmethod
    def of(cls, source: Any, *, columns: Columns | Mapping[str, str] | None = None) -> Chunks:
        """Make chunks from a table with item_id, doc_id, start, end and perhaps text.

        `columns` maps these names to those of the table.
        """
        if isinstance(source, Chunks):
            return source
        if frames.is_table(source):
            mapping = Columns.of(columns)
            chunks = chunks_of_table(mapping.table(frames.to_frame(source)))
            mapping.check()
            return chunks
        raise InputError(
            f"a {type(source).__name__} is no table of chunks",
            hint="give a table with item_id, doc_id, start and end; Chunks.read takes a path",
        )

    @classmethod
    def read(
        cls,
        path: str | os.PathLike[str],
        *,
        format: str | None = None,  # noqa: A002
        columns: Columns | Mapping[str, str] | None = None,
    ) -> Chunks:
        """Read chunks from JSON Lines or a table; `columns` maps karat's names to the file's."""
        mapping = Columns.of(columns)
        chunks = row_files.read(DataFile(path, mapping), format, ChunkLine, chunks_of_table)
        if mapping is not columns:
            mapping.check()
        return chunks

    def write(self, path: str | os.PathLike[str], *, format: str | None = None) -> None:  # noqa: A002
        """Write chunks in the format that the ending names."""
        row_files.write(self.frame, path, format)

    @classmethod
    def open(cls, source: Any) -> Chunks:
        """Take chunks however they are given: chunks, path, table."""
        if isinstance(source, PathSource):
            return cls.read(source.path, format=source.format, columns=source.columns)
        return cls.read(source) if isinstance(source, (str, os.PathLike)) else cls.of(source)

    def __repr__(self) -> str:
        documents = counted(self.frame["doc_id"].n_unique(), "document")
        return f"<Chunks: {counted(len(self), 'chunk')} of {documents}>"


def chunks_of_table(table: pl.DataFrame, *, locate: frames.Locate = frames.row_error) -> Chunks:
    """Make chunks from a table with a row for each."""
    item = frames.require_column(table, ITEM_ID, "the chunk's id")
    doc_id = frames.require_column(table, frames.DOC_ID, "the document's id")
    start = frames.require_column(table, ("start",), "where the chunk starts")
    end = frames.require_column(table, ("end",), "where the chunk ends")
    text = frames.column(table, ("text",))
    columns = [
        frames.ids(table[item], "item_id", locate),
        frames.ids(table[doc_id], "doc_id", locate),
        frames.whole_numbers(table[start], "start", locate),
        frames.whole_numbers(table[end], "end", locate),
    ]
    if text is not None:
        columns.append(frames.texts(table[text], "text", locate))
    chunks = pl.DataFrame(columns)
    frames.check_offsets(chunks, locate)
    frames.check_unique_ids(chunks["item_id"], "chunk", locate)
    return Chunks(chunks)
