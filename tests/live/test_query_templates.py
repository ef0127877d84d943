"""Query templates: any query reaches the engine unchanged, and cannot change the template."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat.live.protocol import Search
from karat.live.retrievers.search_engines.template import (
    JsonTemplate,
    SqlTemplate,
    accepted_settings,
    to_parameters,
    values_for,
)
from support.errors import refused

TEXTS = st.text(st.characters(exclude_categories=["Cs"])) | st.sampled_from(
    ['say "hi"', "a\nb", "\\", "{{limit}}", "{{vector}}", '"}, "size": 9, {"', "“5 €” 🙂", "\x00"]
)
VECTORS = st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=5)


@given(TEXTS, VECTORS, st.integers(1, 1000))
def test_request_has_exactly_the_values_whatever_the_query_contains(query, vector, limit):
    template = JsonTemplate.of(
        '{"query": {"match": {"text": "{{query}}"}}, "knn": {"v": {{vector}}}, "size": {{ limit }},'
        ' "note": "{{query}} ({{limit}})", "fixed": [1, null, true, "x"]}',
        "template",
    )
    values = values_for(query, Search(top_k=limit), vector)
    body = json.loads(json.dumps(template.fill(values)))
    assert body == {
        "query": {"match": {"text": query}},
        "knn": {"v": vector},
        "size": limit,
        "note": f"{query} ({limit})",
        "fixed": [1, None, True, "x"],
    }


@given(TEXTS)
def test_filling_does_not_change_the_template(query):
    content = {"query": ["{{query}}"], "size": "{{limit}}"}
    template = JsonTemplate.of(content, "template")
    template.fill(values_for(query, Search(), None))
    assert content == {"query": ["{{query}}"], "size": "{{limit}}"}
    assert template.names == {"query", "limit"}


def test_bare_placeholders_inside_texts_stay_a_part_of_the_text():
    template = JsonTemplate.of(r'{"q": "a \" {{query}}", "size": {{limit}}}', "template")
    assert template.fill({"query": "b", "limit": 2}) == {"q": 'a " b', "size": 2}


def test_template_is_read_from_a_file(tmp_path):
    path = tmp_path / "query.json"
    path.write_text('{"q": "{{query}}", "size": {{limit}}}', encoding="utf-8")
    assert JsonTemplate.of(path, "template").names == {"query", "limit"}
    path.write_text('{"q": "{{query}}",\n "size"', encoding="utf-8")
    with refused(path=str(path), line=2, field="template"):
        JsonTemplate.of(path, "template")


@pytest.mark.parametrize(
    "template",
    [
        {"query": "refund", "size": "{{limit}}"},
        {"query": "{{query}}", "size": 10},
        {"query": "{{qurey}}", "size": "{{limit}}"},
        {"query": "near {{vector}}", "size": "{{limit}}"},
        "[]",
        "{",
        '{"a": ' + "1" * 5000 + "}",
        7,
    ],
)
def test_unusable_template_is_refused(template):
    with refused(path=None, line=None, field="template"):
        JsonTemplate.of(template, "template")


def test_prefetch_limit_is_never_below_the_number_of_results():
    assert values_for("q", Search(top_k=500), None)["prefetch_limit"] == 500
    assert values_for("q", Search(top_k=5, prefetch_limit=50), None)["prefetch_limit"] == 50


def test_settings_are_those_with_a_placeholder():
    assert accepted_settings({"query", "limit"}) == {"top_k"}
    assert accepted_settings({"limit", "prefetch_limit"}) == {"top_k", "prefetch_limit"}


def test_placeholders_of_sql_become_parameters_and_percent_signs_are_kept():
    assert to_parameters("a LIKE '5%' AND b = {{query}} LIMIT {{ limit }}") == (
        "a LIKE '5%%' AND b = %(query)s LIMIT %(limit)s"
    )
    assert to_parameters("e <-> {{vector}}") == "e <-> %(vector)s::vector"


@pytest.mark.parametrize(
    "template",
    [
        "DELETE FROM faq WHERE text = {{query}} LIMIT {{limit}}",
        "SELECT id FROM faq LIMIT {{limit}}",
        "SELECT id FROM faq WHERE text = {{query}}",
        "SELECT id FROM faq WHERE text = '{{query}}' LIMIT {{limit}}",
        b"SELECT",
    ],
)
def test_unusable_sql_is_refused(template):
    with refused(path=None, line=None, field="template"):
        SqlTemplate.of(template)
