"""Reading a corpus from a folder of text files, a BEIR folder, JSON Lines or a table file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

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
    """One line of a JSON Lines file of documents. In BEIR, the id is called `_id`."""

    hints: ClassVar[Mapping[str, str]] = {
        "text": "give each document a text, or remove it; if the text has another key, map it: "
        "--column text=KEY (columns=)"
    }

    text: str
    title: str | None = None
    doc_id: Id | None = None
    beir_id: Id | None = None
    id: Id | None = None

    def row(self) -> dict[str, Any]:
        """Return the document as a row of the table."""
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
    path = Path(path)
    if path.is_dir():
        beir_file = _beir_file(path) if format != "text" else None
        if beir_file is None:
            return _read_folder(path, format)
        return row_files.read(DataFile(beir_file, columns), "jsonl", DocumentLine, corpus_of_table)
    source = DataFile(path, columns)
    if format == "text" or (format is None and path.suffix.lower() in TEXT_ENDINGS):
        return corpus_of_mapping({path.name: _text(source)})
    row_format = "jsonl" if format == "beir" else format
    return row_files.read(source, row_format, DocumentLine, corpus_of_table)


def _beir_file(folder: Path) -> Path | None:
    names = ["corpus.jsonl", *(f"corpus.jsonl{ending}" for ending in COMPRESSIONS)]
    return next((folder / name for name in names if (folder / name).is_file()), None)


def _read_folder(folder: Path, format: str | None) -> Corpus:  # noqa: A002
    """Read all text files in a folder and its subfolders, except hidden ones such as .git."""
    hint = (
        "give the path of a file in the folder, or set the format to 'text' to read its text files"
    )
    if format == "beir":
        raise InputError("the folder has no corpus.jsonl", path=folder, hint=hint)
    if format not in (None, "text"):
        raise InputError("expected a file, got a folder", path=folder, hint=hint)
    files = {
        file.relative_to(folder).as_posix(): file
        for file in folder.rglob("*")
        if file.suffix.lower() in TEXT_ENDINGS and file.is_file()
    }
    visible = sorted(name for name in files if "/." not in f"/{name}")
    if not visible:
        raise InputError(
            "the folder has no text files",
            path=folder,
            hint=f"text files have one of the extensions {', '.join(TEXT_ENDINGS)}; "
            "for other formats, give the path of the file",
        )
    return corpus_of_mapping({name: _text(Source(files[name])) for name in visible})


def _text(source: Source) -> str:
    """Return the text of a file without a byte order mark; line breaks are not changed."""
    content = source.read()
    without_mark = content.removeprefix(BYTE_ORDER_MARK)
    if not without_mark.strip():  # a document may be empty, but `decode` rejects empty files
        return without_mark.decode("ascii")
    return decode(content, source)
