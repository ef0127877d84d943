"""Names of fields: ours and theirs."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat.errors import InputError
from karat.live.adapters.fields import Fields

KEYS = st.text("ab_1", min_size=1, max_size=3).filter(lambda key: not key.isdecimal())


def test_a_request_is_built_along_the_paths():
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


def test_a_place_in_a_list_of_the_body_is_filled():
    fields = Fields.of(["query=messages.1.content"])
    body = {"messages": [{"role": "system"}, {"role": "user"}]}
    built = fields.request({"query": "refunds"}, body)
    assert built["messages"] == [{"role": "system"}, {"role": "user", "content": "refunds"}]
    assert Fields.of(["query=inputs.0"]).request({"query": "a"}, {"inputs": [0]}) == {
        "inputs": ["a"]
    }


def test_a_setting_with_an_empty_path_is_not_sent():
    fields = Fields.of(["top_k="])
    assert fields.request({"query": "a", "top_k": 5}, {}) == {"query": "a"}
    assert not fields.sends("top_k")
    assert fields.sends("query")


@pytest.mark.parametrize(
    ("words", "body"),
    [
        (["query=a", "top_k=a.b"], {}),
        (["query=a.b.c"], {"a": "text"}),
        (["query=a.3.c"], {"a": [{}]}),
        (["query=a.3"], {"a": [1]}),
        (["query=a.x"], {"a": [1]}),
    ],
)
def test_a_path_that_is_blocked_is_said(words, body):
    with pytest.raises(InputError, match="cannot stand there"):
        Fields.of(words).request({"query": "q", "top_k": 1}, body)


@pytest.mark.parametrize(
    ("word", "problem"),
    [
        ("id", "there is no ="),
        ("ids=_id", "did you mean id"),
        ("id=", "id is needed"),
        ("id=a..b", "between two dots"),
    ],
)
def test_a_word_that_names_nothing_is_refused(word, problem):
    with pytest.raises(InputError, match=problem):
        Fields.of([word])


def test_a_field_named_twice_is_refused():
    with pytest.raises(InputError, match="named twice"):
        Fields.of(["id=a", "id=b"])


def test_values_are_picked_through_mappings_lists_and_attributes():
    held = {"hits": [SimpleNamespace(source={"body": "text", "a.b": 1})], "none": None}
    fields = Fields.of(
        ["text=hits.0.source.body", "score=hits.0.source.a.b", "id=hits.1", "doc_id=none.x"]
    )
    assert [fields.picked(held, name) for name in ("text", "score", "id", "doc_id", "start")] == [
        "text",
        1,
        None,
        None,
        None,
    ]


@given(st.lists(KEYS, min_size=1, max_size=4), st.integers())
def test_what_was_put_is_picked_again(keys, value):
    fields = Fields.of({"query": ".".join(keys)})
    assert fields.picked(fields.request({"query": value}, {}), "query") == value
    assert Fields.of(fields.as_dict()) == fields
