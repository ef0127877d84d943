"""The layout of a Parquet file, checked before Polars reads it.

Polars trusts the counts and lengths in a file: a damaged one may make it ask for more memory than
there is, which ends the process. This module reads the footer and the headers of all pages (Thrift
compact protocol) and compares what they state with each other and with the size of the file.

Format: https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift
"""

from __future__ import annotations

import mmap
from typing import Any, Final

Buffer = bytes | mmap.mmap
Fields = dict[int, Any]
"""A Thrift struct: its values by the number of their field."""

_MAGIC: Final = b"PAR1"
_DEEPEST: Final = 24
_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = 1, 2, 3, 7, 8, 9, 10, 11, 12
_DATA_PAGE, _INDEX_PAGE, _DICTIONARY_PAGE, _DATA_PAGE_V2 = range(4)
_REPEATED: Final = 2
_LARGE_DICTIONARY: Final = 1 << 24
_WIDTHS: Final = {0: 1, 1: 4, 2: 8, 3: 12, 4: 4, 5: 8, 6: 16}
"""How many bytes Polars needs for one value, by its physical type; texts have 16 for a view."""


class DamagedLayoutError(ValueError):
    """A file whose lengths and counts cannot be right."""


def expanded_size(data: Buffer) -> int:
    """Return about how many bytes the content takes in memory; refuse a damaged layout.

    A file without the signs of Parquet at both ends is not looked at: Polars refuses it.
    """
    footer, end = _footer(data)
    if footer is None:
        return 0
    try:
        return _size_of_groups(data, end, footer)
    except IndexError as error:
        raise DamagedLayoutError("a page is cut off") from error


def metadata_keys(data: Buffer) -> set[bytes]:
    """Return the keys of the metadata that the writer has added."""
    footer, _ = _footer(data)
    if footer is None or 5 not in footer:
        return set()
    names = (pair.get(1) for pair in _structs(footer, 5))
    return {name for name in names if isinstance(name, bytes)}


def _footer(data: Buffer) -> tuple[Fields | None, int]:
    """Return the footer and where it starts."""
    size = len(data)
    if size < 12 or data[:4] != _MAGIC or data[size - 4 : size] != _MAGIC:
        return None, 0
    start = size - 8 - int.from_bytes(data[size - 8 : size - 4], "little")
    _require(start >= len(_MAGIC), "the footer is longer than the file")
    try:
        return _Thrift(data[start : size - 8], 0).struct(), start
    except IndexError as error:
        raise DamagedLayoutError("the footer is cut off") from error


def _size_of_groups(data: Buffer, end: int, footer: Fields) -> int:
    leaves = _leaves(_structs(footer, 2))
    groups = _structs(footer, 4)
    rows = [_count(group, 3) for group in groups]
    _require(sum(rows) == _count(footer, 3), "the row groups do not have the rows of the file")
    total = 0
    for group, n_rows in zip(groups, rows, strict=True):
        chunks = _structs(group, 1)
        _require(len(chunks) == len(leaves), "a row group does not have all columns")
        for chunk, leaf in zip(chunks, leaves, strict=True):
            total += _chunk_size(data, end, chunk, leaf, n_rows)
    return total


def _leaves(schema: list[Fields]) -> list[tuple[int, bool]]:
    """Return width and whether it is in a list for each column with values, from the schema."""
    _require(bool(schema), "the schema is empty")
    leaves: list[tuple[int, bool]] = []
    open_nodes = [(_count(schema[0], 5), False)]  # children that are still to come, in a list?
    for element in schema[1:]:
        while open_nodes and open_nodes[-1][0] == 0:
            open_nodes.pop()
        _require(bool(open_nodes), "the schema has an element too many")
        left, repeated = open_nodes.pop()
        open_nodes.append((left - 1, repeated))
        repeated = repeated or element.get(3) == _REPEATED
        if 1 not in element:
            open_nodes.append((_count(element, 5), repeated))
            _require(len(open_nodes) < 2000, "the schema is nested too deep")
        elif element[1] == 7:  # fixed length
            leaves.append((_count(element, 2), repeated))
        else:
            leaves.append((_WIDTHS.get(_count(element, 1), 16), repeated))
    _require(all(left == 0 for left, _ in open_nodes), "the schema has too few elements")
    return leaves


def _chunk_size(data: Buffer, end: int, chunk: Fields, leaf: tuple[int, bool], n_rows: int) -> int:
    """Walk the pages of a column chunk; return about how many bytes its values take."""
    about = _struct(chunk, 3)
    width, repeated = leaf
    n_values = _count(about, 5)
    _require(repeated or n_values == n_rows, "a column does not have a value for each row")
    at = about.get(11) or _count(about, 9)
    _require(_count(about, 7) <= end, "a column is longer than the file")
    seen = size = 0
    while seen < n_values:
        _require(isinstance(at, int) and 0 < at < end, "a page is outside of the file")
        thrift = _Thrift(data, at)
        header = thrift.struct()
        stored, full = _count(header, 3), _count(header, 2)
        at = thrift.at + stored
        _require(at <= end, "a page is longer than the file")
        _require(about.get(4) != 0 or stored == full, "a page has two sizes")
        if header.get(1) == _DICTIONARY_PAGE:
            size += shared_size(full, _count(_struct(header, 7), 1), n_values)
        seen += _values_of_page(header, full)
        size += full
    _require(seen == n_values, "the pages do not have the values of their column")
    return size + n_values * width


def shared_size(dictionary: int, entries: int, n_values: int) -> int:
    """Return about how many bytes values of a dictionary take if each is a copy of its entry.

    Writers keep dictionaries small, so only a large one counts; its entries may differ in length.
    """
    return n_values * (dictionary // max(entries, 1)) if dictionary > _LARGE_DICTIONARY else 0


def _values_of_page(header: Fields, full: int) -> int:
    """Return how many values of the column a page has; a dictionary has none."""
    kind = header.get(1)
    if kind == _DATA_PAGE:
        return _count(_struct(header, 5), 1)
    if kind == _DATA_PAGE_V2:
        about = _struct(header, 8)
        values = _count(about, 1)
        _require(_count(about, 2) <= values, "a page has more nulls than values")
        _require(_count(about, 3) <= values, "a page has more rows than values")
        _require(_count(about, 5) + _count(about, 6) <= full, "the levels of a page are too long")
        return values
    if kind == _DICTIONARY_PAGE:
        # Every entry takes a bit at least.
        _require(_count(_struct(header, 7), 1) <= full * 8, "a dictionary is too short")
        return 0
    _require(kind == _INDEX_PAGE, "a page is of an unknown kind")
    return 0


def _structs(fields: Fields, number: int) -> list[Fields]:
    found = fields.get(number)
    is_list = isinstance(found, list) and all(isinstance(item, dict) for item in found)
    _require(is_list, "a list is missing")
    return found or []


def _struct(fields: Fields, number: int) -> Fields:
    found = fields.get(number)
    _require(isinstance(found, dict), "a header is missing")
    return found or {}


def _count(fields: Fields, number: int) -> int:
    found = fields.get(number, 0)
    _require(type(found) is int and found >= 0, "a count is negative")
    return int(found)


def _require(condition: bool, problem: str) -> None:
    if not condition:
        raise DamagedLayoutError(problem)


class _Thrift:
    """Reads Thrift structs in the compact protocol."""

    def __init__(self, data: Buffer, at: int) -> None:
        self.data = data
        self.at = at
        self.end = len(data)

    def struct(self, depth: int = 0) -> Fields:
        """Read a struct up to its stop byte."""
        _require(depth < _DEEPEST, "the metadata is nested too deep")
        fields: Fields = {}
        number = 0
        while head := self.byte():
            step = head >> 4
            number = number + step if step else self.signed()
            fields[number] = self.value(head & 15, depth + 1, in_list=False)
        return fields

    def value(self, kind: int, depth: int, *, in_list: bool) -> Any:
        """Read a value of a type."""
        if kind in (_TRUE, _FALSE):
            return self.byte() == _TRUE if in_list else kind == _TRUE
        if kind == _BYTE:
            return self.byte()
        if kind < _DOUBLE:
            return self.signed()
        if kind == _DOUBLE:
            return self.bytes(8)
        if kind == _BINARY:
            return self.bytes(self.varint())
        if kind in (_LIST, _SET):
            return self.list(depth)
        if kind == _STRUCT:
            return self.struct(depth)
        _require(kind == _MAP, "the metadata has an unknown type")
        return self.map(depth)

    def list(self, depth: int) -> list[Any]:
        """Read a list or a set."""
        _require(depth < _DEEPEST, "the metadata is nested too deep")
        head = self.byte()
        count = head >> 4
        if count == 15:
            count = self.varint()
        _require(count <= self.end - self.at, "a list is longer than the file")
        return [self.value(head & 15, depth + 1, in_list=True) for _ in range(count)]

    def map(self, depth: int) -> None:
        """Pass over a map."""
        _require(depth < _DEEPEST, "the metadata is nested too deep")
        count = self.varint()
        _require(count <= self.end - self.at, "a map is longer than the file")
        kinds = self.byte() if count else 0
        for _ in range(count):
            self.value(kinds >> 4, depth + 1, in_list=True)
            self.value(kinds & 15, depth + 1, in_list=True)

    def byte(self) -> int:
        """Read a byte."""
        self.at += 1
        return self.data[self.at - 1]

    def varint(self) -> int:
        """Read a number of any length, seven bits per byte."""
        data, at = self.data, self.at
        byte = data[at]
        number, shift = byte & 127, 7
        while byte > 127:
            at += 1
            byte = data[at]
            number |= (byte & 127) << shift
            shift += 7
            _require(shift < 77, "a number is too long")
        self.at = at + 1
        return number

    def signed(self) -> int:
        """Read a number in zigzag order."""
        number = self.varint()
        return (number >> 1) ^ -(number & 1)

    def bytes(self, length: int) -> bytes:
        """Read bytes."""
        _require(length <= self.end - self.at, "a text is longer than the file")
        self.at += length
        return self.data[self.at - length : self.at]
