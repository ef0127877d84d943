"""Corpus: the documents that chunks and spans are cut from."""

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
    """Documents by id, each with its text; offsets count the code points of that text.

    >>> corpus = Corpus.of({"faq.md": "# Refunds", "terms.md": "None."})
    >>> len(corpus), "faq.md" in corpus, corpus["faq.md"][2:9]
    (2, True, 'Refunds')
    """

    def __init__(self, documents: pl.DataFrame) -> None:
        """Hold a checked table; `Corpus.of` and `Corpus.read` make it from anything else."""
        self.documents = documents
        """The table (doc_id, text), and title where there is one."""

    @property
    def doc_ids(self) -> pl.Series:
        """The ids of the documents, in their order."""
        return self.documents["doc_id"]

    @cached_property
    def _texts(self) -> dict[str, str]:
        # Kept, since each look into the table copies a whole text.
        return dict(zip(self.doc_ids, self.documents["text"], strict=True))

    def __getitem__(self, doc_id: str) -> str:
        return self._texts[doc_id]

    def __contains__(self, doc_id: object) -> bool:
        return doc_id in self._texts

    def __len__(self) -> int:
        return self.documents.height

    @classmethod
    def of(cls, source: Any, *, columns: Columns | Mapping[str, str] | None = None) -> Corpus:
        """Make a corpus from {doc_id: text} or a table with doc_id and text.

        `columns` maps these names to those of the table.
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
            f"a {type(source).__name__} is no corpus",
            hint="give {doc_id: text} or a table with doc_id and text; Corpus.read takes a path",
        )

    @classmethod
    def read(
        cls,
        path: str | os.PathLike[str],
        *,
        format: str | None = None,  # noqa: A002
        columns: Columns | Mapping[str, str] | None = None,
    ) -> Corpus:
        """Read a folder of texts, a BEIR folder, a text, JSON Lines or a table.

        `columns` maps karat's names to those of the file, such as `{"text": "body"}`.
        """
        from karat.data.corpus_files import read_corpus

        mapping = Columns.of(columns)
        corpus = read_corpus(path, format, mapping)
        if mapping is not columns:
            mapping.check()
        return corpus

    @classmethod
    def open(cls, source: Any) -> Corpus:
        """Take a corpus however it is given: corpus, path, dict, table."""
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
                f"{doc_id!r} is no id: ids are text or whole numbers",
                field="doc_id",
                hint="give {doc_id: text}",
            )
        if not isinstance(text, str):
            raise InputError(
                f"a {type(text).__name__} is no text",
                field=str(doc_id),
                hint="give {doc_id: text}; decode bytes as UTF-8 first",
            )
    columns = {"doc_id": [str(doc_id) for doc_id in texts], "text": list(texts.values())}
    return corpus_of_table(table_of(columns, _SCHEMA, "text"))


def corpus_of_table(table: pl.DataFrame, *, locate: frames.Locate = frames.row_error) -> Corpus:
    """Make a corpus from a table with a row for each document."""
    doc_id = frames.require_column(table, DOC_ID, "the document's id")
    text = frames.require_column(table, ("text",), "the document's text")
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
            'an empty document has the text ""',
        )
    if title is not None:
        columns.append(frames.texts(table[title], "title", locate))
    frames.check_unique_ids(columns[0], "document", locate)
    return Corpus(pl.DataFrame(columns))
