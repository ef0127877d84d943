"""Which column or key is what, by common names; what looks like a mistake is not taken silently."""

import hashlib
import json
import warnings

import numpy as np
import polars as pl
import pytest

import karat
from karat.data.queries import read_queries
from karat.errors import SWAPPED, InputError, KaratWarning
from support.commands import check_refused
from support.errors import refused

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


@pytest.mark.parametrize("gold_columns", [{"evidence": ["x", "y"]}, {"relevant": ["a", "b"]}, {}])
@pytest.mark.parametrize("topics", [["account", "customs"], ["shipping", "shipping"]])
@pytest.mark.parametrize("text", ["query", "question", "user_input", "prompt"])
def test_topic_next_to_a_question_is_a_field(text, topics, gold_columns):
    table = pl.DataFrame({text: ["pay?", "where?"]} | gold_columns | {"topic": topics})
    with pytest.warns(KaratWarning, match="--column query_id=COLUMN"):
        queries = read_queries(table)
    assert queries["topic"].to_list() == [
        dict(zip(["pay?", "where?"], topics, strict=True))[text] for text in queries["text"]
    ]
    assert set(queries["query_id"]).isdisjoint(topics)


def test_repeated_id_of_a_query_names_the_column_that_was_read_as_the_id(tmp_path):
    path = tmp_path / "queries.csv"
    path.write_text("qid,question\n1,pay?\n1,where?\n")
    with refused(path=path, line=3, field="qid") as error:
        read_queries(path)
    assert "--column query_id=COLUMN" in error.value.hint
    with refused(field="qid") as error:
        karat.Gold.of({"q": ["a"]}, queries=pl.DataFrame({"qid": ["q", "q"]}))
    assert "column 'qid'" in error.value.problem
    with refused(field="query_id") as error:
        karat.Gold.of({"q": ["a"]}, queries=pl.DataFrame({"query_id": ["q", "q"]}))
    assert "column" not in error.value.problem


def test_repeated_id_next_to_lists_suggests_another_column(tmp_path):
    path = tmp_path / "gold.csv"
    path.write_text("qid,relevant\n1,a\n1,b\n")
    with refused(path=path, line=3, field="qid") as error:
        karat.Gold.read(path)
    assert "--column query_id=COLUMN" in error.value.hint


def test_repeated_question_without_an_id_is_an_error(tmp_path):
    path = tmp_path / "queries.csv"
    path.write_text("question,topic\npay?,a\npay?,b\n")
    with pytest.warns(KaratWarning, match="hash"), refused(path=path, line=3):
        read_queries(path)


def test_an_id_next_to_a_question_is_not_an_item(tmp_path):
    table = pl.DataFrame(QUESTIONS | {"docno": ["a", "b"], "rel": [1, 0]})
    assert karat.Gold.of(table).judgments.rows() == [("1", "a", 1), ("2", "b", 0)]
    with pytest.raises(InputError) as error:
        karat.Gold.of(pl.DataFrame(QUESTIONS | {"rel": [1, 0]}))
    assert error.value.field == "item_id"


def test_different_questions_under_one_id_are_an_error(tmp_path):
    path = tmp_path / "gold.csv"
    path.write_text("qid,question,evidence\nbilling,pay?,by card\nbilling,where?,here\n")
    with pytest.raises(InputError) as error:
        karat.Gold.read(path)
    assert (error.value.path, error.value.field) == (str(path), "question")
    assert "'billing'" in error.value.problem
    assert "'qid'" in error.value.problem
    assert "--column query_id=COLUMN" in error.value.hint


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


def as_file(lines, folder):
    path = folder / "run.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.mark.parametrize("is_file", [True, False])
@pytest.mark.parametrize(
    ("key", "value"),
    [("candiates", ["a"]), ("Candidates", ["a"]), ("call", [{"model": "m"}]), ("latency", 3)],
)
def test_a_key_of_a_run_that_looks_misspelled_is_a_warning(key, value, is_file, tmp_path):
    lines = [{"query_id": "q", "results": ["a"]}, {"query_id": "r", "results": ["a"], key: value}]
    with pytest.warns(KaratWarning, match=repr(key)):
        karat.Run.open(as_file(lines, tmp_path) if is_file else lines)


@pytest.mark.parametrize("is_file", [True, False])
@pytest.mark.parametrize("key", ["resutls", "retreived_ids", "Results"])
def test_misspelled_results_are_named_by_the_error(key, is_file, tmp_path):
    lines = [{"query_id": "q", key: ["a"]}]
    with pytest.raises(InputError) as error:
        karat.Run.open(as_file(lines, tmp_path) if is_file else lines)
    assert error.value.field == key


@pytest.mark.parametrize("is_file", [True, False])
@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("result", ["a"]),  # the line has results
        ("num_candidates", 50),
        ("user_id", "x"),
        ("relevant", ["a"]),
        ("category", "billing"),
    ],
)
def test_other_keys_of_a_run_are_no_misspellings(key, value, is_file, tmp_path):
    lines = [{"query_id": "q", "results": ["a"], key: value}]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        karat.Run.open(as_file(lines, tmp_path) if is_file else lines)


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


@pytest.mark.parametrize("key", ["results", "retrieved", "retrieved_ids"])
def test_results_by_any_name(key):
    assert karat.Run.of([{"qid": "q", key: ["a", 2]}]).results.rows() == [("q", "a"), ("q", "2")]


@pytest.mark.parametrize("key", ["item_id", "chunk_id", "docId", "docno", "corpus-id", "doc_id"])
def test_ids_of_results_and_judgments_by_any_name(tmp_path, key):
    path = tmp_path / "run.jsonl"
    path.write_text(json.dumps({"query_id": "q", "results": [{key: "a", "score": 1}]}) + "\n")
    assert karat.Run.read(path).results["item_id"].to_list() == ["a"]
    gold = karat.Gold.of([{"query_id": "q", "relevant": [{key: "a", "grade": 2}, "b"]}])
    assert gold.judgments.rows() == [("q", "a", 2), ("q", "b", 1)]


def test_an_own_id_wins_over_other_names_of_it():
    run = karat.Run.of([{"query_id": "q", "results": [{"id": "a", "chunk_id": "b"}]}])
    assert run.results["item_id"].to_list() == ["a"]


@pytest.mark.parametrize("evidence", ["one", ["one"], [{"text": "one"}], {"text": "one"}])
def test_evidence_is_a_text_or_a_list_of_texts(evidence):
    gold = karat.Gold.of([{"query_id": "q", "evidence": evidence}])
    assert gold.evidence.rows() == [("q", "one")]


def test_a_latency_that_is_a_number_is_the_total(tmp_path):
    path = tmp_path / "run.jsonl"
    path.write_text('{"query_id":"q","results":["a"],"latency_ms":12.5}\n')
    assert karat.Run.read(path).timings.rows() == [("q", "total", 12.5)]


@pytest.mark.parametrize(
    ("record", "field"),
    [
        ({"query_id": "q", "expected": [1.5]}, "expected[0]"),
        ({"qid": 1.5, "relevant": ["a"]}, "qid"),
        ({"query_id": "q", "relevant": [{"chunk_id": 1.5}]}, "relevant[0].chunk_id"),
        ({"query_id": "q", "expected": [{"rel": 1}]}, "expected[0]"),
        ({"query_id": "q", "ground_truth_contexts": [1]}, "ground_truth_contexts[0]"),
    ],
)
def test_an_error_of_gold_names_the_key_that_the_file_has(record, field):
    with refused(field=field):
        karat.Gold.of([record])


@pytest.mark.parametrize(
    ("line", "field"),
    [
        ({"query_id": "q", "retrieved": [1.5]}, "retrieved[0]"),
        ({"qid": 1.5, "results": ["a"]}, "qid"),
        ({"query_id": "q", "retrieved": [{"chunk_id": 1.5}]}, "retrieved[0].chunk_id"),
    ],
)
def test_an_error_of_a_run_names_the_key_that_the_file_has(tmp_path, line, field):
    path = tmp_path / "run.jsonl"
    path.write_text('{"query_id":"p","results":["a"]}\n' + json.dumps(line) + "\n")
    with refused(path=path, line=2, field=field):
        karat.Run.read(path)


OLD_RAGAS = {
    "question": ["pay?", "where?"],
    "answer": ["card", "here"],
    "contexts": [["by card", "x"], ["over there"]],
    "ground_truth": ["card", "there"],
}


def old_ragas(path):
    table = pl.DataFrame(OLD_RAGAS)
    if path.suffix == ".jsonl":
        table.write_ndjson(path)
    elif path.suffix == ".parquet":
        table.write_parquet(path)
    else:
        lists = pl.Series("contexts", [json.dumps(list(c)) for c in OLD_RAGAS["contexts"]])
        table.with_columns(lists).write_csv(path)
    return path


@pytest.mark.parametrize("name", ["rows.csv", "rows.jsonl", "rows.parquet"])
@pytest.mark.filterwarnings("ignore::karat.errors.KaratWarning")
def test_rows_of_old_ragas_are_a_run_and_no_gold(tmp_path, name):
    path = old_ragas(tmp_path / name)
    run = karat.Run.read(path)
    assert run.results["text"].to_list() == ["by card", "x", "over there"]
    with refused(path=path, field="reference_contexts") as error:
        karat.Gold.read(path)
    assert "question, answer, contexts, ground_truth" in error.value.problem
    assert "--column evidence=" in error.value.hint
    gold = karat.Gold.read(path, columns={"evidence": "ground_truth"})
    assert gold.evidence["text"].to_list() == ["card", "there"]
    scores = karat.evaluate(gold, run, ["evidence.recall@1"])
    assert scores["evidence.recall@1"] == 1.0
    run = karat.Run.read(path, columns={"evidence": "ground_truth"})
    assert karat.evaluate(gold, run, ["evidence.recall@1"])["evidence.recall@1"] == 1.0


@pytest.mark.parametrize("name", ["ground_truth", "answer", "response", "reference"])
def test_an_answer_is_a_field_and_never_evidence(name):
    gold = karat.Gold.of([{"query_id": "q", name: "x", "relevant": ["a"]}])
    assert (gold.fields, gold.evidence) == ([name], None)
    with refused() as error:
        karat.Gold.of(pl.DataFrame({"id": ["1"], "question": ["a"], name: ["x"], "quote": ["y"]}))
    assert "--column evidence=quote" in error.value.hint


def test_a_table_without_gold_lists_its_columns_and_shows_the_mapping(tmp_path):
    path = tmp_path / "gold.csv"
    path.write_text("id,question,answer_quote\n1,pay?,by card\n")
    with refused(path=path) as error:
        karat.Gold.read(path)
    assert "id, question, answer_quote" in error.value.problem
    assert "--column evidence=answer_quote" in error.value.hint
    gold = karat.Gold.read(path, columns={"evidence": "answer_quote"})
    assert gold.evidence.rows() == [("1", "by card")]


@pytest.mark.parametrize("name", ["relevant", "relevant_ids", "expected", "expected_ids"])
def test_ids_in_a_cell_are_separated_by_semicolons_or_a_json_list(tmp_path, name):
    path = tmp_path / "gold.csv"
    path.write_text(f'id,question,{name}\n1,a?,c1; c2;\n2,b?,"[""c;3"", 4]"\n3,c?,\n')
    gold = karat.Gold.read(path)
    assert gold.judgments.rows() == [
        ("1", "c1", 1),
        ("1", "c2", 1),
        ("2", "c;3", 1),
        ("2", "4", 1),
    ]
    assert gold.queries["text"].to_list() == ["a?", "b?", "c?"]


def test_grades_in_a_cell():
    table = pl.DataFrame({"id": ["1", "2"], "query": ["a", "b"], "relevant": ['{"x": 2}', "y"]})
    assert karat.Gold.of(table).judgments.rows() == [("1", "x", 2), ("2", "y", 1)]


@pytest.mark.parametrize("name", ["results", "retrieved", "retrieved_ids"])
def test_retrieved_ids_in_a_cell_and_an_empty_one(tmp_path, name):
    path = tmp_path / "run.tsv"
    path.write_text(f"qid\t{name}\n1\tc1;c2\n2\t\n")
    run = karat.Run.read(path)
    assert run.results.rows() == [("1", "c1"), ("1", "c2")]
    assert run.empty == ("2",)


def test_lists_in_a_table_in_memory():
    gold = karat.Gold.of(pl.DataFrame({"qid": [1], "relevant": [["a", "b"]], "topic": ["t"]}))
    assert (gold.judgments.rows(), gold.fields) == ([("1", "a", 1), ("1", "b", 1)], ["topic"])
    gold = karat.Gold.of(pl.DataFrame({"qid": [1], "evidence": [["a", "b"]]}))
    assert gold.evidence.rows() == [("1", "a"), ("1", "b")]
    run = karat.Run.of(pl.DataFrame({"qid": [1], "retrieved": [["a", "b"]]}))
    assert run.results.rows() == [("1", "a"), ("1", "b")]


def test_a_semicolon_in_one_id_per_row_or_in_a_text_is_kept():
    table = pl.DataFrame({"query_id": ["1"], "item_id": ["a;b"], "grade": [1]})
    assert karat.Gold.of(table).judgments.rows() == [("1", "a;b", 1)]
    assert karat.Run.of(table.rename({"grade": "rank"})).results["item_id"].to_list() == ["a;b"]
    table = pl.DataFrame({"query_id": ["1"], "evidence": ["a;b"]})
    assert karat.Gold.of(table).evidence.rows() == [("1", "a;b")]
    assert karat.Gold.of([{"query_id": "1", "relevant": ["a;b"]}]).judgments.rows() == [
        ("1", "a;b", 1)
    ]


def test_relevant_ids_next_to_evidence_are_read_too(tmp_path):
    path = tmp_path / "gold.csv"
    path.write_text("id,question,relevant,evidence\n1,a?,c1;c2,by card; or cash\n")
    gold = karat.Gold.read(path)
    assert gold.judgments.rows() == [("1", "c1", 1), ("1", "c2", 1)]
    assert gold.evidence.rows() == [("1", "by card; or cash")]


@pytest.mark.filterwarnings("ignore::karat.errors.KaratWarning")
def test_queries_without_ids_agree_in_gold_and_run_of_every_shape(tmp_path):
    questions = ["pay?", "wo? ß"]
    golds = [
        karat.Gold.of([{"question": q, "relevant": ["a"]} for q in questions]),
        karat.Gold.of([{"user_input": q, "reference_contexts": ["a"]} for q in questions]),
        karat.Gold.of(pl.DataFrame({"question": questions, "evidence": ["a", "a"]})),
        karat.Gold.of(pl.DataFrame({"prompt": questions, "docno": ["a", "a"], "rel": [1, 1]})),
        karat.Gold.of(pl.DataFrame({"query": questions, "relevant": ["a;b", "c"]})),
        karat.Gold.of([(q, "a") for q in questions]),
    ]
    runs = [
        karat.Run.of([{"query": q, "results": ["a"]} for q in questions]),
        karat.Run.of([{"question": q, "contexts": ["a"]} for q in questions]),
        karat.Run.of(pl.DataFrame({"question": questions, "docno": ["a", "a"], "rank": [1, 1]})),
        karat.Run.of(pl.DataFrame({"question": questions, "retrieved": ["a", "b"]})),
    ]
    expected = sorted(hashlib.blake2b(q.encode(), digest_size=8).hexdigest() for q in questions)
    for made in [*golds, *runs]:
        assert sorted(made.query_ids) == expected
    (tmp_path / "questions.txt").write_text("\n".join(questions))
    assert read_queries(tmp_path / "questions.txt")["query_id"].to_list() == expected


def test_items_without_ids_agree_in_gold_and_run():
    with pytest.warns(KaratWarning, match="hash"):
        gold = karat.Gold.of([{"query_id": "q", "relevant": [{"text": "by card", "grade": 2}]}])
    with pytest.warns(KaratWarning, match="hash"):
        run = karat.Run.of([{"query_id": "q", "contexts": ["no", "by card"]}])
    assert karat.evaluate(gold, run, ["RR"])["RR"] == 0.5


def test_pairs_of_a_question_and_an_id_are_gold():
    gold = karat.Gold.of([("pay?", "a"), ["pay?", 2], ("where?", "c")])
    assert gold.queries["text"].sort().to_list() == ["pay?", "where?"]
    assert sorted(gold.judgments["item_id"]) == ["2", "a", "c"]
    with refused():
        karat.Gold.of([("pay?", "a"), ("", "b")])


def test_a_text_file_is_a_list_of_questions_and_never_gold(tmp_path):
    path = tmp_path / "questions.txt"
    path.write_text("how do I pay by card?\n\nwhere is my parcel\n")
    assert sorted(read_queries(path)["text"]) == ["how do I pay by card?", "where is my parcel"]
    with refused(path=path):
        karat.Gold.read(path)
    path.write_text("how do I pay?\nhow do I pay?\n")
    with refused(path=path, line=2):
        read_queries(path)


@pytest.mark.parametrize("line", ["q1 0 a", "q1 0 a 1 2"])
def test_damaged_qrels_are_not_questions(tmp_path, line):
    path = tmp_path / "gold.txt"
    path.write_text(f"q1 0 a 1\n{line}\n")
    with refused(path=path, line=2):
        read_queries(path)


def test_two_columns_of_the_same_name_are_refused(tmp_path):
    path = tmp_path / "gold.csv"
    path.write_text('\nquery_id,item_id,grade,"item_id"\nq,a,1,b\n')
    with refused(path=path, line=2, field="item_id"):
        karat.Gold.read(path)
    path.write_text("query_id,item_id,grade,,\nq,a,1,,\n")
    assert karat.Gold.read(path).judgments.rows() == [("q", "a", 1)]


@pytest.mark.parametrize("field", ["query", "topic"])
def test_half_a_character_in_a_text_is_an_input_error(field):
    with refused(field=field):
        karat.Gold.of([{"query_id": "q", field: "\ud800", "relevant": ["a"]}])


class Document:
    def __init__(self, page_content, metadata):
        self.page_content, self.metadata = page_content, metadata


@pytest.mark.parametrize(
    "returned",
    [
        [("a", 0.9), ("b", 0.5)],
        np.array(["a", "b"]),
        [Document("x", {"id": "a"}), Document("y", {"id": "b"})],
        [(Document("x", {"id": "a"}), 0.9), (Document("y", {"id": "b"}), 0.5)],
        {"results": [{"chunk_id": "a"}, {"chunk_id": "b"}]},
        pl.DataFrame({"id": ["b", "a"], "score": [0.5, 0.9]}),
        (item for item in ["a", "b"]),
    ],
)
def test_a_run_is_made_of_what_a_retriever_may_return(returned):
    run = karat.Run.of({1: returned, "q2": []}, name="r")
    assert run.results["item_id"].to_list() == ["a", "b"]
    assert (run.query_ids.to_list(), run.empty, run.name) == (["1", "q2"], ("q2",), "r")


@pytest.mark.parametrize("bad", [[None], [{"place": 1}], [("a", "b", "c")]])
def test_what_is_no_result_is_refused_with_its_query(bad):
    with refused() as error:
        karat.Run.of({"q1": bad})
    assert "'q1'" in error.value.problem
    assert error.value.field.startswith("results")


TOPICS = {"q1": "pay by card", "q2": "lost parcel", "q9": "another"}


@pytest.mark.parametrize("name", ["topics.tsv", "topics.csv", "topics.jsonl"])
def test_query_texts_are_added_to_gold_that_has_none(tmp_path, name, command):
    topics, gold = tmp_path / name, tmp_path / "gold.qrels"
    if name == "topics.tsv":
        topics.write_text("".join(f"{q}\t{text}\n" for q, text in TOPICS.items()))
    elif name == "topics.csv":
        topics.write_text("id,text\n" + "".join(f"{q},{text}\n" for q, text in TOPICS.items()))
    else:
        lines = (json.dumps({"_id": q, "text": text}) for q, text in TOPICS.items())
        topics.write_text("\n".join(lines))
    gold.write_text("q1 0 a 1\nq2 0 b 1\nq3 0 c 1\n")
    with pytest.warns(KaratWarning, match="ignored 1 query"):
        read = karat.Gold.read(gold, queries=topics)
    assert read.queries.rows() == [("q1", "pay by card"), ("q2", "lost parcel"), ("q3", None)]
    code, _, err = command("convert", gold, tmp_path / "gold.jsonl", "--queries", topics)
    assert (code, "ignored 1 query" in err) == (0, True)
    assert karat.Gold.read(tmp_path / "gold.jsonl").queries.equals(read.queries)


def test_every_command_that_takes_gold_reads_the_texts_of_queries(tmp_path, command):
    gold, run, topics = tmp_path / "gold.qrels", tmp_path / "run.trec", tmp_path / "topics.tsv"
    gold.write_text("q1 0 a 1\nq2 0 a 1\nq3 0 a 1\n")
    run.write_text("q1 Q0 a 1 1 t\nq2 Q0 a 1 1 t\nq3 Q0 a 1 1 t\n")
    documents = tmp_path / "docs.jsonl"
    documents.write_text('{"doc_id":"d","text":"x"}\n')
    commands = [
        ("eval", gold, run, "-m", "RR"),
        ("compare", gold, run, run, "-m", "RR"),
        ("gate", gold, run, "--require", "RR >= 0.1"),
        ("explain", "RR", "--gold", gold, "--run", run, "--query", "q1"),
        ("validate", gold, "--run", run),
        ("convert", gold, tmp_path / "gold.jsonl"),
    ]
    topics.write_text("q1\tpay by card\n")
    for words in commands:
        code, _, err = command(*words, "--queries", topics)
        assert code == 0, err
    topics.write_text("q7\tpay by card\n")
    for words in [*commands, ("locate", gold, "--corpus", documents)]:
        check_refused(command(*words, "--queries", topics), "queries", "'q1'", "'q7'")


def test_query_texts_of_other_queries_are_refused():
    with refused(field="queries"):
        karat.Gold.of({"q1": ["a"]}).with_query_texts({"q2": "pay"})


def test_query_texts_that_gold_has_are_kept_with_a_warning():
    gold = karat.Gold.of([{"query_id": "q1", "query": "pay", "relevant": ["a"]}])
    with pytest.warns(KaratWarning, match="'q1'"):
        gold = gold.with_query_texts({"q1": "pay by card"})
    assert gold.queries.rows() == [("q1", "pay")]


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        (karat.Gold, "id,question,retrieved\n1,pay?,a;b\n"),
        (karat.Run, "id,question,relevant\n1,pay?,a;b\n"),
        (karat.Run, "id,question,evidence\n1,pay?,by card\n"),
    ],
)
def test_a_table_of_the_other_kind_is_refused_as_swapped(tmp_path, kind, content):
    path = tmp_path / "table.csv"
    path.write_text(content)
    with refused(path=path) as error:
        kind.read(path)
    assert error.value.hint == SWAPPED


def test_a_record_of_a_run_by_any_name_is_refused_as_gold():
    with refused(field="retrieved"):
        karat.Gold.of([{"query_id": "q", "retrieved": ["a"]}])


def test_validate_names_lines_of_gold_whose_ids_have_other_names(tmp_path):
    path = tmp_path / "gold.jsonl"
    path.write_text(
        '{"qid":"q1","relevant":["a"]}\n{"question":"pay?","spans":[{"docid":"d","start":1,"end":1}]}\n'
    )
    with pytest.warns(KaratWarning, match="hash"):
        (found,) = karat.validate(path).findings
    assert (found.kind, found.examples[0].line) == ("zero-length", 2)


def test_items_without_ids_agree_by_their_text():
    gold = [{"query": "how to pay", "relevant": [{"text": "pay by card"}]}]
    run = [{"query": "how to pay", "results": [{"text": "x"}, {"text": "pay by card"}]}]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", KaratWarning)
        assert karat.evaluate(gold, run, ["RR"])["RR"] == 0.5


@pytest.mark.parametrize("other", [{"label": "ANSWER"}, {"score": 0.9}, {"score": 3}, {"rel": 2}])
def test_other_keys_of_a_span_are_not_its_grade(other):
    span = {"doc_id": "d", "start": 0, "end": 1, **other}
    gold = karat.Gold.of([{"query_id": "q1", "spans": [span]}])
    assert gold.spans["grade"].to_list() == [1]
