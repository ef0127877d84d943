"""CSV, TSV, Parquet, Arrow: known names of columns, ids as text, order by rank or score."""

from __future__ import annotations

import gzip
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.feather
import pytest

from karat.data import Gold, Run
from karat.errors import InputError
from support.errors import refused


def put(folder: Path, name: str, content: str | pl.DataFrame) -> Path:
    path = folder / name
    if isinstance(content, str):
        path.write_text(content, encoding="utf-8", newline="")
    else:
        content.write_parquet(path)
    return path


def judgments(folder: Path, content: str, name: str = "gold.csv") -> list[tuple[str, str, int]]:
    return Gold.read(put(folder, name, content)).judgments.rows()


def items(folder: Path, content: str, name: str = "run.csv") -> list[tuple[str, str]]:
    results = Run.read(put(folder, name, content)).results
    return results.select("query_id", "item_id").rows()


def error_of(folder: Path, kind: type[Gold] | type[Run], content: str | pl.DataFrame) -> InputError:
    """Return the error that reading this table raises, which must name the file."""
    path = put(folder, "table.csv" if isinstance(content, str) else "table.parquet", content)
    with refused(path=path) as caught:
        kind.read(path)
    return caught.value


# Names of columns


@pytest.mark.parametrize("query", ["query_id", "qid", "query-id", "QID", " Query_ID "])
def test_the_query_column_may_have_any_of_its_names(tmp_path, query):
    assert judgments(tmp_path, f"{query},item_id,grade\nq1,a,1\n") == [("q1", "a", 1)]


@pytest.mark.parametrize("item", ["item_id", "docid", "docno", "corpus-id", "doc_id", "DocNo"])
def test_the_item_column_may_have_any_of_its_names(tmp_path, item):
    assert judgments(tmp_path, f"query_id,{item},grade\nq1,a,1\n") == [("q1", "a", 1)]


@pytest.mark.parametrize("grade", ["grade", "rel", "relevance", "score", "Relevance"])
def test_the_grade_column_may_have_any_of_its_names(tmp_path, grade):
    assert judgments(tmp_path, f"query_id,item_id,{grade}\nq1,a,2\n") == [("q1", "a", 2)]


def test_the_qrels_of_beir_are_read(tmp_path):
    content = "query-id\tcorpus-id\tscore\n1\t31715818\t1\n3\t14717500\t0\n"
    rows = judgments(tmp_path, content, "test.tsv")
    assert rows == [("1", "31715818", 1), ("3", "14717500", 0)]


def test_the_columns_of_a_run_may_have_the_same_names(tmp_path):
    assert items(tmp_path, "qid,docno,score\nq1,a,0.5\n") == [("q1", "a")]


def test_the_columns_may_be_in_any_order(tmp_path):
    assert judgments(tmp_path, "grade,item_id,query_id\n2,a,q1\n") == [("q1", "a", 2)]


def test_the_item_takes_precedence_over_the_document(tmp_path):
    assert items(tmp_path, "query_id,doc_id,item_id\nq1,d,c\n") == [("q1", "c")]


# Ids and values


@pytest.mark.parametrize("name", ["gold.csv", "gold.csv.gz"])
def test_ids_that_look_like_numbers_stay_text(tmp_path, name):
    content = "query_id,item_id,grade\n007,1e5,1\n1.0,0x1F,1\ntrue,NULL,1\n"
    if name.endswith(".gz"):
        (tmp_path / name).write_bytes(gzip.compress(content.encode()))
    else:
        put(tmp_path, name, content)
    rows = Gold.read(tmp_path / name).judgments.rows()
    assert rows == [("007", "1e5", 1), ("1.0", "0x1F", 1), ("true", "NULL", 1)]


def test_numbers_as_ids_in_parquet_become_decimal_text(tmp_path):
    table = pl.DataFrame({"query_id": [7], "item_id": [10**18], "grade": [1]})
    rows = Gold.read(put(tmp_path, "gold.parquet", table))
    assert rows.judgments.rows() == [("7", "1000000000000000000", 1)]


def test_floats_as_ids_in_parquet_are_refused(tmp_path):
    table = pl.DataFrame({"query_id": ["q1"], "item_id": [7.0], "grade": [1]})
    assert error_of(tmp_path, Gold, table).field == "item_id"


def test_floats_as_document_ids_are_refused(tmp_path):
    table = pl.DataFrame({"query_id": ["q1"], "item_id": ["a"], "doc_id": [7.0]})
    assert error_of(tmp_path, Run, table).field == "doc_id"


def test_whole_numbers_in_a_column_of_floats_are_grades(tmp_path):
    table = pl.DataFrame({"query_id": ["q1"], "item_id": ["a"], "grade": [2.0]})
    assert Gold.read(put(tmp_path, "gold.parquet", table)).judgments.rows() == [("q1", "a", 2)]


def test_spaces_around_numbers_do_not_matter(tmp_path):
    assert judgments(tmp_path, "query_id,item_id,grade\nq1,a, 2 \n") == [("q1", "a", 2)]


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_lines_may_end_either_way(tmp_path, ending):
    content = ending.join(["query_id,item_id,grade", "q1,a,1", "q1,b,0", ""])
    assert judgments(tmp_path, content) == [("q1", "a", 1), ("q1", "b", 0)]


def test_a_byte_order_mark_is_not_part_of_a_name(tmp_path):
    assert judgments(tmp_path, "\ufeffquery_id,item_id,grade\nq1,a,1\n") == [("q1", "a", 1)]


def test_quoted_values_may_hold_separators_quotes_and_newlines(tmp_path):
    content = 'query_id,item_id,grade\n"q,1","a ""b""\nc",1\n'
    assert judgments(tmp_path, content) == [("q,1", 'a "b"\nc', 1)]


def test_a_table_is_detected_under_any_ending(tmp_path):
    rows = judgments(tmp_path, "query_id,item_id,grade\nq1,a,1\n", "gold.txt")
    assert rows == [("q1", "a", 1)]


def test_the_name_of_a_file_may_hold_brackets(tmp_path):
    table = pl.DataFrame({"query_id": ["q1"], "item_id": ["a"], "grade": [1]})
    path = put(tmp_path, "gold[1].parquet", table)
    assert Gold.read(path).judgments.rows() == [("q1", "a", 1)]


# Arrow


@pytest.mark.parametrize("name", ["gold.arrow", "gold.feather", "gold.ipc", "gold[1]", "gold.csv"])
@pytest.mark.parametrize("write", [pl.DataFrame.write_ipc, pl.DataFrame.write_ipc_stream])
def test_arrow_files_and_streams_are_detected_under_any_ending(tmp_path, name, write):
    write(pl.DataFrame({"qid": [7], "docno": ["a"], "rel": [2]}), tmp_path / name)
    assert Gold.read(tmp_path / name).judgments.rows() == [("7", "a", 2)]


@pytest.mark.parametrize("compression", ["lz4", "zstd"])
def test_arrow_may_be_compressed_inside(tmp_path, compression):
    path = tmp_path / "run.arrow"
    pl.DataFrame({"query_id": ["q1"], "item_id": ["a"]}).write_ipc(path, compression=compression)
    assert Run.read(path).results.rows() == [("q1", "a")]


def test_arrow_is_exchanged_with_pyarrow_in_both_directions(tmp_path):
    path = tmp_path / "run.arrow"
    table = pa.table({"query_id": ["q1", "q1"], "item_id": ["a", "b"], "score": [0.5, 0.7]})
    pa.feather.write_feather(table, path)
    run = Run.read(path)
    assert run.results["item_id"].to_list() == ["b", "a"]
    run.write(path)
    assert pa.feather.read_table(path)["item_id"].to_pylist() == ["b", "a"]


def test_a_bad_value_in_arrow_is_named_by_its_row(tmp_path):
    table = pl.DataFrame({"query_id": ["q1", "q1"], "item_id": ["a", "b"], "grade": [1, None]})
    table.write_ipc(tmp_path / "gold.arrow")
    with refused(path=tmp_path / "gold.arrow", field="grade") as caught:
        Gold.read(tmp_path / "gold.arrow")
    assert "row 2" in caught.value.problem


# Order


def test_a_rank_column_takes_precedence_over_scores(tmp_path):
    content = "query_id,item_id,rank,score\nq1,a,2,0.9\nq1,b,1,0.1\n"
    assert items(tmp_path, content) == [("q1", "b"), ("q1", "a")]


def test_ranks_give_the_order_and_are_renumbered(tmp_path):
    run = Run.read(put(tmp_path, "run.csv", "query_id,item_id,rank\nq1,a,70\nq1,b,-3\nq1,c,9\n"))
    run.write(tmp_path / "again.csv")
    written = (tmp_path / "again.csv").read_text(encoding="utf-8")
    assert written == "query_id,rank,item_id\nq1,1,b\nq1,2,c\nq1,3,a\n"


def test_ranks_are_compared_as_numbers(tmp_path):
    content = "query_id,item_id,rank\nq1,a,10\nq1,b,9\n"
    assert items(tmp_path, content) == [("q1", "b"), ("q1", "a")]


def test_without_ranks_items_are_ordered_by_score_and_ties_by_id_descending(tmp_path):
    content = "query_id,item_id,score\nq1,a,0.5\nq1,c,0.7\nq1,b,0.5\nq1,é,0.5\n"
    assert items(tmp_path, content) == [("q1", "c"), ("q1", "é"), ("q1", "b"), ("q1", "a")]


def test_without_ranks_and_scores_the_order_of_rows_is_kept(tmp_path):
    content = "query_id,item_id\nq2,b\nq1,z\nq2,a\nq1,y\n"
    assert items(tmp_path, content) == [("q1", "z"), ("q1", "y"), ("q2", "b"), ("q2", "a")]


def test_places_without_item_ids_are_ordered_by_score(tmp_path):
    content = "query_id,doc_id,start,end,score\nq1,d,0,5,0.5\nq1,d,6,9,0.7\n"
    run = Run.read(put(tmp_path, "run.csv", content))
    assert run.results["start"].to_list() == [6, 0]


def test_places_without_item_ids_may_tie(tmp_path):
    content = "query_id,doc_id,start,end,score\nq1,d,0,5,0.5\nq1,d,6,9,0.5\n"
    run = Run.read(put(tmp_path, "run.csv", content))
    assert sorted(run.results["start"]) == [0, 6]


def test_a_repeated_rank_is_refused(tmp_path):
    content = "query_id,item_id,rank\nq1,a,1\nq2,a,1\nq1,b,2\nq1,c,2\n"
    error = error_of(tmp_path, Run, content)
    assert error.field == "rank"
    assert error.line in (4, 5)
    assert "'q1'" in error.problem
    assert "2" in error.problem


@pytest.mark.parametrize("rank", ["", "first", "1.5"])
def test_a_rank_that_is_not_an_integer_is_refused(tmp_path, rank):
    error = error_of(tmp_path, Run, f"query_id,item_id,rank\nq1,a,{rank}\n")
    assert (error.line, error.field) == (2, "rank")


@pytest.mark.parametrize("place", ["-1,5", "7,5"])
def test_a_place_with_impossible_offsets_is_refused(tmp_path, place):
    error = error_of(tmp_path, Run, f"query_id,doc_id,start,end\nq1,d,0,5\nq1,d,{place}\n")
    assert (error.line, error.field) == (3, "start")


# Fields of the queries


def test_columns_that_are_constant_within_queries_become_fields(tmp_path):
    content = "query_id,item_id,grade,category\nq1,a,1,billing\nq1,b,0,billing\nq2,c,1,other\n"
    gold = Gold.read(put(tmp_path, "gold.csv", content))
    assert gold.queries.rows() == [("q1", "billing"), ("q2", "other")]


def test_columns_that_vary_within_a_query_are_not_fields(tmp_path):
    content = "query_id,item_id,grade,assessor\nq1,a,1,ann\nq1,b,0,bob\n"
    assert Gold.read(put(tmp_path, "gold.csv", content)).fields == []


def test_a_column_called_query_is_the_text_of_the_query(tmp_path):
    content = "query_id,query,item_id,grade\nq1,how?,a,1\n"
    gold = Gold.read(put(tmp_path, "gold.csv", content))
    assert gold.queries.to_dicts() == [{"query_id": "q1", "text": "how?"}]


# The line of an error


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("query_id,item_id,grade\nq1,a,1\nq1,b,x\n", 3),
        ("query_id,item_id,grade\r\nq1,a,1\r\nq1,b,x\r\n", 3),
        ('query_id,item_id,grade\n"q\n1",a,1\nq1,b,x\n', 4),
        ("\n\nquery_id,item_id,grade\nq1,b,x\n", 4),
        ("query_id,item_id,grade\nq1,a,1\n\nq1,b,x\n", 4),
        (f"query_id,item_id,grade,note\nq1,a,1,{'d' * 200_000}\nq1,b,x,y\n", 3),
        ('query_id,item_id,grade\nq1,"a\rb",1\nq1,b,x\n', 3),
    ],
    ids=[
        "plain",
        "CRLF",
        "after a quoted newline",
        "after blank lines at the top",
        "after a blank line",
        "after a value longer than csv's limit",
        "after a quoted carriage return",
    ],
)
def test_a_bad_value_is_named_by_its_line(tmp_path, content, line):
    error = error_of(tmp_path, Gold, content)
    assert (error.line, error.field) == (line, "grade")


def test_blank_lines_at_the_end_do_not_matter(tmp_path):
    assert judgments(tmp_path, "query_id,item_id,grade\nq1,a,1\n\n\n") == [("q1", "a", 1)]


def test_a_bad_value_is_named_by_its_column_in_the_file(tmp_path):
    assert error_of(tmp_path, Gold, "qid,docno,rel\nq1,a,x\n").field == "rel"


def test_a_bad_value_in_parquet_is_named_by_its_row(tmp_path):
    table = pl.DataFrame({"query_id": ["q1", "q1"], "item_id": ["a", "b"], "grade": [1, None]})
    error = error_of(tmp_path, Gold, table)
    assert (error.field, "row 2" in error.problem) == ("grade", True)


@pytest.mark.parametrize(
    ("row", "count"), [("q1,a,1,x,y", 5), ("q1,a,1", 3), ("q1,a", 2), ('q1,"a,1,x"', 2)]
)
def test_a_row_with_too_many_or_too_few_values_is_refused_by_line(tmp_path, row, count):
    error = error_of(tmp_path, Gold, f"query_id,item_id,grade,category\nq1,b,1,x\n{row}\n")
    assert (error.line, error.field) == (3, None)
    assert f"{count} values" in error.problem
