"""What a retriever returns, read: whatever its shape, the same list gives the same answer."""

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

from karat.data.native_run import Result
from karat.live.adapters.fields import Fields
from karat.live.adapters.results import answer_of
from karat.live.exchange import AttemptError

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
    def __init__(self, held):
        self._held = held

    def __getattr__(self, name):
        try:
            return self.__dict__["_held"][name]
        except KeyError:
            raise AttributeError(name) from None


class Extra:
    """What Pydantic makes of a class that takes more than it declares."""

    def __init__(self, **given):
        self.id = given.pop("id")
        self.__pydantic_extra__ = given

    __pydantic_extra__ = None

    def __getattr__(self, name):
        try:
            return self.__pydantic_extra__[name]
        except (KeyError, TypeError):
            raise AttributeError(name) from None


class WithMethods(SimpleNamespace):
    """What has methods under names that are looked for."""

    def content(self):
        raise AssertionError

    def document(self):
        raise AssertionError


def read(returned, *fields):
    return answer_of(returned, Fields.of(fields)).results


def refused(returned, *fields):
    with pytest.raises(AttemptError) as error:
        answer_of(returned, Fields.of(fields))
    assert error.value.kind == "BadAnswer"
    assert not error.value.again
    assert error.value.message.isprintable()
    return error.value.message


def native(row):
    rest = {key: value for key, value in row.items() if key != "length"}
    return rest | {"end": row["start"] + row["length"]}


@given(st.lists(IDS, max_size=6))
def test_ids_of_any_shape(ids):
    expected = [Result(id=one) for one in ids]
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


@given(st.lists(st.tuples(IDS, SCORES), max_size=6))
def test_pairs_of_any_shape(pairs):
    expected = [Result(id=one, score=score) for one, score in pairs]
    assert read(pairs) == expected
    assert read(list(map(list, pairs))) == expected
    assert read([Pair(*pair) for pair in pairs]) == expected
    assert read([(one, np.float32(score)) for one, score in pairs]) == expected
    assert read(zip(*zip(*pairs, strict=True), strict=True)) == expected
    assert read([{"_id": one, "_score": score} for one, score in pairs]) == expected
    assert read([({"id": one, "score": 7}, score) for one, score in pairs]) == expected
    hits = [{"key": one, "at": {"value": score}} for one, score in pairs]
    assert read({"hits": {"hits": hits}}, "id=key", "score=at.value") == expected


@given(st.dictionaries(IDS, SCORES, max_size=8))
@example({"error": 1.0, "hits": 2.0, "results": 3.0, "score": 4.0})
def test_a_dict_of_scores_is_ranked_by_score_and_then_by_id(scores):
    left, ranked = dict(scores), []
    while left:
        best = max(left.values())
        one = max((one for one in left if left[one] == best), key=str.encode)
        ranked.append(Result(id=one, score=left.pop(one)))
    assert read(scores) == ranked
    assert read({"results": scores}) == ranked


@given(st.lists(WHOLE, max_size=5))
def test_whole_results_of_any_shape(rows):
    rows = list(map(native, rows))
    expected = [Result(**row) for row in rows]
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
    paths = [f"{name}=a.b.0.{name}" for name in Result.__struct_fields__ if name != "tokens"]
    assert read(elsewhere, *paths) == expected
    assert read(elsewhere, *(path for path in paths if path[:4] != "end="), "end=a.b.0.end") == (
        expected
    )


@given(st.lists(WHOLE, min_size=1, max_size=5))
def test_tables_stand_in_the_order_of_their_rank(rows):
    rows = [native(row) | {"rank": rank} for rank, row in enumerate(rows, 1)]
    expected = [
        Result(**{name: value for name, value in row.items() if name != "rank"}) for row in rows
    ]
    frame = pl.DataFrame(rows[::-1])
    assert read(frame) == expected
    assert read(frame.lazy()) == expected
    assert read(frame.to_arrow()) == expected
    assert read(pd.DataFrame(rows[::-1])) == expected


def test_a_table_without_ranks_stands_by_score_and_else_as_it_is():
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
    assert read(one) == read(two) == [Result("a", 0.5), Result("b", 0.25)]
    connection.close()


def test_text_of_numpy_can_be_written():
    assert read(np.array(["a", "b"])) == [Result("a"), Result("b")]
    for returned in (
        np.array(["a"]),
        [(np.str_("a"), 0.5)],
        {np.str_("a"): 0.5},
        [{"id": np.str_("a"), "doc_id": np.str_("d"), "text": np.str_("t")}],
        [{"_id": np.str_("a"), "content": np.str_("t")}],
    ):
        assert b'"id":"a"' in msgspec.json.encode(read(returned))


def test_keys_that_are_no_text():
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
    assert read([{"id": 7, "doc_id": 8}]) == [Result(id="7", doc_id="8")]
    assert read([{"id": 7, "doc_id": 8, "other": 9}]) == [Result(id="7", doc_id="8")]


def test_a_method_under_a_name_of_ours_says_nothing():
    class Hit:
        id = "a"

        def text(self):
            raise AssertionError

    assert read([Hit()]) == [Result(id="a")]


def test_words_that_mean_something_else_are_passed_over():
    result = {
        "id": "a",
        "document": {"title": "t"},
        "metadata": {"start": 12.5, "end": 20.0, "source": ["a", "b"], "score": 5, "text": "words"},
    }
    assert read([result]) == [Result(id="a", text="words")]


def test_a_place_that_langchain_did_not_find_is_none():
    result = SimpleNamespace(
        id=None, page_content="text", metadata={"source": "d", "start_index": -1}
    )
    assert read([result]) == [Result(doc_id="d", text="text")]


def test_a_place_needs_a_document():
    result = SimpleNamespace(id="a", page_content="text", metadata={"start_index": 3})
    assert read([result]) == [Result(id="a", text="text")]


def test_a_start_that_was_named_ends_with_the_text():
    result = {"key": "a", "body": "four", "from": 3}
    fields = ["id=key", "text=body", "start=from"]
    assert read([result], *fields) == [Result(id="a", text="four", start=3, end=7)]


def test_a_start_without_a_text_is_no_place():
    assert read([{"id": "a", "metadata": {"doc_id": "d", "start_index": 3}}]) == [
        Result(id="a", doc_id="d")
    ]


def test_what_is_null_is_not_there():
    nulls = dict.fromkeys(Result.__struct_fields__)
    assert read([nulls | {"id": "a"}]) == [Result(id="a")]
    assert read([{"id": "a", "b": None}], "text=b") == [Result(id="a")]
    assert "neither id, nor place, nor text" in refused([nulls])
    assert "neither id, nor place, nor text" in refused([{"b": None}], "id=b")


def test_a_score_of_a_reranker_stands_in_the_metadata():
    result = SimpleNamespace(id="a", page_content="t", metadata={"relevance_score": 0.5})
    assert read([result]) == [Result(id="a", text="t", score=0.5)]


def test_nodes_as_json_and_nodes_without_a_text():
    node = {"id_": "n", "text": "t", "metadata": {"doc_id": "d"}, "start_char_idx": 2}
    assert read([{"node": node, "score": 0.5}]) == [
        Result(id="n", score=0.5, doc_id="d", start=2, end=3, text="t")
    ]
    bare = SimpleNamespace(node_id="n", metadata={}, get_content=lambda: "t")
    assert read({"source_nodes": [bare]}) == [Result(id="n", text="t")]
    assert read([{"id": "x", "node": "a name"}]) == [Result(id="x")]


def test_what_stands_beside_the_results_is_kept():
    answer = answer_of(
        {
            "results": ["a"],
            "latency_ms": {"rerank": np.float32(2.5), "search": 1},
            "calls": [{"model": "m", "prompt_tokens": 5}],
        },
        NONE,
    )
    assert answer.results == [Result(id="a")]
    assert answer.latency_ms == {"rerank": 2.5, "search": 1.0}
    assert [(call.model, call.prompt_tokens) for call in answer.calls] == [("m", 5)]
    moved = answer_of({"found": [], "took": 12}, Fields.of(["results=found", "latency_ms=took"]))
    assert moved.latency_ms == {"total": 12.0}


def test_a_trace_tells_what_was_not_told_outright():
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
    answer = answer_of({"results": ["a"], "trace": trace, "latency_ms": {"retrieval": 7}}, NONE)
    assert answer.latency_ms == {"retrieval": 7.0, "generation": 2000.0}
    assert [(call.model, call.prompt_tokens) for call in answer.calls] == [("m", 5)]
    told = answer_of({"results": ["a"], "trace": trace, "calls": []}, NONE)
    assert told.calls == []
    assert "trace: a int is no span" in refused({"results": [], "trace": 5})


def test_an_error_that_was_returned_is_one():
    with pytest.raises(AttemptError) as error:
        answer_of({"error": {"type": "Overloaded", "message": "later"}, "results": []}, NONE)
    assert (error.value.kind, error.value.message) == ("Overloaded", "later")
    assert error.value.again
    with pytest.raises(AttemptError, match="no such index"):
        answer_of({"error": "no such index"}, NONE)
    assert read({"error": None, "results": ["a"]}) == [Result(id="a")]


@pytest.mark.parametrize(
    ("returned", "fields", "message"),
    [
        (None, (), "nothing was returned; did the function forget its return?"),
        ("abc", (), "a str was returned"),
        (b"abc", (), "a bytes was returned"),
        ({"a", "b"}, (), "a set has no order"),
        (5, (), "no list of results; it has no keys, being 5"),
        ([0.5], (), "results[0]: 0.5 is no result; ids are text"),
        ([None], (), "results[0]: None is no result"),
        (["a", True], (), "results[1].id: True is no id"),
        ([""], (), "results[0].id: '' is no id"),
        (["a", {"id": 1.5}], (), "results[1].id: 1.5 is no id"),
        ([["a", "b"], [1.0, 0.5]], (), "results[0]: a list of 2 is no result"),
        ([(0.5, "a")], (), "results[0]: a tuple of 2 is no result; return (id, score) pairs"),
        ([("a", 1, 2)], (), "results[0]: a tuple of 3 is no result"),
        ([("a", np.array([0.5]))], (), "results[0]: a tuple of 2 is no result"),
        ([np.array([1, 2])], (), "results[0]: it has neither id"),
        (["a", {"title": "t"}], (), "results[1]: it has neither id, nor place, nor text; it has "
         "the keys title; say where the id stands: --field id=…"),
        ([SimpleNamespace(title="t")], (), "it has as a SimpleNamespace title"),
        ([{"id": "a", "score": float("nan")}], (), "results[0].score: nan is not finite"),
        ([("a", float("inf"))], (), "results[0].score: inf is not finite"),
        ([{"id": "a", "score": "high"}], (), "results[0].score: Expected float | null, got str"),
        ([{"doc_id": "d", "start": -1, "end": 2}], (), "results[0].start: Expected int >= 0"),
        ([{"doc_id": "d", "start": 5, "end": 2}], (), "results[0]: [5, 2) is no stretch of text"),
        ([{"doc_id": "d", "start": 5}], (), "results[0]: [5, None) is no stretch of text"),
        ([{"id": "a", "text": 5}], (), "results[0].text: Expected str | null, got int"),
        (["a\ud800"], (), "'\\ud800' is half a character"),
        ([{"id": "a", "text": "\udcff"}], (), "is half a character"),
        ({"answer": "text"}, (), "there is no list of results in it; it has the keys answer"),
        ({"id": 5, "score": 0.5}, (), "this is one result, and no list"),
        ({"results": "abc"}, (), "no list of results; it has no keys, being 'abc'"),
        ({"a": 1.0, "b": float("nan")}, (), ".score: nan is not finite"),
        ({"hits": []}, ("results=data.hits",), "there is nothing at data.hits; it has the keys"),
        ([{"key": 1}], ("id=_id",), "results[0]: there is nothing at _id; it has the keys key"),
        ([{"id": "a"}], ("text=body",), "text: none of the results has anything at body"),
        ({"results": [], "latency_ms": {"a": -1}}, (), "latency_ms.a: -1.0 is no number of"),
        ({"results": [], "latency_ms": {"a": "x"}}, (), "latency_ms[...]: Expected float, got str"),
        ({"results": [], "calls": [{"cost": 1}]}, (), "unknown field cost"),
    ],
)  # fmt: skip
def test_what_is_no_answer_is_said(returned, fields, message):
    assert message in refused(returned, *fields)


def test_nothing_found_is_an_answer():
    for nothing in ([], (), {}, {"results": []}, {"documents": None}, iter(())):
        assert read(nothing) == []
    assert read([], "text=body") == []


def test_an_item_may_stand_there_twice():
    assert read(["a", "a"]) == [Result(id="a"), Result(id="a")]


def test_a_path_that_one_result_lacks_is_fine():
    assert read([{"id": "a", "b": "t"}, {"id": "c"}], "text=b") == [
        Result(id="a", text="t"),
        Result(id="c"),
    ]
