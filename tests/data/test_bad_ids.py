"""Ids that no reader accepts: with a NUL character, or longer than 64 KiB."""

import io
import json
from pathlib import Path

import polars as pl
import pytest

from karat import Gold, Run
from karat.data.chunks import Chunks
from karat.data.corpus import Corpus
from support.errors import refused

LONG = "x" * 65_537
LONGEST = LONG[1:]
SPAN = {"start": 0, "end": 1}
BAD = ["a\0b", LONG]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def table_file(ending: str, table: pl.DataFrame) -> str:
    path = f"x.{ending}"
    if ending == "csv":
        table.write_csv(path)
    elif ending == "tsv":
        table.write_csv(path, separator="\t")
    elif ending == "parquet":
        table.write_parquet(path)
    else:
        table.write_ipc(path)
    return path


@pytest.mark.parametrize("bad", BAD, ids=["NUL", "long"])
@pytest.mark.parametrize("column", ["query_id", "item_id"])
@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet", "arrow"])
def test_tables(ending, column, bad):
    table = pl.DataFrame({"query_id": ["q1", "q2"], "item_id": ["a", "b"], "grade": [1, 1]})
    table = table.with_columns(pl.Series(column, [table[column][0], bad]))
    line = 3 if ending in ("csv", "tsv") else None
    path = table_file(ending, table)
    with refused(path=path, line=line, field=column):
        Gold.read(path)
    path = table_file(ending, table.rename({"grade": "score"}))
    with refused(path=path, line=line, field=column):
        Run.read(path)


@pytest.mark.parametrize("bad", BAD, ids=["NUL", "long"])
@pytest.mark.parametrize(("place", "field"), [(0, "query_id"), (2, "item_id")])
def test_trec(place, field, bad):
    for read, line in ((Gold.read, "q 0 a 1"), (Run.read, "q Q0 a 1 1.5 t")):
        fields = line.split()
        fields[place] = bad
        Path("x.trec").write_text(f"{line}\n{' '.join(fields)}\n")
        with refused(path="x.trec", line=2, field=field):
            read("x.trec")


@pytest.mark.parametrize("bad", BAD, ids=["NUL", "long"])
@pytest.mark.parametrize(
    ("read", "record"),
    [
        (Gold.read, lambda bad: {"query_id": bad, "relevant": ["a"]}),
        (Gold.read, lambda bad: {"query_id": "q2", "relevant": [bad]}),
        (Gold.read, lambda bad: {"query_id": "q2", "relevant": {bad: 1}}),
        (
            Gold.read,
            lambda bad: {"query_id": "q2", "spans": [SPAN | {"doc_id": bad}]},
        ),
        (Run.read, lambda bad: {"query_id": bad, "results": ["a"]}),
        (Run.read, lambda bad: {"query_id": "q2", "results": ["a", bad]}),
        (Run.read, lambda bad: {"query_id": "q2", "results": [{"id": bad}]}),
        (Run.read, lambda bad: {"query_id": "q2", "results": [{"id": "a", "doc_id": bad}]}),
    ],
)
def test_json_lines(read, record, bad):
    first = {"query_id": "q1", "relevant": ["a"], "results": ["a"]}
    Path("x.jsonl").write_text(f"{json.dumps(first)}\n{json.dumps(record(bad))}\n")
    with refused(path="x.jsonl", line=2):
        read("x.jsonl")


@pytest.mark.parametrize("bad", BAD, ids=["NUL", "long"])
def test_json(bad):
    for content in ({bad: {"a": 1}}, {"q1": {bad: 1}}, {"q1": ["a", bad]}):
        Path("x.json").write_text(json.dumps(content))
        for read in (Gold.read, Run.read):
            with refused(path="x.json", line=1):
                read("x.json")


def test_json_records():
    Path("x.json").write_text(json.dumps([{"query_id": "q1", "relevant": ["a\0"]}], indent=1))
    with refused(path="x.json", line=5):
        Gold.read("x.json")


@pytest.mark.parametrize("bad", BAD, ids=["NUL", "long"])
def test_chunks_and_corpora(bad):
    chunks = pl.DataFrame({"item_id": [bad], "doc_id": ["d"], "start": [0], "end": [1]})
    path = table_file("parquet", chunks)
    with refused(path=path, field="item_id"):
        Chunks.read(path)
    Path("x.jsonl").write_text(json.dumps({"doc_id": bad, "text": "t"}) + "\n")
    with refused(path="x.jsonl", line=1):
        Corpus.read("x.jsonl")


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet", "arrow"])
@pytest.mark.parametrize(
    ("query", "ids", "field"), [("q\0", "a;b", "query_id"), ("q2", "a;b\0", "relevant")]
)
def test_lists_in_tables(ending, query, ids, field):
    table = pl.DataFrame({"query_id": ["q1", query], "relevant": ["a", ids]})
    line = 3 if ending in ("csv", "tsv") else None
    path = table_file(ending, table)
    with refused(path=path, line=line, field=field):
        Gold.read(path)
    path = table_file(ending, table.rename({"relevant": "results"}))
    with refused(path=path, line=line, field=field.replace("relevant", "results")):
        Run.read(path)


def test_json_lists_in_cells():
    table = pl.DataFrame({"query_id": ["q1"], "relevant": [json.dumps(["a\0"])]})
    with refused(path="x.csv", line=2, field="relevant"):
        Gold.read(table_file("csv", table))


@pytest.mark.parametrize("column", ["id", "reference_context_ids", "retrieved_context_ids"])
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_ragas_tables(ending, column):
    row = {"id": "q1", "reference_context_ids": '["a"]', "retrieved_context_ids": '["a"]'}
    row[column] = "a\0" if column == "id" else json.dumps(["a\0"])
    path = table_file(ending, pl.DataFrame([row]))
    for read in (Gold.read, Run.read):
        with refused(path=path, line=2 if ending == "csv" else None, field=column):
            read(path)


@pytest.mark.parametrize(
    ("make", "given", "field"),
    [
        (Gold.of, {"q\0": {"a": 1}}, "query_id"),
        (Gold.of, {"q": {"a\0": 1}}, "item_id"),
        (Gold.of, {"q": ["a\0"]}, "item_id"),
        (Run.of, {"q\0": {"a": 1}}, "query_id"),
        (Run.of, {"q": {"a\0": 1}}, "item_id"),
        (Run.of, {"q": ["a", "a\0"]}, "item_id"),
        (Run.of, {"q": [("a\0", 1)]}, "results"),
        (Gold.of, [{"query_id": "q\0", "relevant": ["a"]}], "query_id"),
        (Gold.of, [{"query_id": "q", "relevant": ["a\0"]}], "relevant"),
        (Run.of, [{"query_id": "q\0", "results": []}], "query_id"),
        (Run.of, [{"query_id": "q", "results": ["a\0"]}], "results"),
    ],
)
def test_python_objects(make, given, field):
    with refused(path=None, field=field):
        make(given)


@pytest.mark.parametrize("ending", ["json", "jsonl"])
def test_nul_in_deep_fields_is_no_problem_of_the_search_for_ids(ending):
    """The search for ids with a NUL character is not recursive."""
    record = '{"query_id":"q","relevant":["a"],"x":' + "[" * 700 + '"\\u0000"' + "]" * 700 + "}"
    path = Path(f"x.{ending}")
    path.write_text(f"[{record}]" if ending == "json" else record)
    with refused(path=path, field="x"):
        Gold.read(path)
    path = Path("y.json")
    path.write_text('{"q": ' + "[" * 700 + '"\\u0000"' + "]" * 700 + "}")
    with refused(path=path, line=1):
        Run.read(path)


def test_texts_and_fields_may_contain_nul():
    gold = {"query_id": "q1", "query": "a\0b", "relevant": ["\\u0000"], "note": "a\0b"}
    Path("x.jsonl").write_text(json.dumps(gold) + "\n")
    read = Gold.read("x.jsonl")
    assert read.queries.row(0, named=True) == {"query_id": "q1", "text": "a\0b", "note": "a\0b"}
    assert read.judgments["item_id"].to_list() == ["\\u0000"]
    Path("y.json").write_text(json.dumps({"q1": {"\\u0000": 1}}))
    assert Gold.read("y.json").judgments["item_id"].to_list() == ["\\u0000"]


def test_longest_id_is_read():
    Path("x.run").write_text(f"q Q0 {LONGEST} 1 1.5 t\n")
    assert Run.read("x.run").results["item_id"].to_list() == [LONGEST]
    Path("x.json").write_text(json.dumps({LONGEST: list(range(40_000))}))
    assert Gold.read("x.json").query_ids.to_list() == [LONGEST]
    content = io.BytesIO()
    pl.DataFrame({"query_id": ["q"], "item_id": [LONGEST], "score": [1.5]}).write_parquet(content)
    Path("x.parquet").write_bytes(content.getvalue())
    assert Run.read("x.parquet").results["item_id"].to_list() == [LONGEST]
