"""Values that are too long or nested too deep, and fields of queries that tables cannot hold."""

import json
from pathlib import Path

import polars as pl
import pytest

from karat import Gold, Run
from karat.config import Config
from karat.data.queries import read_queries
from support.errors import refused

DIGITS = "9" * 5_000
DEEP = "[" * 100_000


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def written(path: str, content: str) -> str:
    Path(path).write_text(content)
    return path


@pytest.mark.parametrize(
    ("read", "name", "content", "line"),
    [
        (Gold.read, "x.json", f'{{"q1": {{"a": 1}},\n"q2": {{"a": {DIGITS}}}}}', 2),
        (Run.read, "x.json", f'{{"q1": {{"a": 1}},\n"q2": {{"a": {DIGITS}}}}}', 2),
        (Gold.read, "x.json", f'{{"q1": {{"[[[": 1}},\n"q2":\n {DEEP}', 3),
        (Gold.read, "x.jsonl", f'{{"query_id": 1, "relevant": []}}\n{{"query_id": {DIGITS}}}', 2),
        (Gold.read, "x.jsonl", f'{{"query_id": 1, "relevant": []}}\n{{"query_id": {DEEP}', 2),
        (Run.read, "x.jsonl", f'{{"query_id": 1, "results": []}}\n{{"x": {DEEP}', 2),
        (read_queries, "x.jsonl", f'{{"query_id": 1, "text": "a", "x": {DEEP}', 1),
        (Config.read, "karat.toml", f'[gate]\n"RR" = {{ min = {DIGITS} }}', 2),
        (Config.read, "karat.toml", f"\n\na = {DEEP}", 3),
    ],
)
def test_values_that_python_cannot_parse_are_refused(read, name, content, line):
    with refused(path=name, line=line):
        read(written(name, content))


def nested(depth: int) -> list:
    value: list = []
    for _ in range(depth - 1):
        value = [value]
    return value


def test_fields_are_nested_at_most_32_deep():
    gold = {"query_id": "q1", "relevant": ["a"], "x": nested(32)}
    assert Gold.read(written("x.jsonl", json.dumps(gold))).queries["x"].to_list() == [nested(32)]


@pytest.mark.parametrize("value", [nested(33), {"y": nested(32)}, nested(900)])
def test_fields_that_are_nested_deeper_are_refused(value):
    gold = {"query_id": "q1", "relevant": ["a"], "x": value}
    with refused(path="x.jsonl", line=2, field="x"):
        Gold.read(written("x.jsonl", f"\n{json.dumps(gold)}\n"))
    with refused(field="x"):
        Gold.of([gold])
    with refused(path="q.jsonl", line=1, field="x"):
        read_queries(written("q.jsonl", json.dumps({"query_id": "q1", "text": "t", "x": value})))
    with refused(field="x"):
        Gold.of([{"user_input": "t", "reference_contexts": ["c"], "x": value}])
    Path("beir/qrels").mkdir(parents=True)
    written("beir/qrels/test.tsv", "query-id\tcorpus-id\tscore\nq1\ta\t1\n")
    query = {"_id": "q1", "text": "t", "metadata": {"x": value}}
    queries = written("beir/queries.jsonl", json.dumps(query))
    with refused(path=Path(queries).absolute(), line=1, field="x"):
        Gold.read("beir")


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        ([1, [2]], "[1,[2]]"),
        ([1, {"a": 1}], '[1,{"a":1}]'),
        (2**200, str(2**200)),
        ([1, 2**200], f"[1,{2**200}]"),
        ({"a": {"b": [2**200]}}, f'{{"a":{{"b":[{2**200}]}}}}'),
        ([1, 2.5], [1.0, 2.5]),
        ({"a": {}}, {"a": {}}),
        ([None, 1], [None, 1]),
    ],
)
def test_field_that_a_column_cannot_hold_is_kept_as_text(value, kept):
    gold = Gold.of([{"query_id": "q1", "relevant": ["a"], "x": value}])
    assert gold.queries["x"].to_list() == [kept]
    for ending in ("jsonl", "arrow"):
        gold.write(f"x.{ending}")
        assert Gold.read(f"x.{ending}").queries["x"].to_list() == [kept]


@pytest.mark.parametrize("value", [{}, {"a": {}}, [{"a": [{}]}]])
@pytest.mark.parametrize("ending", ["parquet", "csv", "tsv"])
def test_empty_objects_are_refused_where_a_table_cannot_hold_them(value, ending):
    gold = Gold.of([{"query_id": "q1", "relevant": ["a"], "x": value}])
    with refused(field="x"):
        gold.write(f"x.{ending}")
    assert not Path(f"x.{ending}").exists()


def test_saved_scores_have_empty_objects_as_text(command):
    lines = [
        {"query_id": q, "relevant": ["a"], "x": {"d": {}}} for q in ("q1", "q2", "q3", "q4", "q5")
    ]
    written("gold.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    written("a.run", "".join(f"{line['query_id']} Q0 a 1 1 t\n" for line in lines))
    code, _, err = command("eval", "gold.jsonl", "a.run", "-m", "RR", "-o", "scores.parquet")
    assert code == 0, err
    assert pl.read_parquet("scores.parquet")["field:x"].to_list() == ['{"d":{}}'] * 5
    written("worse.run", "".join(f"{line['query_id']} Q0 b 1 1 t\n" for line in lines))
    code, out, err = command(
        *("gate", "gold.jsonl", "worse.run", "--require", "RR max_drop 0.1"),
        *("--baseline", "scores.parquet"),
    )
    assert (code, "FAILED" in out) == (1, True), err


def test_deep_body_is_refused(command):
    written("queries.jsonl", '{"query_id": "q1", "text": "a"}\n')
    code, _, err = command(
        "run", "queries.jsonl", "-r", "http://127.0.0.1:1/", "-o", "x.jsonl", "--body", DEEP
    )
    assert code == 2
    assert err.startswith("error: --body: ")
