"""Corpora in files: a folder of texts, a BEIR folder, JSON Lines, a table."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from karat.data import row_files
from karat.data.columns import Columns
from karat.data.corpus import Corpus, corpus_of_mapping, corpus_of_table
from karat.data.data_file import DataFile
from karat.data.formats.json_lines import Id
from karat.errors import InputError
from karat.files import BYTE_ORDER_MARK, COMPRESSIONS, Source, decode

TEXT_ENDINGS = (".txt", ".md", ".markdown")
NAMES = ("text", "beir", *row_files.NAMES)


class DocumentLine(row_files.RowLine, rename={"beir_id": "_id"}):
    """A document in JSON Lines; BEIR calls its id `_id`."""

    text: str
    title: str | None = None
    doc_id: Id | None = None
    beir_id: Id | None = None
    id: Id | None = None

    def row(self) -> dict[str, Any]:
        """Return the row of the document."""
        doc_id = row_files.first_id(self.doc_id, self.beir_id, self.id)
        return {"doc_id": doc_id, "text": self.text, "title": self.title}


def read_corpus(
    path: str | os.PathLike[str],
    format: str | None = None,  # noqa: A002
    columns: Columns | None = None,
) -> Corpus:
    """Read a corpus from a folder or a file."""
    if format is not None and format not in NAMES:
        raise row_files.unknown_format_error(format, NAMES)
    given = Path(path)
    if given.is_dir():
        inside = _beir_file(given) if format != "text" else None
        if inside is None:
            return _read_folder(given, format)
        return row_files.read(DataFile(inside, columns), "jsonl", DocumentLine, corpus_of_table)
    source = DataFile(given, columns)
    if format == "text" or (format is None and given.suffix.lower() in TEXT_ENDINGS):
        return corpus_of_mapping({given.name: _text(source)})
    name = "jsonl" if format == "beir" else format
    return row_files.read(source, name, DocumentLine, corpus_of_table)


def _beir_file(folder: Path) -> Path | None:
    names = ["corpus.jsonl", *(f"corpus.jsonl{ending}" for ending in COMPRESSIONS)]
    return next((folder / name for name in names if (folder / name).is_file()), None)


def _read_folder(folder: Path, format: str | None) -> Corpus:  # noqa: A002
    """Read all texts below a folder; what is hidden, such as .git, is no document."""
    if format not in (None, "text"):
        raise InputError(
            "this is a directory where a file is meant"
            if format != "beir"
            else "there is no corpus.jsonl in this folder",
            path=folder,
            hint="name a file in it, or read its texts with the format text",
        )
    files = {
        file.relative_to(folder).as_posix(): file
        for file in folder.rglob("*")
        if file.suffix.lower() in TEXT_ENDINGS and file.is_file()
    }
    seen = sorted(name for name in files if not f"/{name}".count("/."))
    if not seen:
        raise InputError(
            "there is no text in this folder",
            path=folder,
            hint=f"documents end in {', '.join(TEXT_ENDINGS)}; or name a file: .jsonl, .parquet, …",
        )
    return corpus_of_mapping({name: _text(Source(files[name])) for name in seen})


def _text(source: Source) -> str:
    """Return a file's text with its newlines untouched, and without a byte order mark."""
    content = source.read()
    bare = content.removeprefix(BYTE_ORDER_MARK)
    # A document may be empty, which `decode` refuses, since no other file may be.
    return decode(content, source) if bare.strip() else bare.decode("ascii")
