"""Gold and runs from Python data: dicts, lists, frames, records, and JSON of such dicts."""

from __future__ import annotations

import copy
import pickle
from collections import OrderedDict
from dataclasses import FrozenInstanceError
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import karat
from karat.data import Gold, Run
from karat.errors import InputError, KaratWarning
from support.effort import examples
from support.errors import refused


def ranking(source: object) -> list[tuple[str, str]]:
    return Run.of(source).results.select("query_id", "item_id").rows()


def judgments(source: object) -> list[tuple[str, str, int]]:
    return Gold.of(source).judgments.rows()


def table(made: Gold | Run) -> pl.DataFrame:
    return made.judgments if isinstance(made, Gold) else made.results


def error_of(make, source: object) -> InputError:
    """Return the error of bad data, raised at once or at the latest when its table is made."""
    with refused(path=None, line=None) as caught:
        table(make(source))
    return caught.value


# Dicts and lists


def test_a_dict_of_scores_is_ranked_by_score():
    assert ranking({"q1": {"a": 0.1, "b": 0.9}}) == [("q1", "b"), ("q1", "a")]


def test_ties_in_a_dict_are_ordered_by_id_descending_as_bytes():
    assert ranking({"q1": {"a": 1, "é": 1, "B": 1}}) == [("q1", "é"), ("q1", "a"), ("q1", "B")]


@examples(50, 500)
@given(st.lists(st.text(min_size=1, max_size=3).filter(str.isprintable), min_size=2, unique=True))
def test_any_ids_that_tie_are_ordered_by_their_bytes(items):
    expected = sorted(items, key=lambda item: item.encode(), reverse=True)
    assert [item for _, item in ranking({"q1": dict.fromkeys(items, 0.5)})] == expected


def test_a_list_of_ids_is_ranked_as_listed():
    assert ranking({"q1": ["b", "a"]}) == [("q1", "b"), ("q1", "a")]


def test_a_tuple_of_ids_is_a_list_of_ids():
    assert ranking({"q1": ("b", "a")}) == [("q1", "b"), ("q1", "a")]


def test_a_query_that_retrieved_nothing_is_kept():
    assert Run.of({"q1": [], "q2": ["a"]}).query_ids.to_list() == ["q1", "q2"]


def test_a_dict_of_grades_is_gold():
    assert judgments({"q1": {"a": 2, "b": -1}}) == [("q1", "a", 2), ("q1", "b", -1)]


def test_a_list_of_ids_is_gold_of_grade_1():
    assert judgments({"q1": ["a", "b"]}) == [("q1", "a", 1), ("q1", "b", 1)]


def test_a_set_of_ids_is_gold_of_grade_1():
    assert judgments({"q1": {"a"}}) == [("q1", "a", 1)]


def test_lists_and_dicts_may_be_mixed_in_gold():
    assert judgments({"q1": ["a"], "q2": {"b": 2}}) == [("q1", "a", 1), ("q2", "b", 2)]


def test_a_query_judged_with_nothing_relevant_is_judged():
    assert Gold.of({"q1": {}}).query_ids_judged.to_list() == ["q1"]


@pytest.mark.parametrize("kind", [OrderedDict, MappingProxyType])
def test_any_mapping_is_a_dict(kind):
    assert judgments(kind({"q1": kind({"a": 2})})) == [("q1", "a", 2)]


def test_gold_made_of_gold_is_that_gold():
    gold = Gold.of({"q1": ["a"]})
    assert Gold.of(gold) is gold


def test_queries_may_be_given_separately_from_judgments():
    queries = pl.DataFrame({"qid": [1], "query": ["how?"], "category": ["billing"]})
    gold = Gold.of(judgments={1: ["a"]}, queries=queries)
    assert gold.queries.to_dicts() == [{"query_id": "1", "text": "how?", "category": "billing"}]


def test_queries_may_be_given_separately_from_records():
    queries = pl.DataFrame({"query_id": ["q1"], "category": ["billing"]})
    gold = Gold.of([{"query_id": "q1", "relevant": ["a"]}], queries=queries)
    assert gold.fields == ["category"]


def test_separate_queries_keep_the_fields_of_the_table():
    judged = pl.DataFrame({"query_id": ["q1"], "item_id": ["a"], "grade": [1], "level": ["easy"]})
    queries = pl.DataFrame({"query_id": ["q1"], "category": ["billing"]})
    assert sorted(Gold.of(judged, queries=queries).fields) == ["category", "level"]


# Ids


def test_integers_become_decimal_text():
    assert judgments({1: {2: 1}, np.int64(3): {np.int32(4): 1}}) == [("1", "2", 1), ("3", "4", 1)]


def test_integers_in_a_list_become_decimal_text():
    assert ranking({1: [30, 4]}) == [("1", "30"), ("1", "4")]


@pytest.mark.parametrize("bad", [1.0, 1.5, True, None, "", b"a", ("a",), np.float64(2)])
@pytest.mark.parametrize("kind", [Gold, Run])
def test_a_query_id_that_is_neither_text_nor_integer_is_refused(kind, bad):
    error = error_of(kind.of, {bad: {"a": 1}})
    assert (error.field, repr(bad) in error.problem) == ("query_id", True)


@pytest.mark.parametrize("bad", [1.0, 1.5, True, None, "", b"a", ("a",), np.float64(2)])
@pytest.mark.parametrize("kind", [Gold, Run])
def test_an_item_id_that_is_neither_text_nor_integer_is_refused(kind, bad):
    error = error_of(kind.of, {"q1": {"ok": 1, bad: 1}})
    assert (error.field, repr(bad) in error.problem) == ("item_id", True)


@pytest.mark.parametrize("bad", [1.0, True, None, "", b"a", ["a"], {"id": "a"}])
@pytest.mark.parametrize("kind", [Gold, Run])
def test_a_list_item_that_is_neither_text_nor_integer_is_refused(kind, bad):
    error = error_of(kind.of, {"q1": ["ok", bad]})
    assert (error.field, repr(bad) in error.problem) == ("item_id", True)


@pytest.mark.parametrize("kind", [Gold, Run])
def test_ids_that_are_equal_as_text_are_refused(kind):
    assert error_of(kind.of, {"q1": {1: 1, "1": 2}}).field == "item_id"


@pytest.mark.parametrize(
    ("kind", "source", "field"),
    [
        (Gold, {"q\ud800": {"a": 1}}, "query_id"),
        (Gold, {"q1": {"a\ud800": 1}}, "item_id"),
        (Run, {"q1": {"a\ud800": 1.0}}, "item_id"),
        (Run, {"q1": ["a\ud800"]}, "item_id"),
        (Gold, [{"query_id": "q1", "relevant": ["a\ud800"]}], "relevant"),
        (Run, [{"query_id": "q1", "results": ["a\ud800"]}], "results"),
    ],
)
def test_a_lone_surrogate_is_refused(kind, source, field):
    error = error_of(kind.of, source)
    assert (error.field, r"\ud800" in error.problem) == (field, True)


# Values


@pytest.mark.parametrize("bad", [1.5, "x", None, float("nan"), float("inf"), 2**70, [1]])
def test_a_grade_that_is_not_an_integer_is_refused(bad):
    error = error_of(Gold.of, {"q1": {"a": 1, "b": bad}})
    assert error.field == "grade"
    assert "'q1'" in error.problem
    assert "'b'" in error.problem


@pytest.mark.parametrize("grade", [2, 2.0, np.int64(2)])
def test_a_grade_may_be_any_whole_number(grade):
    assert judgments({"q1": {"a": grade}}) == [("q1", "a", 2)]


@pytest.mark.parametrize("bad", ["x", None, float("nan"), pytest.param(10**400, id="10**400"), [1]])
def test_a_score_that_is_not_a_number_is_refused(bad):
    error = error_of(Run.of, {"q1": {"a": 1, "b": bad}})
    assert error.field == "score"
    assert "'q1'" in error.problem
    assert "'b'" in error.problem


def test_scores_for_some_queries_and_lists_for_others_are_refused():
    error = error_of(Run.of, {"q1": {"a": 1.0}, "q2": ["a"]})
    assert (error.field, bool(error.hint)) == (None, True)


@pytest.mark.parametrize("bad", ["abc", b"abc", 5, None, {"a", "b"}])
def test_an_unknown_type_of_results_is_refused(bad):
    error = error_of(Run.of, {"q1": bad})
    assert error.field == "results"
    assert "'q1'" in error.problem
    assert type(bad).__name__ in error.problem


@pytest.mark.parametrize("bad", ["abc", 5, None])
def test_an_unknown_type_of_judgments_is_refused(bad):
    error = error_of(Gold.of, {"q1": bad})
    assert error.field == "judgments"
    assert "'q1'" in error.problem
    assert type(bad).__name__ in error.problem


@pytest.mark.parametrize("bad", [5, None, 1.5, object(), b"bytes", (x for x in "abc")])
@pytest.mark.parametrize("kind", [Gold, Run])
def test_an_unknown_type_of_source_is_refused(kind, bad):
    error = error_of(kind.of, bad)
    assert type(bad).__name__ in error.problem
    assert f"{kind.__name__}.read" in error.hint


# Frames

COLUMNS = {"query_id": ["q1", "q1", "q2"], "item_id": [1, 2, 1], "grade": [2, 0, 1]}
GOLD_ROWS = [("q1", "1", 2), ("q1", "2", 0), ("q2", "1", 1)]
FRAMES = {
    "polars": pl.DataFrame,
    "polars, lazy": pl.LazyFrame,
    "pandas": pd.DataFrame,
    "pyarrow": pa.table,
}


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES.keys())
def test_gold_is_made_of_any_frame(frame):
    assert judgments(frame(COLUMNS)) == GOLD_ROWS


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES.keys())
def test_a_run_is_made_of_any_frame(frame):
    results = frame({"qid": [1, 1], "docno": ["a", "b"], "score": [0.1, 0.9]})
    assert ranking(results) == [("1", "b"), ("1", "a")]


def test_the_index_of_a_pandas_frame_is_not_a_field():
    frame = pd.DataFrame(COLUMNS, index=[7, 7, 9])
    assert Gold.of(frame).fields == []


def test_a_pandas_index_in_an_arrow_table_is_not_a_field():
    frame = pa.Table.from_pandas(pd.DataFrame(COLUMNS, index=[7, 7, 9]))
    assert Gold.of(frame).fields == []


def test_pandas_categories_are_accepted_as_ids():
    frame = pd.DataFrame(COLUMNS).astype({"query_id": "category"})
    assert judgments(frame) == GOLD_ROWS


def test_polars_categories_and_enums_are_accepted_as_ids():
    frame = pl.DataFrame(COLUMNS).with_columns(
        pl.col("query_id").cast(pl.Enum(["q1", "q2"])),
        pl.col("item_id").cast(pl.String).cast(pl.Categorical),
    )
    assert judgments(frame) == GOLD_ROWS


@pytest.mark.parametrize("kind", [pa.large_string(), pa.string_view()])
def test_every_arrow_string_type_is_accepted_as_ids(kind):
    frame = pa.table({**COLUMNS, "query_id": pa.array(COLUMNS["query_id"], kind)})
    assert judgments(frame) == GOLD_ROWS


@pytest.mark.parametrize("values", [[1.0, 2.0], [True, False], [b"a", b"b"], [["a"], ["b"]]])
@pytest.mark.parametrize("column", ["query_id", "item_id"])
def test_an_id_column_of_another_type_is_refused(column, values):
    frame = pl.DataFrame({"query_id": ["q1", "q2"], "item_id": ["a", "b"], "grade": [1, 1]})
    assert error_of(Gold.of, frame.with_columns(pl.Series(column, values))).field == column


def test_ids_that_pandas_made_floats_are_refused():
    frame = pd.DataFrame({"query_id": ["q1", "q2"], "item_id": [1, None], "grade": [1, 1]})
    assert error_of(Gold.of, frame).field == "item_id"


@pytest.mark.parametrize("missing", [None, ""])
def test_a_missing_id_is_named_by_its_row(missing):
    frame = pl.DataFrame({"query_id": ["q1", missing], "item_id": ["a", "b"], "grade": [1, 1]})
    error = error_of(Gold.of, frame)
    assert (error.field, "row 2" in error.problem) == ("query_id", True)


def test_infinite_scores_order_a_list():
    scores = {"a": float("-inf"), "b": 0.0, "c": float("inf"), "d": float("-inf")}
    rows = [{"query_id": "q1", "item_id": item, "score": score} for item, score in scores.items()]
    for run in (Run.of({"q1": scores}), Run.of(pl.DataFrame(rows))):
        assert run.results["item_id"].to_list() == ["c", "b", "d", "a"]
        assert karat.evaluate({"q1": ["a"]}, run, "RR").per_query["RR"].to_list() == [1 / 4]


@pytest.mark.parametrize("bad", [float("nan"), None])
def test_a_score_in_a_frame_that_is_not_a_number_is_named_by_its_row(bad):
    frame = pl.DataFrame({"query_id": ["q1", "q1"], "item_id": ["a", "b"], "score": [1.0, bad]})
    error = error_of(Run.of, frame)
    assert (error.field, "row 2" in error.problem) == ("score", True)


@pytest.mark.parametrize("bad", [1.5, float("nan"), None, 1e30])
def test_a_grade_in_a_frame_that_is_not_an_integer_is_named_by_its_row(bad):
    frame = pl.DataFrame({"query_id": ["q1", "q1"], "item_id": ["a", "b"], "grade": [1.0, bad]})
    error = error_of(Gold.of, frame)
    assert (error.field, "row 2" in error.problem) == ("grade", True)


@pytest.mark.parametrize("kind", [Gold, Run])
def test_a_frame_without_rows_is_refused(kind):
    frame = pl.DataFrame(schema={"query_id": pl.String, "item_id": pl.String, "score": pl.Int64})
    error = error_of(kind.of, frame)
    assert (error.field, bool(error.hint)) == (None, True)


def test_a_missing_item_column_is_refused_with_the_columns_of_the_frame():
    error = error_of(Run.of, pl.DataFrame({"query_id": ["q1"], "itemid": ["a"]}))
    assert error.field == "item_id"
    assert "itemid" in error.problem
    assert "itemid to item_id" in error.hint


def test_a_column_of_lists_instead_of_text_is_refused():
    frame = pl.DataFrame({"query_id": ["q1"], "item_id": ["a"], "text": [["x"]]})
    assert error_of(Run.of, frame).field == "text"


# Records


def test_gold_is_made_of_records():
    assert judgments([{"query_id": "q1", "relevant": {"a": 2}}]) == [("q1", "a", 2)]


def test_a_run_is_made_of_records():
    assert ranking([{"query_id": 1, "results": ["b", {"id": "a"}]}]) == [("1", "b"), ("1", "a")]


def test_integers_as_keys_of_a_record_become_decimal_text():
    assert judgments([{"query_id": 1, "relevant": {5: 2}}]) == [("1", "5", 2)]


def test_a_bad_record_is_named_by_its_number():
    error = error_of(Gold.of, [{"query_id": "q1", "relevant": ["a"]}, {"relevant": ["a"]}])
    assert (error.field, "record 2" in error.problem) == ("query_id", True)


@pytest.mark.parametrize("score", [float("nan"), float("inf")])
def test_a_score_in_a_record_that_is_not_finite_is_refused(score):
    error = error_of(Run.of, [{"query_id": "q1", "results": [{"id": "a", "score": score}]}])
    assert error.field == "results[0].score"


@pytest.mark.parametrize("kind", [Gold, Run])
@pytest.mark.parametrize("records", [["q1"], [5], [None], [["q1"]]])
def test_a_record_that_is_not_a_dict_is_refused(kind, records):
    assert "record 1" in error_of(kind.of, records).problem


def test_scores_in_records_that_contradict_their_order_give_a_warning():
    results = [{"id": "a", "score": 1}, {"id": "b", "score": 2}]
    with pytest.warns(KaratWarning, match=r"\b1\b"):
        Run.of([{"query_id": "q1", "results": results}])


# JSON of the pytrec_eval shape


def put(folder: Path, content: str) -> Path:
    path = folder / "data.json"
    path.write_text(content, encoding="utf-8")
    return path


def test_json_of_scores_is_a_run_ranked_by_score(tmp_path):
    run = Run.read(put(tmp_path, '{"q1": {"a": 0.1, "b": 0.9}}'))
    assert run.results.rows() == [("q1", "b", 0.9), ("q1", "a", 0.1)]


def test_json_of_lists_is_a_run_ranked_as_listed(tmp_path):
    run = Run.read(put(tmp_path, '{"q1": ["b", "a"]}'))
    assert run.results.rows() == [("q1", "b"), ("q1", "a")]


def test_json_of_grades_is_gold(tmp_path):
    gold = Gold.read(put(tmp_path, '\n{\n  "q1": {"a": 2, "b": 0}\n}\n'))
    assert gold.judgments.rows() == [("q1", "a", 2), ("q1", "b", 0)]


def test_json_may_hold_an_array_of_records(tmp_path):
    gold = Gold.read(put(tmp_path, '[\n{"query_id": "q1", "relevant": ["a"]}\n]'))
    assert gold.judgments.rows() == [("q1", "a", 1)]


def test_json_is_named_after_its_file(tmp_path):
    assert Run.read(put(tmp_path, '{"q1": ["a"]}')).name == "data"


def test_a_repeated_query_in_json_is_not_lost(tmp_path):
    path = put(tmp_path, '{"q1": {"a": 1}, "q1": {"b": 1}}')
    try:
        assert Gold.read(path).judgments.height == 2
    except InputError as error:
        assert "q1" in error.problem  # noqa: PT017  refusing is correct as well


def test_a_column_of_python_objects_is_refused():
    table = pl.DataFrame(
        {"query_id": ["q"], "item_id": ["a"], "grade": [1], "extra": [object()]},
        schema_overrides={"extra": pl.Object},
    )
    with refused(field="extra"):
        Gold.of(table)


def test_a_run_can_be_restricted_to_some_queries():
    run = Run.of(
        [
            {"query_id": "q1", "results": ["a"], "latency_ms": {"total": 5.0}},
            {"query_id": "q2", "results": [], "latency_ms": {"total": 7.0}},
            {"query_id": "q3", "results": [], "error": {"type": "Timeout", "message": "…"}},
            {"query_id": "q4", "results": ["b"], "calls": [{"stage": "s", "model": "m"}]},
        ]
    )
    some = run.only(["q2", "q4", "q9"])
    assert sorted(some.query_ids) == ["q2", "q4"]
    assert some.empty == ("q2",)
    assert some.results["item_id"].to_list() == ["b"]
    assert (some.failed, run.only(["q3"]).failed) == (0, 1)
    assert some.timings["ms"].to_list() == [7.0]
    assert (some.calls.height, run.only(["q1"]).calls.height) == (1, 0)


def test_a_run_of_dicts_can_be_restricted_to_some_queries():
    run = Run.of({"q1": {"a": 1.0, "b": 2.0}, "q2": {}, "q3": {"c": 1.0}})
    some = run.only(["q1", "q2"])
    assert some.results["item_id"].to_list() == ["b", "a"]
    assert some.empty == ("q2",)
    assert run.only([]).query_ids.to_list() == []


@pytest.mark.parametrize("made", [Gold.of({"q1": {"a": 1}}), Run.of({"q1": {"a": 1.0}})])
def test_gold_and_run_cannot_be_changed_and_can_be_copied(made):
    for copied in (copy.copy(made), copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        assert type(copied) is type(made)
        assert table(copied).equals(table(made))
    with pytest.raises(FrozenInstanceError):
        made.name = "other"


def test_gold_and_run_of_dicts_keep_them_in_a_changed_copy():
    judged, found = {"q1": {"a": 1}}, {"q1": {"a": 1.0}}
    assert Gold.of(judged).counted_in("utf8").mapping == judged
    assert Run.of(found).renamed("other").lists.by_query == found


def test_part_of_a_run_with_32_bit_scores_has_32_bit_scores() -> None:
    lists = Run.of({"q1": {"a": 0.1}, "q2": {"b": 0.2}}).lists
    assert lists is not None
    assert lists.with_32_bit_scores().only(["q2"]).scores.tolist() == [float(np.float32(0.2))]
