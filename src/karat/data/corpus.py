"""Corpus: the documents that chunks and spans refer to."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import polars as pl

from karat.data import frames
from karat.data.columns import Columns
from karat.data.data_file import PathSource
from karat.data.formats.json_lines import table_of
from karat.errors import InputError, counted

DOC_ID = ("doc_id", "_id", "id", *frames.DOC_ID[1:])
_SCHEMA = {"doc_id": pl.String, "text": pl.String}


class Corpus:
    """Documents by id. Offsets into a document count the code points of its text.

    `corpus[doc_id]` is the text of a document, `doc_id in corpus` tests whether it exists, and
    `len(corpus)` is the number of documents.

    The constructor expects a table that was already checked. Use `Corpus.of` for dicts and other
    tables, and `Corpus.read` for files.

    Parameters
    ----------
    documents : pl.DataFrame
        The table (doc_id, text), optionally with title.

    Examples
    --------
    >>> corpus = Corpus.of({"faq.md": "# Refunds", "terms.md": "None."})
    >>> len(corpus), "faq.md" in corpus, corpus["faq.md"][2:9]
    (2, True, 'Refunds')
    """

    def __init__(self, documents: pl.DataFrame) -> None:
        self.documents = documents
        """The table (doc_id, text), optionally with title."""

    @property
    def doc_ids(self) -> pl.Series:
        """The ids of the documents, in the order of `documents`.

        Examples
        --------
        >>> Corpus.of({"faq.md": "# Refunds", "terms.md": "None."}).doc_ids.to_list()
        ['faq.md', 'terms.md']
        """
        return self.documents["doc_id"]

    @cached_property
    def _texts(self) -> dict[str, str]:
        # Cached, because each access to the table copies the whole text.
        return dict(zip(self.doc_ids, self.documents["text"], strict=True))

    def __getitem__(self, doc_id: str) -> str:
        return self._texts[doc_id]

    def __contains__(self, doc_id: object) -> bool:
        return doc_id in self._texts

    def __len__(self) -> int:
        return self.documents.height

    @classmethod
    def of(cls, source: Any, *, columns: Columns | Mapping[str, str] | None = None) -> Corpus:
        """Make a corpus from a dict or a table.

        Parameters
        ----------
        source : dict, table or Corpus
            `{doc_id: text}`, or a table with doc_id and text, and optionally title.
        columns : dict, optional
            Maps karat's names to the names in the table, for example `{"text": "body"}`.

        Returns
        -------
        Corpus
            The checked corpus.

        Raises
        ------
        InputError
            If the input is invalid.

        Examples
        --------
        >>> Corpus.of({"faq.md": "# Refunds"})
        <Corpus: 1 document>
        """
        if isinstance(source, Corpus):
            return source
        if isinstance(source, Mapping):
            return corpus_of_mapping(source)
        if frames.is_table(source):
            mapping = Columns.of(columns)
            corpus = corpus_of_table(mapping.table(frames.to_frame(source)))
            mapping.check()
            return corpus
        raise InputError(
            f"expected a corpus, got a value of type {type(source).__name__}",
            hint="pass {doc_id: text} or a table with doc_id and text; use Corpus.read for a path",
        )

    @classmethod
    def read(
        cls,
        path: str | os.PathLike[str],
        *,
        format: str | None = None,  # noqa: A002
        columns: Columns | Mapping[str, str] | None = None,
    ) -> Corpus:
        """Read a corpus from a folder or a file.

        Parameters
        ----------
        path : path
            A folder with text files (.txt, .md), a BEIR folder, or one file: text, JSON Lines,
            CSV, TSV, Parquet or Arrow.
        format : {"text", "beir", "jsonl", "csv", "tsv", "parquet", "arrow"}, optional
            The format. It is detected by default.
        columns : dict, optional
            Maps karat's names to the names in the file, for example `{"text": "body"}`.

        Returns
        -------
        Corpus
            The checked corpus. In a folder of text files, the document ids are the paths of the
            files relative to the folder.

        Raises
        ------
        InputError
            If the folder or file cannot be read. The error states the file, the line and the
            field.

        Examples
        --------
        >>> corpus = Corpus.read("docs/")  # doctest: +SKIP
        """
        from karat.data.corpus_files import read_corpus

        mapping = Columns.of(columns)
        corpus = read_corpus(path, format, mapping)
        if mapping is not columns:
            mapping.check()
        return corpus

    @classmethod
    def open(cls, source: Any) -> Corpus:
        """Return a corpus from any supported source: `read` for a path, `of` for anything else.

        Parameters
        ----------
        source : Corpus, path, dict or table
            The corpus.

        Returns
        -------
        Corpus
            The checked corpus.

        Examples
        --------
        >>> Corpus.open({"faq.md": "# Refunds"})
        <Corpus: 1 document>
        """
        if isinstance(source, PathSource):
            return cls.read(source.path, format=source.format, columns=source.columns)
        return cls.read(source) if isinstance(source, (str, os.PathLike)) else cls.of(source)

    def __repr__(self) -> str:
        return f"<Corpus: {counted(len(self), 'document')}>"


def corpus_of_mapping(texts: Mapping[Any, Any]) -> Corpus:
    """Make a corpus from {doc_id: text}."""
    for doc_id, text in texts.items():
        if isinstance(doc_id, bool) or not isinstance(doc_id, (str, int)):
            raise InputError(
                f"an id must be text or a whole number, got {doc_id!r}",
                field="doc_id",
                hint="pass {doc_id: text}",
            )
        if not isinstance(text, str):
            raise InputError(
                f"a document must be text, got a value of type {type(text).__name__}",
                field=str(doc_id),
                hint="pass {doc_id: text}; decode bytes as UTF-8 first",
            )
    columns = {"doc_id": [str(doc_id) for doc_id in texts], "text": list(texts.values())}
    return corpus_of_table(table_of(columns, _SCHEMA, "text"))


def corpus_of_table(table: pl.DataFrame, *, locate: frames.Locate = frames.row_error) -> Corpus:
    """Make a corpus from a table with one row per document."""
    doc_id = frames.require_column(table, DOC_ID, "the document id")
    text = frames.require_column(table, ("text",), "the document text")
    title = frames.column(table, ("title",))
    columns = [
        frames.ids(table[doc_id], "doc_id", locate),
        frames.texts(table[text], "text", locate),
    ]
    missing = columns[1].is_null()
    if missing.any():
        raise locate(
            frames.first_row_number(missing),
            text,
            "the text is missing",
            'use the text "" for an empty document',
        )
    if title is not None:
        columns.append(frames.texts(table[title], "title", locate))
    frames.check_unique_ids(columns[0], "document", locate)
    return Corpus(pl.DataFrame(columns))
