"""Saved scores are checked when they are read: nothing that no evaluation could have given."""

import json
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import karat
from karat.errors import InputError
from support.errors import refused

GOLD = {"q1": {"a": 3}, "q2": {"b": 1}, "q3": ["z"]}
RUN = {"q1": ["a"], "q2": ["x", "b"], "q3": ["y"]}


@pytest.fixture
def saved(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    scores = karat.evaluate(GOLD, RUN, ["RR", "nDCG@10", "P@2"])
    scores.write("s.parquet")
    scores.write("s.json")
    return scores


def rewrite(frame=lambda frame: frame, facts=lambda facts: facts):
    """Write the Parquet file again with other rows or another header."""
    told = json.loads(pl.read_parquet_metadata("s.parquet")["karat"])
    metadata = {"karat": json.dumps(facts(told))}
    frame(pl.read_parquet("s.parquet")).write_parquet("bad.parquet", metadata=metadata)


@pytest.mark.parametrize("ending", ["parquet", "json"])
def test_scores_come_back_as_they_were(saved, ending):
    assert karat.Scores.read(f"s.{ending}").per_query.equals(saved.per_query)


@pytest.mark.parametrize(
    ("frame", "field"),
    [
        (lambda f: pl.concat([f, f]), "query_id"),
        (lambda f: f.with_columns(query_id=pl.lit(None, pl.String)), "query_id"),
        (lambda f: f.with_columns(RR=pl.lit(float("nan"))), "RR"),
        (lambda f: f.with_columns(RR=pl.lit(float("inf"))), "RR"),
        (lambda f: f.with_columns(RR=pl.lit(7.0)), "RR"),
        (lambda f: f.with_columns(RR=pl.lit(-0.5)), "RR"),
        (lambda f: f.with_columns(RR=pl.lit("high")), "RR"),
        (lambda f: f.drop("RR"), None),
        (lambda f: f.head(2), "counts"),
        (lambda f: f.with_columns(RR=pl.Series([None, 0.5, 0.0])), "RR"),
    ],
)
def test_rows_that_cannot_be_scores_are_refused(saved, frame, field):
    rewrite(frame)
    with pytest.raises(InputError) as error:
        karat.Scores.read("bad.parquet")
    assert error.value.path.endswith("bad.parquet")
    assert error.value.field == field


def test_json_without_one_value_is_refused(saved):
    document = json.loads(Path("s.json").read_text())
    del document["runs"][0]["per_query"][0]["RR"]
    Path("bad.json").write_text(json.dumps(document))
    with refused(path="bad.json", field="RR"):
        karat.Scores.read("bad.json")


def test_json_with_two_runs_of_one_name_is_refused(saved):
    document = json.loads(Path("s.json").read_text())
    document["runs"] *= 2
    Path("bad.json").write_text(json.dumps(document))
    with refused(path="bad.json", field="runs"):
        karat.Scores.read("bad.json")


@pytest.mark.parametrize(
    "facts",
    [
        lambda f: {key: value for key, value in f.items() if key != "level"},
        lambda f: f | {"level": "page"},
        lambda f: f | {"conventions": {"missing": "maybe"}},
        lambda f: f | {"measures": ["nonsense"]},
        lambda f: f | {"settings": {"top_k": 0}},
        lambda f: f | {"settings": {"depth": 3}},
        lambda f: f | {"counts": {"run": {}}},
        lambda f: f | {"counts": {"run": f["counts"]["run"] | {"failed": -1}}},
        lambda f: [],
    ],
)
def test_a_header_that_karat_did_not_write_is_refused(saved, facts):
    rewrite(facts=facts)
    with pytest.raises(InputError) as error:
        karat.Scores.read("bad.parquet")
    assert error.value.path.endswith("bad.parquet")


def test_a_gate_on_damaged_baseline_scores_exits_with_2_and_not_1(command, saved):
    rewrite(lambda f: pl.concat([f, f]))
    karat.Gold.of(GOLD).write("gold.jsonl")
    karat.Run.of(RUN).write("run.jsonl")
    words = ["gate", "gold.jsonl", "run.jsonl", "--require", "RR max_drop 0.1"]
    assert command(*words, "--baseline", "bad.parquet")[:2] == (2, "")


@given(st.data())
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_damaged_files_are_read_or_refused_and_nothing_else(saved, tmp_path, data):
    ending = data.draw(st.sampled_from(["json"]))
    content = bytearray((tmp_path / f"s.{ending}").read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(content) - 1))
        content[at : at + data.draw(st.integers(0, 5))] = data.draw(st.binary(max_size=4))
    (tmp_path / f"bad.{ending}").write_bytes(bytes(content))
    try:
        scores = karat.Scores.read(tmp_path / f"bad.{ending}")
    except InputError:
        return
    values = scores.per_query.drop("query_id")
    assert all(0 <= value <= 1 for row in values.rows() for value in row if value is not None)
