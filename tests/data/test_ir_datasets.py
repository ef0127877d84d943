"""Exports of ir_datasets: tabs, no column names, distinguished from TREC only where certain."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from karat.data import Gold, Run
from karat.errors import KaratWarning
from support.errors import refused


def put(folder: Path, content: str) -> Path:
    path = folder / "export.tsv"
    path.write_text(content, encoding="utf-8", newline="")
    return path


# Reading


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("q1\ta\t1\nq1\tb\r\t2\n", 2),
        ("\nq1\r\ta\t1\n", 2),
        ("q1\ta\t1\nq1\tb\t2\t", 2),
        ("q1\ta\t1\t0\nq1\tb\t2\t0\t", 2),
    ],
    ids=["CR in an item", "CR in a query", "tab at the end", "tab at the end of four fields"],
)
def test_carriage_return_in_a_line_and_tab_at_the_end_are_refused(tmp_path, content, line):
    path = put(tmp_path, content)
    with refused(path=path, line=line):
        Gold.read(path, format="ir_datasets")


def test_blank_first_line_with_a_tab_is_skipped(tmp_path):
    path = put(tmp_path, "\t\r\n\nq1\ta\t1\r\nq1\tb\tx\r")
    with refused(path=path, line=4, field="relevance"):
        Gold.read(path, format="ir_datasets")
    path = put(tmp_path, "\t\r\n\nq1\ta\t1\r\nq1\tb\t2\r")
    gold = Gold.read(path, format="ir_datasets")
    assert gold.judgments.rows() == [("q1", "a", 1), ("q1", "b", 2)]


@pytest.mark.parametrize("content", ["\u2028", "\u2028\n\u00a0\n"])
def test_unicode_white_space_alone_is_refused(tmp_path, content):
    path = put(tmp_path, content)
    for read in (Gold.read, Run.read):
        with refused(path=path):
            read(path, format="ir_datasets")


@pytest.mark.parametrize("content", ["q1\ta\t2\t0\nq2\tb\t-1\tQ0\n", "q1\ta\t2\nq2\tb\t-1\n"])
def test_judgments_are_read_with_and_without_an_iteration(tmp_path, content):
    gold = Gold.read(put(tmp_path, content), format="ir_datasets")
    assert gold.judgments.rows() == [("q1", "a", 2), ("q2", "b", -1)]


def test_scored_documents_are_ranked_by_score_and_ties_by_id_descending(tmp_path):
    path = put(tmp_path, "q1\ta\t0.5\nq1\tb\t0.5\nq1\tc\t7\n")
    run = Run.read(path, format="ir_datasets")
    assert run.results["item_id"].to_list() == ["c", "b", "a"]


def test_ids_may_hold_spaces_quotes_and_hashes(tmp_path):
    gold = Gold.read(put(tmp_path, '#q 1\t"a b\t1\t0\n'), format="ir_datasets")
    assert gold.judgments.rows() == [("#q 1", '"a b', 1)]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\n\n"])
def test_lines_may_end_in_any_way(tmp_path, end):
    gold = Gold.read(put(tmp_path, end.join(["\ufeffq1\ta\t1", "q1\tb\t2", ""])))
    assert gold.judgments.rows() == [("q1", "a", 1), ("q1", "b", 2)]


@pytest.mark.parametrize(
    ("content", "line", "field"),
    [
        ("q1\ta\t1\n\nq1\tb\tx\n", 3, "relevance"),
        ("q1\ta\t1\nq1\t\t1\n", 2, "doc_id"),
        ("\nq1\ta\t1\nq1\tb\n", 3, "relevance"),
    ],
)
def test_a_bad_value_is_named_by_line_and_field(tmp_path, content, line, field):
    path = put(tmp_path, content)
    with refused(path=path, line=line, field=field):
        Gold.read(path, format="ir_datasets")


@pytest.mark.parametrize(
    ("content", "line", "count"),
    [("q1\ta\t1\nq1\ta\t1\t0\tx\n", 2, 5), ("q1 0 a 1\n", 1, 1), ("q1\ta\n", 1, 2)],
)
def test_a_line_with_too_few_or_too_many_fields_is_refused(tmp_path, content, line, count):
    path = put(tmp_path, content)
    with refused(path=path, line=line, field=None) as caught:
        Gold.read(path, format="ir_datasets")
    assert str(count) in caught.value.problem
    assert "relevance" in caught.value.hint


def test_ranks_are_not_mistaken_for_scores(tmp_path):
    path = put(tmp_path, "q1\ta\t1\nq1\tb\t2\nq2\tc\t1\n")
    with refused(path=path, line=None, field="score") as caught:
        Run.read(path)
    assert "rank" in caught.value.hint


def test_the_fix_that_the_hint_about_ranks_suggests_works(tmp_path):
    run = Run.read(put(tmp_path, "query_id\titem_id\trank\nq1\ta\t1\nq1\tb\t2\n"))
    assert run.results["item_id"].to_list() == ["a", "b"]


# Detection


@pytest.mark.parametrize(
    "content",
    ["q1\ta\t2\nq2\tb\t0\n", "q1\ta\t2\tQ0\nq1\tb\t0\tQ0\n", "q 1\ta\t2\tQ0\nq 2\tb\t0\tQ0\n"],
    ids=["three fields", "a fourth that is not a grade", "ids that hold spaces"],
)
def test_judgments_are_detected_where_they_cannot_be_trec(tmp_path, content):
    grades = Gold.read(put(tmp_path, content)).judgments["grade"].to_list()
    assert grades == [2, 0]


def test_a_run_of_three_fields_is_detected(tmp_path):
    run = Run.read(put(tmp_path, "q1\ta\t0.1\nq1\tb\t0.2\n"))
    assert run.results["item_id"].to_list() == ["b", "a"]


def test_trec_takes_precedence_where_both_are_possible_and_a_warning_says_so(tmp_path):
    path = put(tmp_path, "q1\t12\t1\t0\nq1\t15\t2\t0\n")
    with pytest.warns(KaratWarning, match=r"export\.tsv.*ir_datasets"):
        trec = Gold.read(path)
    assert trec.judgments.rows() == [("q1", "1", 0), ("q1", "2", 0)]
    named = Gold.read(path, format="ir_datasets")
    assert named.judgments.rows() == [("q1", "12", 1), ("q1", "15", 2)]


def test_qrels_of_trec_with_tabs_give_no_warning(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gold = Gold.read(put(tmp_path, "1\t0\t12\t1\n1\t0\t15\t0\n2\t0\t12\t1\n"))
    assert gold.judgments.rows()[0] == ("1", "12", 1)


def test_a_line_that_is_cut_off_by_the_sample_is_not_used_for_detection(tmp_path):
    path = put(tmp_path, "".join(f"q{n}\t{'d' * 20_000}\t0.25\n" for n in range(5)))
    assert Run.read(path).results.height == 5


# Writing


def test_judgments_are_written_as_ir_datasets_prints_them(tmp_path):
    Gold.of({"q1": {"a": 2}}).write(tmp_path / "x.tsv", format="ir_datasets")
    assert (tmp_path / "x.tsv").read_text() == "q1\ta\t2\t0\n"


def test_a_run_is_written_as_ir_datasets_prints_it(tmp_path):
    Run.of({"q1": {"a": 0.25, "b": 0.5}}).write(tmp_path / "x.tsv", format="ir_datasets")
    assert (tmp_path / "x.tsv").read_text() == "q1\tb\t0.5\nq1\ta\t0.25\n"


def test_where_scores_do_not_give_the_order_n_to_1_are_written_with_a_warning(tmp_path):
    results = [{"id": "a", "score": 1}, {"id": "b", "score": 1}]
    run = Run.of([{"query_id": "q1", "results": results}])
    with pytest.warns(KaratWarning, match="scores"):
        run.write(tmp_path / "x.tsv", format="ir_datasets")
    assert (tmp_path / "x.tsv").read_text() == "q1\ta\t2.0\nq1\tb\t1.0\n"


@pytest.mark.parametrize("bad", ["a\tb", "a\nb", "a\rb"])
def test_an_id_that_would_break_a_line_is_refused(tmp_path, bad):
    with refused(field="item_id") as caught:
        Run.of({"q1": [bad]}).write(tmp_path / "x.tsv", format="ir_datasets")
    assert repr(bad) in caught.value.problem
    assert list(tmp_path.iterdir()) == []
