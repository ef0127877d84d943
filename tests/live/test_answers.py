"""Answers of retrievers: the same results are read alike, whatever their shape."""

from __future__ import annotations

import sqlite3
import uuid
from collections import namedtuple
from dataclasses import dataclass
from types import SimpleNamespace

import msgspec
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from karat.data.formats.native_run import ResultRow
from karat.errors import InputError
from karat.live.protocol import AttemptError
from karat.live.retrievers.answers import Fields, parse_answer
from support.effort import examples

NONE = Fields()
IDS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=6) | st.integers(
    -9, 10**20
).map(str)
SCORES = st.floats(allow_nan=False, allow_infinity=False, width=32)
WHOLE = st.fixed_dictionaries(
    {
        "id": IDS,
        "score": SCORES,
        "doc_id": IDS,
        "start": st.integers(0, 50),
        "length": st.integers(0, 50),
        "text": st.text(st.characters(exclude_categories=["Cs"]), max_size=10),
    }
)
Named = namedtuple("Named", "id score doc_id start end text")
Pair = namedtuple("Pair", "first second")


@dataclass(slots=True)
class Slotted:
    id: str
    score: float
    doc_id: str
    start: int
    end: int
    text: str


class Dynamic:
    def __init__(self, values):
        self._values = values

    def __getattr__(self, name):
        try:
            return self.__dict__["_values"][name]
        except KeyError:
            raise AttributeError(name) from None


class Extra:
    """Like a Pydantic object with more attributes than its class declares."""

    def __init__(self, **values):
        self.id = values.pop("id")
        self.__pydantic_extra__ = values

    __pydantic_extra__ = None

    def __getattr__(self, name):
        try:
            return self.__pydantic_extra__[name]
        except (KeyError, TypeError):
            raise AttributeError(name) from None


class WithMethods(SimpleNamespace):
    """Has methods whose names are those of fields."""

    def content(self):
        raise AssertionError

    def document(self):
        raise AssertionError


def read(returned, *fields):
    return parse_answer(returned, Fields.of(fields)).results


def refusal(returned, *fields):
    """Return the cause of the error for a bad answer, which has the field."""
    with pytest.raises(AttemptError) as caught:
        parse_answer(returned, Fields.of(fields))
    error, cause = caught.value, caught.value.__cause__
    assert (error.kind, error.retryable) == ("BadAnswer", False)
    assert error.message.isprintable()
    assert type(cause) is InputError
    assert error.message.startswith(f"{cause.field}: " if cause.field else "")
    return cause


def native(row):
    rest = {key: value for key, value in row.items() if key != "length"}
    return rest | {"end": row["start"] + row["length"]}


@examples(40, 400)
@given(st.lists(IDS, max_size=6))
def test_ids_of_any_shape(ids):
    expected = [ResultRow(id=one) for one in ids]
    assert read(ids) == expected
    assert read(tuple(ids)) == expected
    assert read(iter(ids)) == expected
    assert read(one for one in ids) == expected
    assert read([{"id": one} for one in ids]) == expected
    assert read([{"_id": one} for one in ids]) == expected
    assert read([(one,) for one in ids]) == expected
    assert read({"results": ids}) == expected
    assert read(SimpleNamespace(results=ids)) == expected
    assert read(pl.Series(ids, dtype=pl.String)) == expected
    assert read(pl.DataFrame({"chunk_id": ids}, schema={"chunk_id": pl.String})) == expected
    assert read({"response": {"docs": ids}}, "results=response.docs") == expected


@examples(40, 400)
@given(st.lists(st.tuples(IDS, SCORES), max_size=6))
def test_pairs_of_any_shape(pairs):
    expected = [ResultRow(id=one, score=score) for one, score in pairs]
    assert read(pairs) == expected
    assert read(list(map(list, pairs))) == expected
    assert read([Pair(*pair) for pair in pairs]) == expected
    assert read([(one, np.float32(score)) for one, score in pairs]) == expected
    assert read(zip(*zip(*pairs, strict=True), strict=True)) == expected
    assert read([{"_id": one, "_score": score} for one, score in pairs]) == expected
    assert read([({"id": one, "score": 7}, score) for one, score in pairs]) == expected
    hits = [{"key": one, "at": {"value": score}} for one, score in pairs]
    assert read({"hits": {"hits": hits}}, "id=key", "score=at.value") == expected


@examples(50, 500)
@given(st.dictionaries(IDS, SCORES, max_size=8))
@example({"error": 1.0, "hits": 2.0, "results": 3.0, "score": 4.0})
def test_dict_of_scores_is_ranked_by_score_and_then_by_id(scores):
    left, ranked = dict(scores), []
    while left:
        best = max(left.values())
        one = max((one for one in left if left[one] == best), key=str.encode)
        ranked.append(ResultRow(id=one, score=left.pop(one)))
    assert read(scores) == ranked
    assert read({"results": scores}) == ranked


@examples(30, 300)
@given(st.lists(WHOLE, max_size=5))
def test_whole_results_of_any_shape(rows):
    rows = list(map(native, rows))
    expected = [ResultRow(**row) for row in rows]
    assert read(rows) == expected
    assert read([row | {"other": 1} for row in rows]) == expected
    assert read([Named(**row) for row in rows]) == expected
    assert read([Slotted(**row) for row in rows]) == expected
    assert read([SimpleNamespace(**row) for row in rows]) == expected
    assert read([WithMethods(**row) for row in rows]) == expected
    assert read([Dynamic(row) for row in rows]) == expected
    assert read([Extra(**row) for row in rows]) == expected
    assert read([row | {"start": np.int64(row["start"])} for row in rows]) == expected
    below = [{"id": r.pop("id"), "score": r.pop("score"), "payload": r} for r in map(dict, rows)]
    assert read(below) == expected
    elsewhere = [{"a": {"b": [row]}} for row in rows]
    paths = [f"{name}=a.b.0.{name}" for name in ResultRow.__struct_fields__ if name != "tokens"]
    assert read(elsewhere, *paths) == expected
    assert read(elsewhere, *(path for path in paths if path[:4] != "end="), "end=a.b.0.end") == (
        expected
    )


@examples(30, 300)
@given(st.lists(WHOLE, min_size=1, max_size=5))
def test_tables_are_read_in_the_order_of_their_ranks(rows):
    rows = [native(row) | {"rank": rank} for rank, row in enumerate(rows, 1)]
    expected = [
        ResultRow(**{name: value for name, value in row.items() if name != "rank"}) for row in rows
    ]
    frame = pl.DataFrame(rows[::-1])
    assert read(frame) == expected
    assert read(frame.lazy()) == expected
    assert read(frame.to_arrow()) == expected
    assert read(pd.DataFrame(rows[::-1])) == expected


def test_table_without_ranks_is_sorted_by_score_or_keeps_its_order():
    assert [r.id for r in read(pl.DataFrame({"id": ["a", "b", "c"], "score": [1, 2, 2]}))] == [
        "c",
        "b",
        "a",
    ]
    assert [r.id for r in read(pa.table({"id": [3, 1, 2], "_distance": [0.1, 0.2, 0.3]}))] == [
        "3",
        "1",
        "2",
    ]
    assert read(pl.DataFrame({"id": []}, schema={"id": pl.String})) == []


def test_rows_of_a_database():
    connection = sqlite3.connect(":memory:")
    one = connection.execute("SELECT 'a', 0.5 UNION SELECT 'b', 0.25").fetchall()
    connection.row_factory = sqlite3.Row
    two = connection.execute("SELECT 'a' AS id, 0.5 AS score UNION SELECT 'b', 0.25").fetchall()
    assert read(one) == read(two) == [ResultRow("a", 0.5), ResultRow("b", 0.25)]
    connection.close()


def test_numpy_text_can_be_written():
    assert read(np.array(["a", "b"])) == [ResultRow("a"), ResultRow("b")]
    for returned in (
        np.array(["a"]),
        [(np.str_("a"), 0.5)],
        {np.str_("a"): 0.5},
        [{"id": np.str_("a"), "doc_id": np.str_("d"), "text": np.str_("t")}],
        [{"_id": np.str_("a"), "content": np.str_("t")}],
    ):
        assert b'"id":"a"' in msgspec.json.encode(read(returned))


def test_keys_of_databases_become_text():
    key = uuid.UUID(int=5)
    mongo = type("ObjectId", (), {"__str__": lambda self: "65f"})()
    assert [
        r.id for r in read([key, {"id": key}, {"_id": mongo}, np.int64(7), [np.str_("x")]])
    ] == [
        str(key),
        str(key),
        "65f",
        "7",
        "x",
    ]


def test_numbers_that_are_ids_become_text():
    assert read([{"id": 7, "doc_id": 8}]) == [ResultRow(id="7", doc_id="8")]
    assert read([{"id": 7, "doc_id": 8, "other": 9}]) == [ResultRow(id="7", doc_id="8")]


def test_method_with_the_name_of_a_field_is_ignored():
    class Hit:
        id = "a"

        def text(self):
            raise AssertionError

    assert read([Hit()]) == [ResultRow(id="a")]


def test_values_of_another_meaning_are_ignored():
    result = {
        "id": "a",
        "document": {"title": "t"},
        "metadata": {"start": 12.5, "end": 20.0, "source": ["a", "b"], "score": 5, "text": "words"},
    }
    assert read([result]) == [ResultRow(id="a", text="words")]


def test_start_index_of_minus_one_is_ignored():
    result = SimpleNamespace(
        id=None, page_content="text", metadata={"source": "d", "start_index": -1}
    )
    assert read([result]) == [ResultRow(doc_id="d", text="text")]


def test_start_without_a_document_is_ignored():
    result = SimpleNamespace(id="a", page_content="text", metadata={"start_index": 3})
    assert read([result]) == [ResultRow(id="a", text="text")]


def test_end_is_derived_from_start_and_text():
    result = {"key": "a", "body": "four", "from": 3}
    fields = ["id=key", "text=body", "start=from"]
    assert read([result], *fields) == [ResultRow(id="a", text="four", start=3, end=7)]


def test_start_without_a_text_is_ignored():
    assert read([{"id": "a", "metadata": {"doc_id": "d", "start_index": 3}}]) == [
        ResultRow(id="a", doc_id="d")
    ]


def test_null_values_are_ignored():
    nulls = dict.fromkeys(ResultRow.__struct_fields__)
    assert read([nulls | {"id": "a"}]) == [ResultRow(id="a")]
    assert read([{"id": "a", "b": None}], "text=b") == [ResultRow(id="a")]
    assert refusal([nulls]).field == "results[0]"
    assert refusal([{"b": None}], "id=b").field == "results[0]"


def test_score_of_a_reranker_is_read_from_the_metadata():
    result = SimpleNamespace(id="a", page_content="t", metadata={"relevance_score": 0.5})
    assert read([result]) == [ResultRow(id="a", text="t", score=0.5)]


def test_nodes_as_json_and_nodes_without_a_text():
    node = {"id_": "n", "text": "t", "metadata": {"doc_id": "d"}, "start_char_idx": 2}
    assert read([{"node": node, "score": 0.5}]) == [
        ResultRow(id="n", score=0.5, doc_id="d", start=2, end=3, text="t")
    ]
    bare = SimpleNamespace(node_id="n", metadata={}, get_content=lambda: "t")
    assert read({"source_nodes": [bare]}) == [ResultRow(id="n", text="t")]
    assert read([{"id": "x", "node": "a name"}]) == [ResultRow(id="x")]


def test_latency_and_calls_next_to_the_results_are_read():
    answer = parse_answer(
        {
            "results": ["a"],
            "latency_ms": {"rerank": np.float32(2.5), "search": 1},
            "calls": [{"model": "m", "prompt_tokens": 5}],
        },
        NONE,
    )
    assert answer.results == [ResultRow(id="a")]
    assert answer.latency_ms == {"rerank": 2.5, "search": 1.0}
    assert [(call.model, call.prompt_tokens) for call in answer.calls] == [("m", 5)]
    moved = parse_answer({"found": [], "took": 12}, Fields.of(["results=found", "latency_ms=took"]))
    assert moved.latency_ms == {"total": 12.0}


def test_trace_supplies_stages_and_calls_that_the_answer_lacks():
    def span(name, kind, seconds, **attributes):
        return {
            "name": name,
            "context": {"trace_id": "t", "span_id": name},
            "start_time": "2026-01-01T00:00:00Z",
            "end_time": f"2026-01-01T00:00:0{seconds}Z",
            "attributes": {"openinference.span.kind": kind, **attributes},
        }

    trace = [
        span("a", "RETRIEVER", 1),
        span("b", "LLM", 2, **{"llm.model_name": "m", "llm.token_count.prompt": 5}),
    ]
    answer = parse_answer({"results": ["a"], "trace": trace, "latency_ms": {"retrieval": 7}}, NONE)
    assert answer.latency_ms == {"retrieval": 7.0, "generation": 2000.0}
    assert [(call.model, call.prompt_tokens) for call in answer.calls] == [("m", 5)]
    assert parse_answer({"results": ["a"], "trace": trace, "calls": []}, NONE).calls == []
    error = refusal({"results": [], "trace": 5})
    assert error.field == "trace"
    assert "int" in error.problem


def test_returned_error_is_a_failed_attempt():
    with pytest.raises(AttemptError) as error:
        parse_answer({"error": {"type": "Overloaded", "message": "later"}, "results": []}, NONE)
    assert (error.value.kind, error.value.message) == ("Overloaded", "later")
    assert error.value.retryable
    with pytest.raises(AttemptError, match="no such index"):
        parse_answer({"error": "no such index"}, NONE)
    assert read({"error": None, "results": ["a"]}) == [ResultRow(id="a")]


@pytest.mark.parametrize(
    ("returned", "fields", "field", "value"),
    [
        (None, (), None, ""),
        ("abc", (), None, "str"),
        (b"abc", (), None, "bytes"),
        ({"a", "b"}, (), None, "set"),
        (5, (), None, "5"),
        ([0.5], (), "results[0]", "0.5"),
        ([None], (), "results[0]", "None"),
        (["a", True], (), "results[1].id", "True"),
        ([""], (), "results[0].id", "''"),
        (["a", {"id": 1.5}], (), "results[1].id", "1.5"),
        ([["a", "b"], [1.0, 0.5]], (), "results[0]", "list"),
        ([(0.5, "a")], (), "results[0]", "tuple"),
        ([("a", 1, 2)], (), "results[0]", "tuple"),
        ([("a", np.array([0.5]))], (), "results[0]", "tuple"),
        ([np.array([1, 2])], (), "results[0]", "ndarray"),
        (["a", {"title": "t"}], (), "results[1]", "title"),
        ([SimpleNamespace(title="t")], (), "results[0]", "title"),
        ([{"id": "a", "score": float("nan")}], (), "results[0].score", "nan"),
        ([("a", float("inf"))], (), "results[0].score", "inf"),
        ([{"id": "a", "score": "high"}], (), "results[0].score", '"high"'),
        ([{"doc_id": "d", "start": -1, "end": 2}], (), "results[0].start", ""),
        ([{"doc_id": "d", "start": 5, "end": 2}], (), "results[0]", "[5, 2)"),
        ([{"doc_id": "d", "start": 5}], (), "results[0]", "[5, None)"),
        ([{"id": "a", "text": 5}], (), "results[0].text", "5"),
        (["a\ud800"], (), None, "'\\ud800'"),
        ([{"id": "a", "text": "\udcff"}], (), None, "'\\udcff'"),
        ({"answer": "text"}, (), None, "answer"),
        ({"query_id": 7, "a": 0.5}, (), None, "query_id"),
        ({"id": 5, "score": 0.5}, (), None, ""),
        ({"results": "abc"}, (), None, "'abc'"),
        ({"a": 1.0, "b": float("nan")}, (), "results[1].score", "nan"),
        ({"hits": []}, ("results=data.hits",), None, "data.hits"),
        ([{"key": 1}], ("id=_id",), "results[0]", "_id"),
        ([{"id": "a"}], ("text=body",), "text", "body"),
        ({"results": [], "latency_ms": {"a": -1}}, (), "latency_ms.a", "-1.0"),
        ({"results": [], "latency_ms": {"a": "x"}}, (), 'latency_ms["a"]', '"x"'),
        ({"results": [], "calls": [{"cost": 1}]}, (), "calls[0].cost", "cost"),
    ],
)
def test_invalid_answer_is_refused(returned, fields, field, value):
    error = refusal(returned, *fields)
    assert error.field == field
    assert value in error.problem
    assert error.hint


def test_empty_answer_has_no_results():
    for empty in ([], (), {}, {"results": []}, {"documents": None}, iter(())):
        assert read(empty) == []
    assert read([], "text=body") == []


def test_item_may_occur_twice():
    assert read(["a", "a"]) == [ResultRow(id="a"), ResultRow(id="a")]


def test_path_may_be_missing_in_some_results():
    assert read([{"id": "a", "b": "t"}, {"id": "c"}], "text=b") == [
        ResultRow(id="a", text="t"),
        ResultRow(id="c"),
    ]
