"""Check the layout of a Parquet file before Polars reads it.

Polars trusts the counts and lengths in a file: with a damaged one it may request more memory than
there is, which ends the process. This module reads the footer and the headers of all pages (Thrift
compact protocol) and compares their values with each other and with the size of the file.

Format: https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift
"""

from __future__ import annotations

import mmap
from typing import Any, Final

Buffer = bytes | mmap.mmap
Fields = dict[int, Any]
"""A Thrift struct: its values by field number."""

_MAGIC: Final = b"PAR1"
_DEEPEST: Final = 24
_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = 1, 2, 3, 7, 8, 9, 10, 11, 12
_DATA_PAGE, _INDEX_PAGE, _DICTIONARY_PAGE, _DATA_PAGE_V2 = range(4)
_REPEATED: Final = 2
_LARGE_DICTIONARY: Final = 1 << 24
_WIDTHS: Final = {0: 1, 1: 4, 2: 8, 3: 12, 4: 4, 5: 8, 6: 16}
"""Number of bytes that Polars needs per value, by physical type; a text has a view of 16 bytes."""


class DamagedLayoutError(ValueError):
    """The lengths and counts in a file contradict each other."""


def expanded_size(data: Buffer) -> int:
    """Return the approximate size of the content in memory, in bytes.

    A damaged layout raises a DamagedLayoutError. A file without the magic bytes of Parquet at both
    ends has the size 0: Polars rejects it.
    """
    footer, end = _footer(data)
    if footer is None:
        return 0
    try:
        return _size_of_groups(data, end, footer)
    except IndexError as error:
        raise DamagedLayoutError("a page is cut off") from error


def metadata_keys(data: Buffer) -> set[bytes]:
    """Return the keys of the metadata that the writer added."""
    footer, _ = _footer(data)
    if footer is None or 5 not in footer:
        return set()
    names = (pair.get(1) for pair in _structs(footer, 5))
    return {name for name in names if isinstance(name, bytes)}


def _footer(data: Buffer) -> tuple[Fields | None, int]:
    """Return the footer and its position; None if this is not a Parquet file."""
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
    _require(sum(rows) == _count(footer, 3), "the row groups do not have as many rows as the file")
    total = 0
    for group, n_rows in zip(groups, rows, strict=True):
        chunks = _structs(group, 1)
        _require(len(chunks) == len(leaves), "a row group does not have all columns")
        for chunk, leaf in zip(chunks, leaves, strict=True):
            total += _chunk_size(data, end, chunk, leaf, n_rows)
    return total


def _leaves(schema: list[Fields]) -> list[tuple[int, bool]]:
    """Return for each column with values its width, and whether it is in a list."""
    _require(bool(schema), "the schema is empty")
    leaves: list[tuple[int, bool]] = []
    # For each open node: the number of children that are still to come, and if it is in a list.
    open_nodes = [(_count(schema[0], 5), False)]
    for element in schema[1:]:
        while open_nodes and open_nodes[-1][0] == 0:
            open_nodes.pop()
        _require(bool(open_nodes), "the schema has too many elements")
        n_remaining, repeated = open_nodes.pop()
        open_nodes.append((n_remaining - 1, repeated))
        repeated = repeated or element.get(3) == _REPEATED
        if 1 not in element:
            open_nodes.append((_count(element, 5), repeated))
            _require(len(open_nodes) < 2000, "the schema is nested too deeply")
        elif element[1] == 7:  # fixed length
            leaves.append((_count(element, 2), repeated))
        else:
            leaves.append((_WIDTHS.get(_count(element, 1), 16), repeated))
    is_complete = all(n_remaining == 0 for n_remaining, _ in open_nodes)
    _require(is_complete, "the schema has too few elements")
    return leaves


def _chunk_size(data: Buffer, end: int, chunk: Fields, leaf: tuple[int, bool], n_rows: int) -> int:
    """Check the pages of a column chunk; return the approximate size of its values in memory."""
    metadata = _struct(chunk, 3)
    width, repeated = leaf
    n_values = _count(metadata, 5)
    _require(repeated or n_values == n_rows, "a column does not have a value for each row")
    position = metadata.get(11) or _count(metadata, 9)  # dictionary page, or first data page
    _require(_count(metadata, 7) <= end, "a column is longer than the file")
    is_compressed = metadata.get(4) != 0
    n_read = size = 0
    while n_read < n_values:
        inside = isinstance(position, int) and 0 < position < end
        _require(inside, "a page is outside of the file")
        thrift = _Thrift(data, position)
        header = thrift.struct()
        stored_size, full_size = _count(header, 3), _count(header, 2)
        position = thrift.position + stored_size
        _require(position <= end, "a page is longer than the file")
        _require(is_compressed or stored_size == full_size, "a page has two different sizes")
        if header.get(1) == _DICTIONARY_PAGE:
            size += shared_size(full_size, _count(_struct(header, 7), 1), n_values)
        n_read += _values_of_page(header, full_size)
        size += full_size
    _require(n_read == n_values, "the pages do not have as many values as their column")
    return size + n_values * width


def shared_size(dictionary: int, entries: int, n_values: int) -> int:
    """Return the approximate size of values that are copies of the entries of a dictionary.

    `dictionary` is its size in bytes. Writers keep dictionaries small, so a small one counts as 0.
    The entries may differ in length, so the result uses their mean length.
    """
    if dictionary <= _LARGE_DICTIONARY:
        return 0
    return n_values * (dictionary // max(entries, 1))


def _values_of_page(header: Fields, full_size: int) -> int:
    """Return the number of column values in a page; a dictionary or index page has none."""
    kind = header.get(1)
    if kind == _DATA_PAGE:
        return _count(_struct(header, 5), 1)
    if kind == _DATA_PAGE_V2:
        page = _struct(header, 8)
        n_values = _count(page, 1)
        _require(_count(page, 2) <= n_values, "a page has more nulls than values")
        _require(_count(page, 3) <= n_values, "a page has more rows than values")
        levels_size = _count(page, 5) + _count(page, 6)
        _require(levels_size <= full_size, "the levels of a page are too long")
        return n_values
    if kind == _DICTIONARY_PAGE:
        # Every entry takes at least one bit.
        _require(_count(_struct(header, 7), 1) <= full_size * 8, "a dictionary is too short")
        return 0
    _require(kind == _INDEX_PAGE, "a page has an unknown type")
    return 0


def _structs(fields: Fields, number: int) -> list[Fields]:
    structs = fields.get(number)
    is_list = isinstance(structs, list) and all(isinstance(item, dict) for item in structs)
    _require(is_list, "a list is missing")
    return structs or []


def _struct(fields: Fields, number: int) -> Fields:
    struct = fields.get(number)
    _require(isinstance(struct, dict), "a header is missing")
    return struct or {}


def _count(fields: Fields, number: int) -> int:
    count = fields.get(number, 0)
    _require(type(count) is int and count >= 0, "a count is negative")
    return int(count)


def _require(condition: bool, problem: str) -> None:
    if not condition:
        raise DamagedLayoutError(problem)


class _Thrift:
    """Reads Thrift structs in the compact protocol."""

    def __init__(self, data: Buffer, position: int) -> None:
        self.data = data
        self.position = position
        self.end = len(data)

    def struct(self, depth: int = 0) -> Fields:
        """Read a struct up to its stop byte."""
        _require(depth < _DEEPEST, "the metadata is nested too deeply")
        fields: Fields = {}
        number = 0
        while head := self.byte():
            step = head >> 4
            number = number + step if step else self.signed()
            fields[number] = self.value(head & 15, depth + 1, in_list=False)
        return fields

    def value(self, kind: int, depth: int, *, in_list: bool) -> Any:
        """Read a value; outside of lists, the type itself says if a boolean is true."""
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
        _require(depth < _DEEPEST, "the metadata is nested too deeply")
        head = self.byte()
        count = head >> 4
        if count == 15:
            count = self.varint()
        _require(count <= self.end - self.position, "a list is longer than the file")
        return [self.value(head & 15, depth + 1, in_list=True) for _ in range(count)]

    def map(self, depth: int) -> None:
        """Skip a map."""
        _require(depth < _DEEPEST, "the metadata is nested too deeply")
        count = self.varint()
        _require(count <= self.end - self.position, "a map is longer than the file")
        kinds = self.byte() if count else 0
        for _ in range(count):
            self.value(kinds >> 4, depth + 1, in_list=True)
            self.value(kinds & 15, depth + 1, in_list=True)

    def byte(self) -> int:
        """Read a byte."""
        self.position += 1
        return self.data[self.position - 1]

    def varint(self) -> int:
        """Read an unsigned number of variable length, seven bits per byte."""
        data, position = self.data, self.position
        byte = data[position]
        number, shift = byte & 127, 7
        while byte > 127:
            position += 1
            byte = data[position]
            number |= (byte & 127) << shift
            shift += 7
            _require(shift < 77, "a number is too long")
        self.position = position + 1
        return number

    def signed(self) -> int:
        """Read a signed number in zigzag encoding."""
        number = self.varint()
        return (number >> 1) ^ -(number & 1)

    def bytes(self, length: int) -> bytes:
        """Read bytes."""
        _require(length <= self.end - self.position, "a text is longer than the file")
        self.position += length
        return self.data[self.position - length : self.position]
