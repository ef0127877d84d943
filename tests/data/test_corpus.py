"""Corpora and chunks as values: what is read, and what is refused."""

from __future__ import annotations

import gzip
import json

import pandas as pd
import polars as pl
import pytest

import karat
from karat.errors import InputError

LINES = [{"_id": "1", "title": "A", "text": "one\r\n"}, {"_id": 2, "text": "zwei é"}]
ROWS = {"item_id": ["a", "b"], "doc_id": ["d", "d"], "start": [0, 5], "end": [5, 9]}


def lines(records) -> bytes:
    return "".join(json.dumps(record) + "\n" for record in records).encode()


def refused(make, *given, **options) -> InputError:
    with pytest.raises(InputError) as caught:
        make(*given, **options)
    return caught.value


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


def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path):
    (tmp_path / "a.md").write_bytes(b"\xef\xbb\xbfhello")
    assert karat.Corpus.read(tmp_path / "a.md")["a.md"] == "hello"
    (tmp_path / "a.md").write_bytes(b"\xef\xbb\xbf")
    assert karat.Corpus.read(tmp_path)["a.md"] == ""


def test_bytes_that_are_not_utf8_are_named(tmp_path):
    (tmp_path / "a.md").write_bytes(b"one\ntw\xff")
    error = refused(karat.Corpus.read, tmp_path)
    assert error.path == str(tmp_path / "a.md")
    assert error.line == 2


def test_a_folder_without_texts_is_refused(tmp_path):
    assert ".md" in refused(karat.Corpus.read, tmp_path).hint


# Files of rows


@pytest.mark.parametrize("name", ["corpus.jsonl", "corpus.jsonl.gz"])
def test_a_beir_folder_is_its_corpus_and_offsets_count_in_the_text_alone(tmp_path, name):
    content = lines(LINES)
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    (tmp_path / "README.md").write_text("of the data set")
    corpus = karat.Corpus.read(tmp_path)
    assert corpus.documents.rows() == [("1", "one\r\n", "A"), ("2", "zwei é", None)]
    assert karat.Corpus.read(tmp_path, format="text").doc_ids.to_list() == ["README.md"]
    assert karat.Corpus.read(tmp_path / name).documents.equals(corpus.documents)


@pytest.mark.parametrize("ending", ["parquet", "arrow", "csv", "tsv"])
def test_tables_are_read_as_they_are(tmp_path, ending):
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


def test_frames_and_dicts_are_corpora():
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
def test_a_bad_line_is_named(tmp_path, content, line, field):
    path = tmp_path / "corpus.jsonl"
    path.write_bytes(content)
    error = refused(karat.Corpus.read, path)
    assert (error.path, error.line, error.field) == (str(path), line, field)
    assert error.hint


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({1: "x", "1": "y"}, "stands there twice"),
        ({1.5: "x"}, "is no id"),
        ({"": "x"}, "the id is missing"),
        ({"a": b"x"}, "a bytes is no text"),
        ({"a": "\ud800"}, "lone surrogate"),
        (pl.DataFrame({"doc_id": ["a"], "text": [None]}), "the text is missing"),
        (pl.DataFrame({"doc_id": ["a"]}), "no column for the document's text"),
        (["x"], "a list is no corpus"),
    ],
)
def test_what_is_no_corpus_is_refused(given, problem):
    assert problem in str(refused(karat.Corpus.of, given))


def test_unknown_formats_are_refused_with_those_there_are(tmp_path):
    (tmp_path / "a.pdf").write_bytes(b"%PDF")
    assert "neither content nor ending" in str(refused(karat.Corpus.read, tmp_path / "a.pdf"))
    assert "beir" in refused(karat.Corpus.read, tmp_path, format="trec").hint
    assert "no corpus.jsonl" in str(refused(karat.Corpus.read, tmp_path, format="beir"))
    assert "directory" in str(refused(karat.Corpus.read, tmp_path, format="csv"))
    assert "no such file" in str(refused(karat.Corpus.read, tmp_path / "b"))


# Chunks


@pytest.mark.parametrize("ending", ["jsonl", "jsonl.gz", "csv", "tsv", "parquet", "arrow"])
@pytest.mark.parametrize("text", [{}, {"text": ["\r\na\tb", "é,"]}])
def test_chunks_come_back_as_they_were_written(tmp_path, ending, text):
    chunks = karat.Chunks.of(pl.DataFrame(ROWS | text))
    path = tmp_path / f"chunks.{ending}"
    chunks.write(path)
    assert karat.Chunks.read(path).frame.equals(chunks.frame)
    assert len(karat.Chunks.open(path)) == 2


def test_ids_of_chunks_go_by_other_names(tmp_path):
    path = tmp_path / "chunks.jsonl"
    path.write_bytes(lines([{"chunk_id": 1, "doc_id": 2, "start": 0, "end": 3, "more": []}]))
    assert karat.Chunks.read(path).frame.rows() == [("1", "2", 0, 3)]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"item_id": ["a", "a"]}, "chunk 'a' stands there twice"),
        ({"start": [0, -1]}, "is no stretch of text"),
        ({"end": [5, 4]}, "is no stretch of text"),
        ({"end": ["5", "5.5"]}, "'5.5' is no integer"),
        ({"end": [5, None]}, "is no integer"),
    ],
)
def test_bad_chunks_are_refused_by_row(tmp_path, change, problem):
    table = pl.DataFrame(ROWS | change)
    error = refused(karat.Chunks.of, table)
    assert "row 2" in str(error)
    assert problem in str(error)
    table.write_csv(tmp_path / "chunks.csv")
    assert refused(karat.Chunks.read, tmp_path / "chunks.csv").line == 3


def test_what_is_no_table_of_chunks_is_refused(tmp_path):
    assert "no table of chunks" in str(refused(karat.Chunks.of, {}))
    error = refused(karat.Chunks.of, pl.DataFrame({"doc_id": ["d"], "start": [0], "end": [1]}))
    assert error.field == "item_id"
    chunks = karat.Chunks.of(pl.DataFrame(ROWS))
    assert "names no format" in str(refused(chunks.write, tmp_path / "x.doc"))
    assert "no format 'trec'" in str(refused(chunks.write, tmp_path / "x", format="trec"))
    assert "no format 'text'" in str(refused(karat.Chunks.read, __file__, format="text"))
