"""Ragas rows: contexts have their ids, or else a hash of their text, with a warning."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pandas as pd
import polars as pl
import pytest

import karat
from karat.data import Gold, Run
from karat.errors import KaratWarning
from support.errors import refused

ROWS = [
    {
        "user_input": "How long does a refund take?",
        "retrieved_contexts": ["two weeks", "by post"],
        "reference_contexts": ["two weeks"],
        "reference": "Two weeks.",
    },
    {
        "user_input": "May I pay by invoice?",
        "retrieved_contexts": [],
        "reference_contexts": ["yes, from 50 EUR", "two weeks"],
        "reference": "Yes.",
    },
]
WITH_IDS = [
    {
        "query_id": "q1",
        "user_input": "How?",
        "retrieved_contexts": ["so", "thus"],
        "retrieved_context_ids": ["c2", 1],
        "reference_contexts": ["so"],
        "reference_context_ids": ["c2"],
    }
]
hashed = pytest.mark.filterwarnings("ignore::karat.errors.KaratWarning")


def text_id(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def put(folder: Path, rows: list[dict], name: str) -> Path:
    path = folder / name
    if name.endswith(".jsonl"):
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    elif name.endswith(".json"):
        path.write_text(json.dumps(rows), encoding="utf-8")
    elif name.endswith(".csv"):
        pd.DataFrame(rows).to_csv(path, index=False)  # lists as Python prints them, as Ragas does
    elif name.endswith(".parquet"):
        pl.DataFrame(rows).write_parquet(path)
    else:
        pl.DataFrame(rows).write_ipc(path)
    return path


FILES = ["rows.jsonl", "rows.json", "rows.csv", "rows.parquet", "rows.arrow"]


# Meaning


@hashed
def test_a_reference_context_is_judged_1_and_is_evidence():
    gold = Gold.of(ROWS)
    query = text_id("May I pay by invoice?")
    assert gold.judgments.filter(query_id=query).rows() == [
        (query, text_id("yes, from 50 EUR"), 1),
        (query, text_id("two weeks"), 1),
    ]
    assert gold.evidence.filter(query_id=query)["text"].to_list() == [
        "yes, from 50 EUR",
        "two weeks",
    ]


@hashed
def test_retrieved_contexts_are_ranked_as_listed_and_keep_their_text():
    run = Run.of(ROWS)
    query = text_id("How long does a refund take?")
    assert run.results.rows() == [
        (query, text_id("two weeks"), "two weeks"),
        (query, text_id("by post"), "by post"),
    ]
    assert run.empty == (text_id("May I pay by invoice?"),)


@hashed
def test_the_question_is_the_text_of_the_query_and_other_columns_are_its_fields():
    known = Gold.of(ROWS).queries.filter(text="How long does a refund take?")
    assert known["reference"].to_list() == ["Two weeks."]


@hashed
def test_the_response_belongs_to_the_run():
    rows = [
        {"user_input": "How long?", "retrieved_contexts": ["a"], "response": "Two weeks."},
        {"user_input": "By card?", "retrieved_contexts": ["b"]},
    ]
    assert Run.of(rows).responses.rows() == [(text_id("How long?"), "Two weeks.")]
    assert Run.of(rows[1:]).responses is None


def test_given_ids_take_precedence_over_hashes():
    gold, run = Gold.of(WITH_IDS), Run.of(WITH_IDS)
    assert gold.judgments.rows() == [("q1", "c2", 1)]
    assert run.results.rows() == [("q1", "c2", "so"), ("q1", "1", "thus")]


def test_the_id_column_identifies_queries_without_a_query_id():
    rows = [{"id": 7, "reference_context_ids": ["a"], "level": "easy"}]
    gold = Gold.of(rows)
    assert (gold.judgments.rows(), gold.fields) == ([("7", "a", 1)], ["level"])


def test_texts_are_not_hashed_where_other_rows_have_ids():
    rows = [
        {"id": "q1", "reference_contexts": ["x"], "reference_context_ids": ["a"]},
        {"id": "q2", "reference_contexts": ["y"]},
    ]
    gold = Gold.of(rows)
    assert gold.judgments.rows() == [("q1", "a", 1)]
    assert gold.query_ids_judged.to_list() == ["q1"]


def test_an_empty_list_of_references_is_an_empty_judgment():
    gold = Gold.of([{"id": "q1", "reference_context_ids": []}])
    assert gold.empty_judgments == ("q1",)


@pytest.mark.parametrize("kind", [Gold, Run])
def test_hashed_ids_are_reported_once(kind):
    with pytest.warns(KaratWarning, match=r"queries.*items") as caught:
        kind.of(ROWS)
    assert len(caught) == 1


def test_hashed_ids_of_items_alone_are_reported():
    with pytest.warns(KaratWarning, match="items") as caught:
        Gold.of([{"id": "q1", "reference_contexts": ["x"]}])
    assert "queries" not in str(caught[0].message)


@hashed
def test_texts_that_differ_in_a_space_are_different_items():
    gold = Gold.of([{"id": "q1", "reference_contexts": ["a b", "a  b", "a b"]}])
    assert gold.judgments.height == 2


@hashed
def test_a_field_called_text_does_not_hide_the_question():
    gold = Gold.of([{"user_input": "how?", "text": "x", "reference_contexts": ["a"]}])
    assert gold.queries.select("text", "text_field").rows() == [("how?", "x")]


# Sources


@hashed
@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("called", [None, "ragas"])
def test_rows_are_the_same_from_every_file(tmp_path, name, called):
    path = put(tmp_path, ROWS, name)
    assert Gold.read(path, format=called).judgments.equals(Gold.of(ROWS).judgments)
    assert Run.read(path, format=called).results.equals(Run.of(ROWS).results)


@hashed
@pytest.mark.parametrize("frame", [pl.DataFrame, pd.DataFrame])
def test_rows_are_the_same_from_a_table(frame):
    assert Gold.of(frame(ROWS)).judgments.equals(Gold.of(ROWS).judgments)


@hashed
def test_gold_and_run_of_the_same_rows_are_scored():
    scores = karat.evaluate(ROWS, ROWS, ["R@10", "RR"])
    assert (scores["R@10"], scores["RR"]) == (0.5, 0.5)


def test_native_lines_are_not_mistaken_for_ragas_rows(tmp_path):
    line = {"query_id": "q1", "relevant": ["a"], "reference_contexts": ["x"]}
    gold = Gold.read(put(tmp_path, [line | {"retrieved_contexts": "a field"}], "gold.jsonl"))
    assert gold.judgments.rows() == [("q1", "a", 1)]
    assert gold.evidence.rows() == [("q1", "x")]
    assert gold.fields == ["retrieved_contexts"]


def test_a_table_with_items_is_not_mistaken_for_ragas_rows():
    table = pl.DataFrame(
        {"query_id": ["q"], "item_id": ["a"], "grade": [1], "reference_contexts": ["x"]}
    )
    assert Gold.of(table).judgments.rows() == [("q", "a", 1)]


def test_a_repeated_question_is_refused_with_both_records():
    row = {"user_input": "how?", "reference_contexts": ["a"]}
    with refused(field="user_input") as caught:
        Gold.of([row, {"user_input": "why?", "reference_contexts": ["a"]}, row])
    assert "record 3" in caught.value.problem
    assert "record 1" in caught.value.problem
    assert "query_id" in caught.value.hint


def test_a_lone_surrogate_is_refused():
    with refused(field="user_input") as caught:
        Gold.of([{"user_input": "\ud800", "reference_contexts": ["a"]}])
    assert r"'\ud800'" in caught.value.problem


# Writing


def rows(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_gold_is_written_as_ids_and_texts(tmp_path):
    Gold.of(WITH_IDS).write(tmp_path / "rows.jsonl", format="ragas")
    assert rows(tmp_path / "rows.jsonl") == [
        {
            "query_id": "q1",
            "user_input": "How?",
            "reference_contexts": ["so"],
            "reference_context_ids": ["c2"],
        }
    ]


def test_a_run_is_written_as_ids_and_texts(tmp_path):
    Run.of(WITH_IDS).write(tmp_path / "rows.jsonl", format="ragas")
    assert rows(tmp_path / "rows.jsonl") == [
        {
            "query_id": "q1",
            "retrieved_contexts": ["so", "thus"],
            "retrieved_context_ids": ["c2", "1"],
        }
    ]


def test_a_run_of_texts_alone_is_written_as_texts(tmp_path):
    run = Run.of(
        [{"query_id": "q1", "results": [{"text": "so"}]}, {"query_id": "q2", "results": []}]
    )
    run.write(tmp_path / "rows.jsonl", format="ragas")
    assert rows(tmp_path / "rows.jsonl") == [
        {"query_id": "q1", "retrieved_contexts": ["so"]},
        {"query_id": "q2", "retrieved_contexts": []},
    ]


def test_a_run_of_places_alone_is_refused(tmp_path):
    run = Run.of([{"query_id": "q1", "results": [{"doc_id": "d", "start": 0, "end": 4}]}])
    with refused(field="item_id"):
        run.write(tmp_path / "rows.jsonl", format="ragas")
    assert list(tmp_path.iterdir()) == []


def test_gold_returns_from_ragas_rows(tmp_path):
    line = {
        "query_id": "q1",
        "query": "how?",
        "category": "x",
        "relevant": ["a"],
        "evidence": ["e"],
    }
    gold = Gold.of([line, {"query_id": "q2", "relevant": []}, {"query_id": "q3", "query": "why?"}])
    gold.write(tmp_path / "rows.jsonl", format="ragas")
    back = Gold.read(tmp_path / "rows.jsonl")
    assert back.queries.equals(gold.queries)
    assert back.judgments.equals(gold.judgments)
    assert back.evidence.equals(gold.evidence)
    assert back.empty_judgments == gold.empty_judgments


@pytest.mark.parametrize(
    ("line", "lost"),
    [
        ({"relevant": {"a": 2, "b": 1}}, r"\b1 grade\b"),
        ({"relevant": {"a": 1, "b": 0, "c": -1}}, r"\b2 judgments\b"),
        ({"relevant": ["a"], "spans": [{"doc_id": "d", "start": 0, "end": 1}]}, "spans"),
        ({"relevant": ["a"], "retrieved_contexts": "x"}, "retrieved_contexts"),
    ],
)
def test_lost_parts_of_gold_are_reported(tmp_path, line, lost):
    with pytest.warns(KaratWarning, match=lost):
        Gold.of([{"query_id": "q1", **line}]).write(tmp_path / "x.jsonl", format="ragas")


@pytest.mark.parametrize(
    ("line", "lost"),
    [
        ({"results": [{"id": "a", "score": 0.5}]}, "scores"),
        ({"results": [{"id": "a", "doc_id": "d"}]}, "doc_id"),
        ({"results": ["a"], "latency_ms": {"total": 1}}, "timings"),
        ({"error": {"type": "Timeout"}}, "errors.* 1 query"),
        ({"results": ["a", {"id": "b", "text": "x"}]}, r"texts.*\b1 list\b"),
    ],
)
def test_lost_parts_of_a_run_are_reported(tmp_path, line, lost):
    with pytest.warns(KaratWarning, match=lost):
        Run.of([{"query_id": "q1", **line}]).write(tmp_path / "x.jsonl", format="ragas")
