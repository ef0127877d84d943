"""Values of the wrong type: where they are, for every kind of error that msgspec reports."""

import json
from typing import Annotated, Any

import msgspec
import pytest

from karat.data.formats.mismatches import Mismatch


class Item(msgspec.Struct, forbid_unknown_fields=True):
    name: Annotated[str, msgspec.Meta(min_length=1, max_length=3)] | None = None
    share: Annotated[float, msgspec.Meta(gt=0, le=1)] | None = None


class Record(msgspec.Struct):
    id: str | int
    grades: dict[str, Annotated[int, msgspec.Meta(lt=10)]] = {}
    times: dict[str, float] = {}
    items: list[Item] = []
    flag: bool | None = None


@pytest.mark.parametrize(
    ("content", "field", "words"),
    [
        ({}, "id", "missing"),
        ({"id": 1.5}, "id", "must be text or an integer, got 1.5"),
        ({"id": None}, "id", "got null"),
        ({"id": [1]}, "id", "got a list"),
        ({"id": "a", "flag": "no"}, "flag", 'must be true or false, got "no"'),
        ({"id": "a", "grades": {"a": 1, 'b "c]': "high"}}, r'grades["b \"c]"]', 'got "high"'),
        ({"id": "a", "grades": {"a": 1, "b": 10}}, 'grades["b"]', "of at most 9, got 10"),
        ({"id": "a", "grades": {"a": True}}, 'grades["a"]', "got true"),
        ({"id": "a", "times": {"a": 1, "b": {}}}, 'times["b"]', "got an object"),
        ({"id": "a", "items": [{}, {"name": ""}]}, "items[1].name", "must not be empty"),
        ({"id": "a", "items": [{"name": "abcd"}]}, "items[0].name", "at most 3 characters, got 4"),
        ({"id": "a", "items": [{"share": 0}]}, "items[0].share", "a number above 0, got 0"),
        ({"id": "a", "items": [{"share": 1.5}]}, "items[0].share", "of at most 1, got 1.5"),
        ({"id": "a", "items": [{"nam": 1}]}, "items[0].nam", "unknown field 'nam'"),
        ({"id": "a", "items": {}}, "items", "must be a list, got an object"),
        ([], None, "must be an object, got a list"),
    ],
)
def test_error_names_the_field_and_the_value(content, field, words):
    line = json.dumps(content).encode()
    with pytest.raises(msgspec.ValidationError) as caught:
        msgspec.json.decode(line, type=Record)
    for mismatch in (Mismatch.in_line(caught.value, line), Mismatch.of(caught.value, content)):
        assert mismatch.field == field
        assert words in mismatch.problem
        assert "`" not in str(mismatch)


def test_number_past_the_floats_is_located():
    line = b'{"id": "a", "times": {"a": 1, "b": 1e999}}'
    with pytest.raises(msgspec.ValidationError) as caught:
        msgspec.json.decode(line, type=Record)
    assert Mismatch.in_line(caught.value, line).field == 'times["b"]'


def test_key_of_the_wrong_type_is_located():
    content: Any = {"id": "a", "grades": {1.5: 1}}
    with pytest.raises(msgspec.ValidationError) as caught:
        msgspec.convert(content, Record)
    assert Mismatch.of(caught.value, content).field == "grades"


@pytest.mark.parametrize("line", [b'{"id": 1.5, "n": ' + b"9" * 5000 + b"}", b"{"])
def test_line_that_python_cannot_read_shows_the_type(line):
    with pytest.raises(msgspec.ValidationError) as caught:
        msgspec.convert({"id": 1.5}, Record)
    mismatch = Mismatch.in_line(caught.value, line)
    assert mismatch.field == "id"
    assert "got a number" in mismatch.problem
