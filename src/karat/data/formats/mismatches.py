"""What msgspec finds wrong with a value, in plain words and with the place of the value."""

from __future__ import annotations

import json
import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec

from karat.markup import brief

_WORDS = {
    "int": "an integer",
    "float": "a number",
    "str": "text",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}
_TYPES = {bool: "bool", int: "int", float: "float", str: "str", type(None): "null"}
_TYPE_ERROR = re.compile(r"Expected `([^`]+)`, got `([^`]+)`")
_LIMIT_ERROR = re.compile(r"Expected `(\w+)`( of length)? ([<>]=?) (\S+)")
_KEY_ERROR = re.compile(r"Object (?:missing required|contains unknown) field `([^`]+)`")
_LIMITS: dict[str, tuple[str, Callable[[Any, Any], bool]]] = {
    ">=": ("of at least", operator.ge),
    "<=": ("of at most", operator.le),
    ">": ("above", operator.gt),
    "<": ("below", operator.lt),
}
_STEP = re.compile(r"\.(\w+)|\[(\d+)\]|\[(\.\.\.)\]")
_LONGEST_VALUE = 60
_UNKNOWN = object()


@dataclass(frozen=True)
class Mismatch:
    """What is wrong with a value."""

    problem: str
    field: str | None
    """The path of the value, such as `results[0].score`; None for the whole record."""
    hint: str | None = None

    @classmethod
    def of(cls, error: msgspec.ValidationError, record: Any = _UNKNOWN) -> Mismatch:
        """Describe an error of msgspec; `record` is what could not be converted."""
        text, _, location = str(error).partition(" - at ")
        path = location.rpartition("$")[2].rstrip("`")
        if location.startswith("`key`"):
            problem, hint = _problem_and_hint(text, _UNKNOWN)
            return cls(f"a key {problem}", path.lstrip(".") or None, hint)
        value, field = _located(record, path, partial(_is_wrong, text))
        if key := _KEY_ERROR.match(text):
            is_missing = "missing" in text
            problem = "the field is missing" if is_missing else f"unknown field {key[1]!r}"
            return cls(problem, f"{field}.{key[1]}" if field else key[1])
        problem, hint = _problem_and_hint(text, value)
        return cls(problem, field or None, hint)

    @classmethod
    def in_line(cls, error: msgspec.ValidationError, line: bytes) -> Mismatch:
        """Describe an error of msgspec in a line of JSON."""
        try:
            return cls.of(error, json.loads(line))
        except (ValueError, RecursionError):  # such as an integer of thousands of digits
            return cls.of(error)

    def __str__(self) -> str:
        return self.problem if self.field is None else f"{self.field}: {self.problem}"


def _problem_and_hint(text: str, value: Any) -> tuple[str, str | None]:
    if found := _TYPE_ERROR.match(text):
        *expected, is_optional = _expected(found[1])
        got = _WORDS.get(found[2], f"a value of type {found[2]}")
        got = got if value is _UNKNOWN else _shown(value)
        return f"must be {_either(expected)}, got {got}", _hint(expected, is_optional)
    if found := _LIMIT_ERROR.match(text):
        kind, is_length, sign, limit = found.groups()
        if is_length:
            return _length_problem(sign, int(limit), value), None
        got = "" if value is _UNKNOWN else f", got {_shown(value)}"
        number = f"{float(limit):,.0f}" if float(limit).is_integer() else limit
        hint = _hint([_WORDS[kind]], False) if kind == "int" else None
        return f"must be {_WORDS[kind]} {_LIMITS[sign][0]} {number}{got}", hint
    if "out of range" in text:
        return "the number is too large", None
    return text[:1].lower() + text[1:].replace("`", ""), None


def _expected(union: str) -> Iterator[Any]:
    """Yield what is expected in words, and last whether the value may be missing."""
    kinds = union.split(" | ")
    # Ids are text, and may also be integers.
    for kind in sorted(kinds, key=lambda kind: kind != "str"):
        if kind != "null":
            yield _WORDS.get(kind, kind)
    yield "null" in kinds


def _either(words: Sequence[str]) -> str:
    *others, last = words
    return f"{', '.join(others)} or {last}" if others else last


def _hint(expected: Sequence[str], is_optional: bool) -> str | None:
    end = ", or leave out the field" if is_optional else ""
    if expected == [_WORDS["int"]]:
        return f"write an integer such as 0, 1 or 2{end}"
    if expected == [_WORDS["float"]]:
        return f"write a number such as 0.5, without quotes{end}"
    return None


def _length_problem(sign: str, limit: int, value: Any) -> str:
    if sign == ">=" and limit == 1:
        return "must not be empty"
    got = "" if value is _UNKNOWN else f", got {len(value):,}"
    return f"must have {_LIMITS[sign][0].removeprefix('of ')} {limit:,} characters{got}"


def _shown(value: Any) -> str:
    """Return a value of JSON for a message, shortened; of lists and objects only the kind."""
    if type(value) in _TYPES:
        return brief(json.dumps(value, ensure_ascii=False), _LONGEST_VALUE)
    kind = _kind(value)
    return _WORDS[kind] if kind in _WORDS else f"a value of type {type(value).__name__}"


def _kind(value: Any) -> str:
    if isinstance(value, Mapping):
        return "object"
    if isinstance(value, (list, tuple)):
        return "array"
    return _TYPES.get(type(value), type(value).__name__)


def _is_wrong(text: str, value: Any) -> bool:
    """Return whether a value has the problem that msgspec reports."""
    if found := _TYPE_ERROR.match(text):
        return _kind(value) == found[2]
    if found := _LIMIT_ERROR.match(text):
        size = len(value) if found[2] else value
        return not _LIMITS[found[3]][1](size, float(found[4]))
    return isinstance(value, float) and math.isinf(value)


def _located(record: Any, path: str, is_wrong: Callable[[Any], bool]) -> tuple[Any, str]:
    """Return the value at a path, and the path with the key that msgspec writes as [...]."""
    field = ""
    for step in _STEP.finditer(path):
        name, index, _ = step.groups()
        try:
            key: Any = name
            if index is not None:
                key = int(index)
            elif name is None:
                key = next(key for key, value in record.items() if is_wrong(value))
            record = record[key]
        except (TypeError, LookupError, AttributeError, StopIteration):
            return _UNKNOWN, path.lstrip(".")
        is_member = name is None and index is None
        field += f"[{json.dumps(str(key), ensure_ascii=False)}]" if is_member else step[0]
    return record, field.lstrip(".")
