"""Markup: every text in it stays text."""

from __future__ import annotations

from unicodedata import category

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from karat.markup import Markup, brief, joined, named, shown, table, tag
from support.markup import Reader

TEXTS = st.text(st.characters() | st.sampled_from("<>&\"'\x00\r\n\t\u2028\u202e\u2066\u061c/!-"))
TURNS = [0x061C, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A)]


def slowly_shown(text: str) -> str:
    visible = ""
    for character in text:
        is_invisible = category(character) in ("Cc", "Cs") and character not in "\n\t"
        if is_invisible or ord(character) in TURNS:
            visible += "⟨U+" + hex(ord(character))[2:].upper().zfill(4) + "⟩"
        else:
            visible += character
    return visible


@given(TEXTS)
@example("two\u2028lines")
def test_invisible_characters_are_made_visible(text: str) -> None:
    assert shown(text) == slowly_shown(text)


@given(TEXTS)
def test_text_stays_text_in_elements_and_attributes(text: str) -> None:
    reader = Reader(tag("p", text, title=text))
    assert reader.elements == [("p", {"title": slowly_shown(text)})]
    assert reader.text == slowly_shown(text)


@given(TEXTS)
def test_markup_can_be_encoded(text: str) -> None:
    made = tag("p", text, [text, tag("b", text)], title=text)
    assert made.encode().decode() == made


def test_children_are_nested_and_none_is_omitted() -> None:
    made = tag("p", None, "a & b", [tag("b", "c"), ["d", None]], class_=None, hidden=True, id=3)
    assert made == '<p hidden id="3">a &amp; b<b>c</b>d</p>'
    assert isinstance(made, Markup)


def test_void_elements_have_no_end_tag() -> None:
    assert tag("meta", http_equiv="x", content='"') == '<meta http-equiv="x" content="&quot;">'


def test_markup_is_not_escaped_twice() -> None:
    assert joined(tag("b", "<"), "<") == "<b>&lt;</b>&lt;"


@given(TEXTS, st.integers(3, 20))
def test_long_text_keeps_both_ends(text: str, most: int) -> None:
    cut = brief(text, most)
    if len(text) <= most:
        assert cut == text
    else:
        head, tail = cut[: most // 2], cut[most // 2 + 1 :]
        assert len(cut) == most
        assert cut[most // 2] == "…"
        assert text.startswith(head)
        assert text.endswith(tail)


def test_names_are_isolated_from_the_text_direction() -> None:
    assert named("abc", 3) == "<bdi>abc</bdi>"


def test_table_has_column_and_row_headers() -> None:
    made = table(["a", "b"], [["1", "2"]])
    assert made == (
        '<table class="numbers"><thead><tr><th scope="col" class="label">a</th>'
        '<th scope="col">b</th></tr></thead><tbody><tr><th scope="row">1</th><td>2</td></tr>'
        "</tbody></table>"
    )


def test_row_that_is_too_short_is_an_error() -> None:
    with pytest.raises(ValueError, match="zip"):
        table(["a", "b"], [["1"]])
