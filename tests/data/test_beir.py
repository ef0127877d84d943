"""BEIR folders: a split of judgments, and what queries.jsonl knows of its queries."""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path

import pytest

import karat
from karat.data import Gold, Run
from karat.errors import InputError, KaratWarning

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


def refused(path: Path, kind: type[Gold] | type[Run] = Gold, **options: str) -> InputError:
    with pytest.raises(InputError) as caught:
        kind.read(path, **options)
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


def test_a_key_of_metadata_that_is_taken_goes_under_its_full_name(tmp_path):
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
    error = refused(made)
    assert (error.path, "dev, train" in error.problem) == (str(made), True)
    assert str(made / "qrels" / "dev.tsv") in error.hint


def test_a_split_that_is_named_finds_its_queries(tmp_path, monkeypatch):
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


def test_without_queries_there_are_no_texts(tmp_path):
    gold = Gold.read(folder(tmp_path, queries=None), format="beir")
    assert gold.queries.columns == ["query_id"]


def test_a_folder_goes_straight_into_evaluate(tmp_path):
    run = {"1": ["a", "b"], "2": ["x", "c"]}
    assert karat.evaluate(folder(tmp_path), run, ["RR"])["RR"] == 0.75


def test_a_bad_line_of_queries_is_named_by_its_own_file(tmp_path):
    made = folder(tmp_path, queries=[QUERIES[0], {"text": "no id"}])
    error = refused(made)
    assert (error.path, error.line) == (str(made / "queries.jsonl"), 2)
    assert error.field == "_id"


def test_a_query_that_stands_twice_is_refused(tmp_path):
    assert refused(folder(tmp_path, queries=[QUERIES[0]] * 2)).line == 2


def test_a_bad_grade_is_named_by_its_line(tmp_path):
    made = folder(tmp_path, test="1\ta\t1\n1\tb\thigh\n")
    error = refused(made)
    assert (error.path, error.line) == (str(made / "qrels" / "test.tsv"), 3)


def test_a_folder_is_no_run(tmp_path):
    error = refused(folder(tmp_path), Run)
    assert "no run" in error.problem
    assert ".run" in error.hint


def test_a_folder_without_judgments_is_a_directory_where_a_file_is_meant(tmp_path):
    (tmp_path / "qrels").mkdir()
    assert "this is a directory" in refused(tmp_path).problem


# Writing


def test_gold_is_written_as_beirs_own_loader_reads_it(tmp_path):
    gold = Gold.of([{"query_id": "q1", "query": "how?", "category": "x", "relevant": {'a "b"': 2}}])
    gold.write(tmp_path / "out", format="beir")
    with (tmp_path / "out" / "qrels" / "test.tsv").open(encoding="utf-8") as file:
        rows = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_MINIMAL))
    assert rows == [["query-id", "corpus-id", "score"], ["q1", 'a "b"', "2"]]
    line = json.loads((tmp_path / "out" / "queries.jsonl").read_text(encoding="utf-8"))
    assert line == {"_id": "q1", "text": "how?", "metadata": {"category": "x"}}


def test_everything_that_a_folder_holds_comes_back(tmp_path):
    gold = Gold.read(folder(tmp_path))
    gold.write(tmp_path / "again", format="beir")
    back = Gold.read(tmp_path / "again")
    assert back.judgments.equals(gold.judgments)
    assert back.queries.equals(gold.queries)


def test_what_a_folder_loses_is_said(tmp_path):
    gold = Gold.of([{"query_id": "q1", "relevant": ["a"], "evidence": ["x"]}, {"query_id": "q2"}])
    with pytest.warns(KaratWarning, match="cannot hold evidence, 1 query without judgments$"):
        gold.write(tmp_path / "out", format="beir")


def test_an_empty_folder_is_filled(tmp_path):
    (tmp_path / "out").mkdir()
    Gold.of({"q1": ["a"]}).write(tmp_path / "out", format="beir")
    assert Gold.read(tmp_path / "out").judgments.rows() == [("q1", "a", 1)]


def test_a_folder_that_holds_something_is_left_alone(tmp_path):
    made = folder(tmp_path)
    before = (made / "queries.jsonl").read_bytes()
    with pytest.raises(InputError, match="not empty") as caught:
        Gold.of({"q1": ["a"]}).write(made, format="beir")
    assert "name a new folder" in caught.value.hint
    assert (made / "queries.jsonl").read_bytes() == before


@pytest.mark.parametrize(
    ("name", "problem"),
    [("file", "this is a file"), ("no/where", "does not exist"), ("", "names no new folder")],
)
def test_a_place_for_no_folder_is_refused(tmp_path, monkeypatch, name, problem):
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("x")
    with pytest.raises(InputError, match=problem):
        Gold.of({"q1": ["a"]}).write(name, format="beir")


def test_a_failure_while_writing_leaves_nothing(tmp_path):
    with pytest.raises(InputError, match="no run") as caught:
        Run.of({"q1": ["a"]}).write(tmp_path / "out", format="beir")
    assert ".jsonl" in caught.value.hint
    assert list(tmp_path.iterdir()) == []
