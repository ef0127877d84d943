"""Positions in a text of JSON: where a value is, and where the text is not JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

_SPACE = re.compile(r"[ \t\r\n]*")
_STEP = re.compile(r'\[(\d+)\]|\[("(?:[^"\\]|\\.)*")\]|([^.\[\]]+)')
_LAST_COMMA = re.compile(r",[ \t\r\n]*([]}])")

Extent = tuple[int, int]
"""The start and the end of a value, in characters."""


@dataclass(frozen=True)
class Mistake:
    """Why a text is not JSON."""

    problem: str
    position: int
    hint: str | None = None

    @classmethod
    def of(cls, text: str, noun: str, error: json.JSONDecodeError) -> Mistake:
        """Describe an error of Python's JSON reader in a line or in a file."""
        # Python 3.13 reports the position of the comma, earlier versions what follows it.
        comma = _LAST_COMMA.match(text, max(text.rfind(",", 0, error.pos + 1), 0))
        if comma is not None and comma.end() > error.pos:
            last = "item of a list" if comma[1] == "]" else "member of an object"
            return cls(
                f"there is a comma after the last {last}",
                comma.start(),
                f"remove the comma before {comma[1]}",
            )
        is_cut_off = error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated")
        kind = "complete" if is_cut_off else "valid"
        return cls(f"the {noun} is not {kind} JSON ({error.msg.lower()})", error.pos)


def value_extent(text: str, path: str) -> Extent | None:
    """Return where the value at a path such as `results[0].score` or `relevant["a"]` is.

    For a field that is missing, this is the object that should contain it. The result is None if
    not even the first step exists.
    """
    start = after_space(text, 0)
    extent: Extent | None = None
    for step in _STEP.finditer(path):
        index, quoted, name = step.groups()
        key = json.loads(quoted) if quoted else int(index) if index else name
        members = _members(text, start) if text[start] in "{[" else iter(())
        child = next((place for name, place in members if name == key), None)
        if child is None:
            break
        extent, start = child, child[0]
    return extent


def _members(text: str, start: int) -> Iterator[tuple[str | int, Extent]]:
    """Yield the key or index and the extent of each value of an object or a list."""
    decode = json.JSONDecoder().raw_decode
    is_object, index = text[start] == "{", 0
    position = after_space(text, start + 1)
    while text[position] not in "]}":
        key: str | int = index
        if is_object:
            key, position = decode(text, position)
            position = after_space(text, after_space(text, position) + 1)  # the colon
        _, end = decode(text, position)
        yield key, (position, end)
        index, position = index + 1, after_space(text, end)
        if text[position] == ",":
            position = after_space(text, position + 1)


def after_space(text: str, start: int) -> int:
    """Return the position after white space."""
    found = _SPACE.match(text, start)
    assert found is not None
    return found.end()
