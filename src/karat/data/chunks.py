"""Chunks: the parts of documents that a retriever can return."""

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
    """One line of a JSON Lines file of chunks."""

    doc_id: Id
    start: Offset
    end: Offset
    text: str | None = None
    item_id: Id | None = None
    chunk_id: Id | None = None
    id: Id | None = None

    def row(self) -> dict[str, Any]:
        """Return the chunk as a row of the table."""
        return {
            "item_id": row_files.first_id(self.item_id, self.chunk_id, self.id),
            "doc_id": str(self.doc_id),
            "start": self.start,
            "end": self.end,
            "text": self.text,
        }


class Chunks:
    """The id and the span [start, end) of each chunk, in code points of its document.

    The constructor expects a table that was already checked. Use `Chunks.of` for other tables,
    and `Chunks.read` for files.

    Parameters
    ----------
    frame : pl.DataFrame
        The table (item_id, doc_id, start, end), optionally with text.

    Examples
    --------
    >>> Chunks.of(pl.DataFrame({"id": ["a"], "doc_id": ["d"], "start": [0], "end": [9]}))
    <Chunks: 1 chunk of 1 document>
    """

    def __init__(self, frame: pl.DataFrame) -> None:
        self.frame = frame
        """The table (item_id, doc_id, start, end), optionally with text."""

    def __len__(self) -> int:
        return self.frame.height

    @classmethod
    def of(cls, source: Any, *, columns: Columns | Mapping[str, str] | None = None) -> Chunks:
        """Make chunks from a table with one row per chunk.

        Parameters
        ----------
        source : table or Chunks
            A table with item_id, doc_id, start and end, and optionally text.
        columns : dict, optional
            Maps karat's names to the names in the table, for example `{"item_id": "passage"}`.

        Returns
        -------
        Chunks
            The checked chunks.

        Raises
        ------
        InputError
            If the table is invalid.

        Examples
        --------
        >>> table = pl.DataFrame({"id": ["a"], "file": ["d"], "start": [0], "end": [9]})
        >>> Chunks.of(table, columns={"doc_id": "file"}).frame.rows()
        [('a', 'd', 0, 9)]
        """
        if isinstance(source, Chunks):
            return source
        if frames.is_table(source):
            mapping = Columns.of(columns)
            chunks = chunks_of_table(mapping.table(frames.to_frame(source)))
            mapping.check()
            return chunks
        raise InputError(
            f"expected a table of chunks, got a value of type {type(source).__name__}",
            hint="pass a table with item_id, doc_id, start and end; use Chunks.read for a path",
        )

    @classmethod
    def read(
        cls,
        path: str | os.PathLike[str],
        *,
        format: str | None = None,  # noqa: A002
        columns: Columns | Mapping[str, str] | None = None,
    ) -> Chunks:
        """Read chunks from a file.

        Parameters
        ----------
        path : path
            A JSON Lines, CSV, TSV, Parquet or Arrow file with one row per chunk.
        format : {"jsonl", "csv", "tsv", "parquet", "arrow"}, optional
            The format of the file. It is detected by default.
        columns : dict, optional
            Maps karat's names to the names in the file, for example `{"item_id": "passage"}`.

        Returns
        -------
        Chunks
            The checked chunks.

        Raises
        ------
        InputError
            If the file cannot be read. The error states the file, the line and the field.

        Examples
        --------
        >>> chunks = Chunks.read("chunks.jsonl")  # doctest: +SKIP
        """
        mapping = Columns.of(columns)
        chunks = row_files.read(DataFile(path, mapping), format, ChunkLine, chunks_of_table)
        if mapping is not columns:
            mapping.check()
        return chunks

    def write(self, path: str | os.PathLike[str], *, format: str | None = None) -> None:  # noqa: A002
        """Write the chunks to a file.

        Parameters
        ----------
        path : path
            The file to write. An existing file is replaced.
        format : {"jsonl", "csv", "tsv", "parquet", "arrow"}, optional
            The format to write. The default follows from the file name extension.

        Examples
        --------
        >>> table = pl.DataFrame({"id": ["a"], "doc_id": ["d"], "start": [0], "end": [9]})
        >>> Chunks.of(table).write("chunks.parquet")  # doctest: +SKIP
        """
        row_files.write(self.frame, path, format)

    @classmethod
    def open(cls, source: Any) -> Chunks:
        """Return chunks from any supported source: `read` for a path, `of` for anything else.

        Parameters
        ----------
        source : Chunks, path or table
            The chunks.

        Returns
        -------
        Chunks
            The checked chunks.

        Examples
        --------
        >>> Chunks.open(pl.DataFrame({"id": ["a"], "doc_id": ["d"], "start": [0], "end": [9]}))
        <Chunks: 1 chunk of 1 document>
        """
        if isinstance(source, PathSource):
            return cls.read(source.path, format=source.format, columns=source.columns)
        return cls.read(source) if isinstance(source, (str, os.PathLike)) else cls.of(source)

    def __repr__(self) -> str:
        documents = counted(self.frame["doc_id"].n_unique(), "document")
        return f"<Chunks: {counted(len(self), 'chunk')} of {documents}>"


def chunks_of_table(table: pl.DataFrame, *, locate: frames.Locate = frames.row_error) -> Chunks:
    """Make chunks from a table with one row per chunk."""
    item = frames.require_column(table, ITEM_ID, "the chunk id")
    doc_id = frames.require_column(table, frames.DOC_ID, "the document id")
    start = frames.require_column(table, ("start",), "the start of the chunk")
    end = frames.require_column(table, ("end",), "the end of the chunk")
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
