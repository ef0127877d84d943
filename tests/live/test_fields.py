"""Names of fields in karat and in the retriever."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat.live.retrievers.answers import Fields
from support.errors import refused

KEYS = st.text("ab_1", min_size=1, max_size=3).filter(lambda key: not key.isdecimal())


def test_request_is_built_along_the_paths():
    fields = Fields.of(["query=query.match.text", "top_k=size"])
    body = {"query": {"boost": 2}, "track": True}
    built = fields.request({"query": "refunds", "top_k": 5, "score_threshold": 0.4}, body)
    assert built == {
        "query": {"boost": 2, "match": {"text": "refunds"}},
        "size": 5,
        "score_threshold": 0.4,
        "track": True,
    }
    assert body == {"query": {"boost": 2}, "track": True}


def test_element_of_a_list_in_the_body_is_filled():
    fields = Fields.of(["query=messages.1.content"])
    body = {"messages": [{"role": "system"}, {"role": "user"}]}
    built = fields.request({"query": "refunds"}, body)
    assert built["messages"] == [{"role": "system"}, {"role": "user", "content": "refunds"}]
    assert Fields.of(["query=inputs.0"]).request({"query": "a"}, {"inputs": [0]}) == {
        "inputs": ["a"]
    }


def test_setting_with_an_empty_path_is_not_sent():
    fields = Fields.of(["top_k="])
    assert fields.request({"query": "a", "top_k": 5}, {}) == {"query": "a"}
    assert not fields.is_sent("top_k")
    assert fields.is_sent("query")


@pytest.mark.parametrize(
    ("words", "body", "key"),
    [
        (["query=a", "top_k=a.b"], {}, "b"),
        (["query=a.b.c"], {"a": "text"}, "b"),
        (["query=a.3.c"], {"a": [{}]}, "3"),
        (["query=a.3"], {"a": [1]}, "3"),
        (["query=a.x"], {"a": [1]}, "x"),
    ],
)
def test_blocked_path_is_refused(words, body, key):
    with refused(path=None, line=None, field=f"field {words[-1]}") as caught:
        Fields.of(words).request({"query": "q", "top_k": 1}, body)
    assert repr(key) in caught.value.problem


@pytest.mark.parametrize("word", ["id", "ids=_id", "id=", "id=a..b"])
def test_invalid_field_is_refused(word):
    with refused(path=None, line=None, field=f"field {word}") as caught:
        Fields.of([word])
    assert caught.value.hint


def test_hint_suggests_the_field_with_a_similar_name():
    with refused(field="field scores=s") as caught:
        Fields.of(["scores=s"])
    assert "'score'?" in caught.value.hint


def test_field_named_twice_is_refused():
    with refused(field="field id=b"):
        Fields.of(["id=a", "id=b"])


def test_values_are_picked_through_mappings_lists_and_attributes():
    answer = {"hits": [SimpleNamespace(source={"body": "text", "a.b": 1})], "none": None}
    fields = Fields.of(
        ["text=hits.0.source.body", "score=hits.0.source.a.b", "id=hits.1", "doc_id=none.x"]
    )
    assert [fields.get(answer, name) for name in ("text", "score", "id", "doc_id", "start")] == [
        "text",
        1,
        None,
        None,
        None,
    ]


@given(st.lists(KEYS, min_size=1, max_size=4), st.integers())
def test_value_of_a_request_is_picked_by_the_same_path(keys, value):
    fields = Fields.of({"query": ".".join(keys)})
    assert fields.get(fields.request({"query": value}, {}), "query") == value
    assert Fields.of(fields.as_dict()) == fields


@pytest.mark.parametrize("path", ["a" * 1001, ".".join("a" * 101), "a." + "9" * 5000])
def test_very_long_path_is_refused_without_repeating_it(path):
    with refused(field="field query=…") as caught:
        Fields.of([f"query={path}"])
    assert len(str(caught.value)) < 300


def test_path_of_a_hundred_keys_is_filled():
    keys = ["a"] * 100
    request = Fields.of([f"query={'.'.join(keys)}"]).request({"query": "x"}, {})
    for key in keys:
        request = request[key]
    assert request == "x"
