"""Which column or key is what, by common names; what looks like a mistake is not taken silently."""

import warnings

import polars as pl
import pytest

import karat
from karat.errors import InputError, KaratWarning

QUESTIONS = {"id": ["1", "2"], "query": ["pay?", "where?"]}


def test_an_id_next_to_a_question_is_the_query_id_and_topic_a_field(tmp_path):
    path = tmp_path / "gold.csv"
    path.write_text("id,query,evidence,topic\n1,pay?,by card,billing\n2,where?,here,billing\n")
    gold = karat.Gold.read(path)
    assert gold.query_ids.to_list() == ["1", "2"]
    assert gold.fields == ["topic"]
    assert gold.queries["text"].to_list() == ["pay?", "where?"]


@pytest.mark.parametrize("name", ["query", "question", "user_input", "prompt"])
def test_every_name_of_the_question_is_known(name):
    table = pl.DataFrame({"id": ["1"], name: ["pay?"], "evidence": ["x"], "topic": ["t"]})
    assert karat.Gold.of(table).queries.rows() == [("1", "pay?", "t")]


def test_topic_is_the_query_id_where_nothing_else_is():
    table = pl.DataFrame({"topic": ["1", "2"], "docno": ["a", "b"], "rel": [1, 0]})
    assert karat.Gold.of(table).judgments.rows() == [("1", "a", 1), ("2", "b", 0)]
    run = pl.DataFrame({"topic": ["1"], "docno": ["a"], "score": [0.5]})
    assert karat.Run.of(run).query_ids.to_list() == ["1"]


def test_an_id_next_to_a_question_is_not_an_item(tmp_path):
    table = pl.DataFrame(QUESTIONS | {"docno": ["a", "b"], "rel": [1, 0]})
    assert karat.Gold.of(table).judgments.rows() == [("1", "a", 1), ("2", "b", 0)]
    with pytest.raises(InputError) as error:
        karat.Gold.of(pl.DataFrame(QUESTIONS | {"rel": [1, 0]}))
    assert error.value.field == "item_id"


def test_different_questions_under_one_id_are_an_error(tmp_path):
    path = tmp_path / "gold.csv"
    path.write_text("topic,question,evidence\nbilling,pay?,by card\nbilling,where?,here\n")
    with pytest.raises(InputError) as error:
        karat.Gold.read(path)
    assert (error.value.path, error.value.field) == (str(path), "question")
    assert "'billing'" in str(error.value)


@pytest.mark.parametrize(
    "key", ["relevant", "relevant_ids", "expected", "expected_ids", "judgments"]
)
def test_judgments_by_any_name(key):
    gold = karat.Gold.of([{"query_id": "q", key: ["a"]}])
    assert gold.judgments.rows() == [("q", "a", 1)]
    assert gold.fields == []


@pytest.mark.parametrize("key", ["evidence", "ground_truth_contexts"])
def test_evidence_by_any_name(key):
    assert karat.Gold.of([{"query_id": "q", key: ["a"]}]).evidence.rows() == [("q", "a")]


def test_ids_and_questions_by_any_name():
    gold = karat.Gold.of([{"id": "q", "question": "pay?", "relevant": ["a"]}])
    assert gold.queries.rows() == [("q", "pay?")]
    gold = karat.Gold.of([{"qid": "q", "prompt": "pay?", "relevant": ["a"]}])
    assert gold.queries.rows() == [("q", "pay?")]


def test_two_names_of_the_same_thing_are_refused():
    with pytest.raises(InputError) as error:
        karat.Gold.of([{"query_id": "q", "relevant": ["a"], "expected": ["b"]}])
    assert error.value.field == "expected"


@pytest.mark.parametrize("key", ["relevent", "evidences", "Relevant_id", "span"])
def test_a_key_that_looks_misspelled_is_a_warning(key):
    with pytest.warns(KaratWarning, match=repr(key)):
        gold = karat.Gold.of([{"query_id": "q", key: ["a"]}, {"query_id": "r", "relevant": ["a"]}])
    assert gold.fields == [key]


@pytest.mark.parametrize(
    "key", ["category", "difficulty", "query_type", "answer", "topic", "title"]
)
def test_usual_fields_are_no_misspellings(key):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        karat.Gold.of([{"query_id": "q", key: "x", "relevant": ["a"]}])


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("query_id,item_id,score\rq4,d5,1.0\r\nq4,d2,1.0\r\n", 1),
        ("query_id,item_id,score\rq4,d5,1.0\r", 1),
        ("query_id,item_id\r\nq4,d5\r\nq4,d6\r\r\n", 3),
        ('query_id,item_id\r\n"q\r4",d5\r\nq4,d\r6\r\n', 3),
    ],
)
def test_a_lone_carriage_return_is_refused(tmp_path, content, line):
    path = tmp_path / "run.csv"
    path.write_bytes(content.encode())
    with pytest.raises(InputError) as error:
        karat.Run.read(path)
    assert (error.value.path, error.value.line) == (str(path), line)


def test_a_carriage_return_inside_quotes_is_data(tmp_path):
    path = tmp_path / "run.csv"
    path.write_bytes(b'query_id,item_id\r\nq4,"d\r5"\r\n')
    assert karat.Run.read(path).results["item_id"].to_list() == ["d\r5"]
