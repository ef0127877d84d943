"""BEIR folders: a split of judgments, and the texts and fields of its queries."""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path

import pytest

import karat
from karat.data import Gold, Run
from karat.errors import InputError, KaratWarning
from support.errors import refused

QUERIES = [
    {"_id": "1", "text": "how?", "metadata": {"category": "billing"}},
    {"_id": "2", "text": "why?", "metadata": {}, "level": "easy"},
    {"_id": "3", "text": "of another split"},
]
HEADER = "query-id\tcorpus-id\tscore\n"


def folder(place: Path, *, queries: list[dict] | None = QUERIES, **splits: str) -> Path:
    made = place / "faq"
    (made / "qrels").mkdir(parents=True)
    for split, lines in (splits or {"test": "1\ta\t2\n1\tb\t0\n2\tc\t1\n"}).items():
        (made / "qrels" / f"{split}.tsv").write_text(HEADER + lines, encoding="utf-8")
    if queries is not None:
        text = "".join(json.dumps(query) + "\n" for query in queries)
        (made / "queries.jsonl").write_text(text, encoding="utf-8")
    return made


def error_of(path: Path, kind: type[Gold] | type[Run] = Gold) -> InputError:
    with refused() as caught:
        kind.read(path)
    return caught.value


# Reading


def test_a_folder_is_gold(tmp_path):
    gold = Gold.read(folder(tmp_path))
    assert gold.judgments.rows() == [("1", "a", 2), ("1", "b", 0), ("2", "c", 1)]
    assert gold.name == "faq"


def test_texts_metadata_and_other_keys_become_fields_of_the_queries_of_this_split(tmp_path):
    known = Gold.read(folder(tmp_path)).queries.to_dicts()
    assert known == [
        {"query_id": "1", "text": "how?", "category": "billing", "level": None},
        {"query_id": "2", "text": "why?", "category": None, "level": "easy"},
    ]


def test_a_metadata_key_that_is_taken_becomes_a_field_with_its_full_name(tmp_path):
    query = {"_id": "1", "text": "how?", "level": "easy", "metadata": {"level": 1, "text": "x"}}
    gold = Gold.read(folder(tmp_path, queries=[query], test="1\ta\t1\n"))
    assert gold.queries.to_dicts() == [
        {
            "query_id": "1",
            "text": "how?",
            "level": "easy",
            "metadata.level": 1,
            "metadata.text": "x",
        }
    ]


def test_the_corpus_is_not_opened(tmp_path):
    made = folder(tmp_path)
    (made / "corpus.jsonl").write_bytes(b"\xff not even text")
    assert Gold.read(made).judgments.height == 3


def test_test_is_the_split_of_a_folder_that_has_several(tmp_path):
    made = folder(tmp_path, train="1\tx\t1\n", test="1\ta\t1\n")
    assert Gold.read(made).judgments.rows() == [("1", "a", 1)]


def test_the_only_split_is_the_split(tmp_path):
    assert Gold.read(folder(tmp_path, dev="1\ta\t1\n")).judgments.rows() == [("1", "a", 1)]


def test_several_splits_without_test_are_named(tmp_path):
    made = folder(tmp_path, train="1\ta\t1\n", dev="1\ta\t1\n")
    error = error_of(made)
    assert (error.path, error.line, error.field) == (str(made), None, None)
    assert "dev, train" in error.problem
    assert str(made / "qrels" / "dev.tsv") in error.hint


def test_a_named_split_gets_the_texts_of_its_queries(tmp_path, monkeypatch):
    made = folder(tmp_path, dev="2\ta\t1\n", test="1\ta\t1\n")
    gold = Gold.read(made / "qrels" / "dev.tsv")
    assert gold.queries["text"].to_list() == ["why?"]
    monkeypatch.chdir(made / "qrels")
    assert Gold.read("dev.tsv").queries.equals(gold.queries)


def test_all_splits_may_be_joined_by_a_glob(tmp_path):
    made = folder(tmp_path, dev="2\ta\t1\n", test="1\ta\t1\n")
    assert Gold.read(made / "qrels" / "*.tsv").queries["text"].to_list() == ["how?", "why?"]


def test_files_of_a_folder_may_be_compressed(tmp_path):
    made = folder(tmp_path)
    for path in (made / "queries.jsonl", made / "qrels" / "test.tsv"):
        path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    assert Gold.read(made).queries["text"].to_list() == ["how?", "why?"]


def test_a_folder_without_queries_has_no_texts(tmp_path):
    gold = Gold.read(folder(tmp_path, queries=None), format="beir")
    assert gold.queries.columns == ["query_id"]


def test_evaluate_accepts_a_folder(tmp_path):
    run = {"1": ["a", "b"], "2": ["x", "c"]}
    assert karat.evaluate(folder(tmp_path), run, ["RR"])["RR"] == 0.75


def test_a_bad_line_of_queries_is_named_by_its_own_file(tmp_path):
    made = folder(tmp_path, queries=[QUERIES[0], {"text": "no id"}])
    error = error_of(made)
    assert (error.path, error.line, error.field) == (str(made / "queries.jsonl"), 2, "_id")


def test_a_repeated_query_is_refused(tmp_path):
    error = error_of(folder(tmp_path, queries=[QUERIES[0]] * 2))
    assert (error.line, error.field, "'1'" in error.problem) == (2, "query_id", True)


def test_a_bad_grade_is_named_by_its_line(tmp_path):
    made = folder(tmp_path, test="1\ta\t1\n1\tb\thigh\n")
    error = error_of(made)
    assert (error.path, error.line) == (str(made / "qrels" / "test.tsv"), 3)
    assert "'high'" in error.problem


def test_a_folder_is_refused_as_a_run(tmp_path):
    made = folder(tmp_path)
    error = error_of(made, Run)
    assert error.path == str(made)
    assert "run.jsonl" in error.hint


def test_a_folder_without_queries_or_a_test_split_is_refused_as_a_run(tmp_path):
    for splits in (["test"], ["dev", "train"]):
        place = tmp_path / "-".join(splits)
        (place / "qrels").mkdir(parents=True)
        for split in splits:
            (place / "qrels" / f"{split}.tsv").write_text("query-id\tcorpus-id\tscore\nq1\ta\t1\n")
        assert error_of(place, Run).path == str(place)


def test_a_folder_without_judgments_is_refused(tmp_path):
    (tmp_path / "qrels").mkdir()
    error = error_of(tmp_path)
    assert (error.path, error.line, error.field) == (str(tmp_path), None, None)


# Writing


def test_gold_is_written_as_beirs_own_loader_reads_it(tmp_path):
    gold = Gold.of([{"query_id": "q1", "query": "how?", "category": "x", "relevant": {'a "b"': 2}}])
    gold.write(tmp_path / "out", format="beir")
    with (tmp_path / "out" / "qrels" / "test.tsv").open(encoding="utf-8") as file:
        rows = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_MINIMAL))
    assert rows == [["query-id", "corpus-id", "score"], ["q1", 'a "b"', "2"]]
    line = json.loads((tmp_path / "out" / "queries.jsonl").read_text(encoding="utf-8"))
    assert line == {"_id": "q1", "text": "how?", "metadata": {"category": "x"}}


def test_gold_returns_from_a_folder(tmp_path):
    gold = Gold.read(folder(tmp_path))
    gold.write(tmp_path / "again", format="beir")
    back = Gold.read(tmp_path / "again")
    assert back.judgments.equals(gold.judgments)
    assert back.queries.equals(gold.queries)


def test_lost_parts_of_gold_are_reported(tmp_path):
    gold = Gold.of([{"query_id": "q1", "relevant": ["a"], "evidence": ["x"]}, {"query_id": "q2"}])
    with pytest.warns(KaratWarning, match="evidence.* 1 query"):
        gold.write(tmp_path / "out", format="beir")


def test_an_empty_folder_is_filled(tmp_path):
    (tmp_path / "out").mkdir()
    Gold.of({"q1": ["a"]}).write(tmp_path / "out", format="beir")
    assert Gold.read(tmp_path / "out").judgments.rows() == [("q1", "a", 1)]


def test_a_folder_that_is_not_empty_is_not_changed(tmp_path):
    made = folder(tmp_path)
    before = (made / "queries.jsonl").read_bytes()
    with refused(path=made) as caught:
        Gold.of({"q1": ["a"]}).write(made, format="beir")
    assert caught.value.hint
    assert (made / "queries.jsonl").read_bytes() == before


@pytest.mark.parametrize("name", ["file", "no/where", ""])
def test_a_path_where_no_folder_can_be_made_is_refused(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("x")
    with refused(path=name):
        Gold.of({"q1": ["a"]}).write(name, format="beir")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_run_is_refused_for_writing_and_leaves_nothing(tmp_path):
    with refused(field="format") as caught:
        Run.of({"q1": ["a"]}).write(tmp_path / "out", format="beir")
    assert ".jsonl" in caught.value.hint
    assert list(tmp_path.iterdir()) == []
