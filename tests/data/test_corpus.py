"""Corpora and chunks: which sources are read, and which are refused."""

from __future__ import annotations

import gzip
import json

import pandas as pd
import polars as pl
import pytest

import karat
from karat.errors import InputError
from support.errors import refused

LINES = [{"_id": "1", "title": "A", "text": "one\r\n"}, {"_id": 2, "text": "zwei é"}]
ROWS = {"item_id": ["a", "b"], "doc_id": ["d", "d"], "start": [0, 5], "end": [5, 9]}


def lines(records) -> bytes:
    return "".join(json.dumps(record) + "\n" for record in records).encode()


def error_of(make, *arguments, **options) -> InputError:
    with refused() as caught:
        make(*arguments, **options)
    return caught.value


def place(error: InputError) -> tuple[str | None, int | None, str | None]:
    return error.path, error.line, error.field


# Folders of texts


def test_a_folder_is_read_recursively_sorted_with_paths_as_ids(tmp_path):
    (tmp_path / "b" / "c").mkdir(parents=True)
    for name in ("b/c/z.md", "a.TXT", "b.markdown", "no.pdf", "b/.hidden.md"):
        (tmp_path / name).write_text(name)
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "x.txt").write_text("x")
    corpus = karat.Corpus.read(tmp_path)
    assert corpus.doc_ids.to_list() == ["a.TXT", "b.markdown", "b/c/z.md"]
    assert corpus["b/c/z.md"] == "b/c/z.md"


@pytest.mark.parametrize("text", ["", "\n", "a\r\nb\rc\n", "\u2028é𝄞", "\ufeffkept twice"])
def test_a_text_is_untouched(tmp_path, text):
    (tmp_path / "a.md").write_bytes(text.encode())
    assert karat.Corpus.read(tmp_path)["a.md"] == text.removeprefix("\ufeff")


def test_a_byte_order_mark_is_not_part_of_the_text(tmp_path):
    (tmp_path / "a.md").write_bytes(b"\xef\xbb\xbfhello")
    assert karat.Corpus.read(tmp_path / "a.md")["a.md"] == "hello"
    (tmp_path / "a.md").write_bytes(b"\xef\xbb\xbf")
    assert karat.Corpus.read(tmp_path)["a.md"] == ""


def test_bytes_that_are_not_utf8_are_refused_by_line(tmp_path):
    (tmp_path / "a.md").write_bytes(b"one\ntw\xff")
    error = error_of(karat.Corpus.read, tmp_path)
    assert place(error) == (str(tmp_path / "a.md"), 2, "encoding")
    assert "0xff" in error.problem


@pytest.mark.parametrize("value", ["", ', "text": null', ', "text": ["x"]', ', "text": 5'])
def test_a_line_without_text_is_an_error_that_names_the_remedy(tmp_path, value):
    path = tmp_path / "docs.jsonl"
    path.write_text('{"doc_id": "a", "text": "x"}\n{"doc_id": "b"' + value + "}\n")
    with refused(path=path, line=2, field="text") as error:
        karat.Corpus.read(path)
    assert "--column text=" in error.value.hint


def test_a_folder_without_texts_is_refused(tmp_path):
    error = error_of(karat.Corpus.read, tmp_path)
    assert place(error) == (str(tmp_path), None, None)
    assert ".md" in error.hint


# Files of rows


@pytest.mark.parametrize("name", ["corpus.jsonl", "corpus.jsonl.gz"])
def test_a_beir_folder_is_read_with_texts_and_titles_apart(tmp_path, name):
    content = lines(LINES)
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    (tmp_path / "README.md").write_text("of the data set")
    corpus = karat.Corpus.read(tmp_path)
    assert corpus.documents.rows() == [("1", "one\r\n", "A"), ("2", "zwei é", None)]
    assert karat.Corpus.read(tmp_path, format="text").doc_ids.to_list() == ["README.md"]
    assert karat.Corpus.read(tmp_path / name).documents.equals(corpus.documents)


@pytest.mark.parametrize("ending", ["parquet", "arrow", "csv", "tsv"])
def test_texts_in_tables_are_unchanged(tmp_path, ending):
    table = pl.DataFrame(
        {"doc_id": ["1", "2", "3"], "text": ["a\r\nb\tc", "", '"é"'], "n": [1, 2, 3]}
    )
    path = tmp_path / f"corpus.{ending}"
    if ending in ("csv", "tsv"):
        table.write_csv(path, separator="," if ending == "csv" else "\t")
    else:
        table.write_parquet(path) if ending == "parquet" else table.write_ipc(path)
    assert karat.Corpus.read(path).documents.equals(table.drop("n"))
    copy = path.rename(tmp_path / "elsewhere")
    assert karat.Corpus.read(copy, format=ending).documents.equals(table.drop("n"))


def test_a_corpus_is_made_of_frames_and_dicts():
    frame = pd.DataFrame({"docno": [7], "text": ["x"]})
    assert karat.Corpus.of(frame).documents.rows() == [("7", "x")]
    corpus = karat.Corpus.of({1: "x"})
    assert "1" in corpus
    assert "2" not in corpus
    assert karat.Corpus.open(corpus) is corpus
    assert len(karat.Corpus.of({})) == 0


@pytest.mark.parametrize(
    ("content", "line", "field"),
    [
        (lines([*LINES, {"id": "1", "text": ""}]), 3, "doc_id"),
        (lines([{"text": "x"}]), 1, "doc_id"),
        (lines([LINES[0], {"id": "", "text": "x"}]), 2, "id"),
        (lines([LINES[0], {"id": "2", "text": ["x"]}]), 2, "text"),
        (lines([{"id": "2"}]), 1, "text"),
        (b'{"id": "1", "text": "\\ud800"}\n', 1, "text"),
        (b'{"id": "1", \n', 1, None),
    ],
)
def test_a_bad_line_is_refused_by_line_and_field(tmp_path, content, line, field):
    path = tmp_path / "corpus.jsonl"
    path.write_bytes(content)
    error = error_of(karat.Corpus.read, path)
    assert place(error) == (str(path), line, field)
    assert error.hint


@pytest.mark.parametrize(
    ("source", "field", "value"),
    [
        ({1: "x", "1": "y"}, "doc_id", "row 2: duplicate document '1'"),
        ({1.5: "x"}, "doc_id", "1.5"),
        ({"": "x"}, "doc_id", "row 1"),
        ({"a": b"x"}, "a", "bytes"),
        ({"a": "\ud800"}, "text", r"'\ud800'"),
        (pl.DataFrame({"doc_id": ["a"], "text": [None]}), "text", "row 1"),
        (pl.DataFrame({"doc_id": ["a"]}), "text", "doc_id"),
        (["x"], None, "list"),
    ],
)
def test_an_invalid_corpus_is_refused(source, field, value):
    error = error_of(karat.Corpus.of, source)
    assert place(error) == (None, None, field)
    assert value in error.problem


def test_a_path_that_cannot_be_read_as_a_corpus_is_refused(tmp_path):
    (tmp_path / "a.pdf").write_bytes(b"%PDF")
    unknown = error_of(karat.Corpus.read, tmp_path / "a.pdf")
    assert place(unknown) == (str(tmp_path / "a.pdf"), None, "format")
    assert "jsonl" in unknown.hint
    not_for_corpora = error_of(karat.Corpus.read, tmp_path, format="trec")
    assert place(not_for_corpora) == (None, None, "format")
    assert "'trec'" in not_for_corpora.problem
    assert "beir" in not_for_corpora.hint
    not_beir = error_of(karat.Corpus.read, tmp_path, format="beir")
    assert place(not_beir) == (str(tmp_path), None, None)
    assert "corpus.jsonl" in not_beir.problem
    assert place(error_of(karat.Corpus.read, tmp_path, format="csv")) == (str(tmp_path), None, None)
    missing = error_of(karat.Corpus.read, tmp_path / "b")
    assert place(missing) == (str(tmp_path / "b"), None, None)


# Chunks


@pytest.mark.parametrize("ending", ["jsonl", "jsonl.gz", "csv", "tsv", "parquet", "arrow"])
@pytest.mark.parametrize("text", [{}, {"text": ["\r\na\tb", "é,"]}])
def test_chunks_are_read_as_they_were_written(tmp_path, ending, text):
    chunks = karat.Chunks.of(pl.DataFrame(ROWS | text))
    path = tmp_path / f"chunks.{ending}"
    chunks.write(path)
    assert karat.Chunks.read(path).frame.equals(chunks.frame)
    assert len(karat.Chunks.open(path)) == 2


def test_the_ids_of_chunks_may_have_other_names(tmp_path):
    path = tmp_path / "chunks.jsonl"
    path.write_bytes(lines([{"chunk_id": 1, "doc_id": 2, "start": 0, "end": 3, "more": []}]))
    assert karat.Chunks.read(path).frame.rows() == [("1", "2", 0, 3)]


@pytest.mark.parametrize(
    ("change", "field", "value"),
    [
        ({"item_id": ["a", "a"]}, "item_id", "'a'"),
        ({"start": [0, -1]}, "start", "[-1, 9)"),
        ({"end": [5, 4]}, "start", "[5, 4)"),
        ({"end": ["5", "5.5"]}, "end", "'5.5'"),
        ({"end": [5, None]}, "end", ""),
    ],
)
def test_bad_chunks_are_refused_by_row(tmp_path, change, field, value):
    table = pl.DataFrame(ROWS | change)
    error = error_of(karat.Chunks.of, table)
    assert place(error) == (None, None, field)
    assert "row 2" in error.problem
    assert value in error.problem
    table.write_csv(tmp_path / "chunks.csv")
    error = error_of(karat.Chunks.read, tmp_path / "chunks.csv")
    assert place(error) == (str(tmp_path / "chunks.csv"), 3, field)


def test_an_invalid_table_of_chunks_is_refused():
    error = error_of(karat.Chunks.of, {})
    assert place(error) == (None, None, None)
    assert "dict" in error.problem
    error = error_of(karat.Chunks.of, pl.DataFrame({"doc_id": ["d"], "start": [0], "end": [1]}))
    assert place(error) == (None, None, "item_id")


def test_formats_that_cannot_hold_chunks_are_refused(tmp_path):
    chunks = karat.Chunks.of(pl.DataFrame(ROWS))
    error = error_of(chunks.write, tmp_path / "x.doc")
    assert error.path == str(tmp_path / "x.doc")
    assert "'.doc'" in error.problem
    error = error_of(chunks.write, tmp_path / "x", format="trec")
    assert (error.field, "'trec'" in error.problem) == ("format", True)
    error = error_of(karat.Chunks.read, __file__, format="text")
    assert (error.field, "'text'" in error.problem) == ("format", True)
