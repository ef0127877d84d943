"""Check the layout of an Arrow IPC file or stream before Polars reads it.

As with Parquet, Polars trusts the counts and lengths in a file, and damaged ones may end the
process. This module reads the metadata (FlatBuffers) of the footer and of all messages and compares
their values with each other and with the size of the file.

Format: https://arrow.apache.org/docs/format/Columnar.html#serialization-and-interprocess-communication-ipc
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from karat.data.formats.parquet_layout import Buffer, DamagedLayoutError, shared_size

_MAGIC: Final = b"ARROW1"
_CONTINUATION: Final = b"\xff\xff\xff\xff"
_DEEPEST: Final = 64
_BLOCK: Final = "<qixxxxq"
_SCHEMA, _DICTIONARY, _RECORDS = 1, 2, 3

# Types by their number in Schema.fbs, with the number of bits per value in each buffer after the
# validity buffer; None means a buffer of any length.
_FIXED: Final = {3: (16,), 6: (1,), 7: (32,), 8: (32,), 9: (32,), 10: (64,), 11: (32,), 18: (64,)}
_LISTS: Final = {12: (32,), 13: (), 16: (), 17: (32,), 21: (64,), 25: (32, 32), 26: (64, 64)}
_TEXTS: Final = {4: (32, None), 5: (32, None), 19: (64, None), 20: (64, None)}
_BUFFERS: Final[dict[int, tuple[int | None, ...]]] = {
    **_FIXED,
    **_LISTS,
    **_TEXTS,
    1: (),
    2: (8,),
    15: (0,),
    23: (128,),
    24: (128,),
}
Value = TypeVar("Value")
_NULL, _VIEWS = 1, (23, 24)


def expanded_size(data: Buffer) -> int:
    """Return the approximate size of the content in memory, in bytes.

    A damaged layout raises a DamagedLayoutError. A file without the magic bytes of Arrow has the
    size 0: Polars rejects it.
    """
    content = _Content(data)
    try:
        if data[:4] == _CONTINUATION:
            content.read_stream()
        elif data[:6] == _MAGIC and data[len(data) - 6 :] == _MAGIC:
            content.read_file()
    except (struct.error, IndexError) as error:
        raise DamagedLayoutError("the metadata is cut off") from error
    return content.size


class _Content:
    """The schema and the record batches of a file or stream."""

    def __init__(self, data: Buffer) -> None:
        self.data = data
        self.fields: list[_Field] = []
        self.dictionaries: dict[int, tuple[int, int]] = {}
        """Size and number of entries by dictionary id."""
        self.size = 0

    def read_file(self) -> None:
        """Read the batches that the footer lists, dictionaries first."""
        size = len(self.data)
        (length,) = struct.unpack_from("<i", self.data, size - 10)
        end = size - 10 - length
        _require(length > 0 and end >= 8, "the footer is longer than the file")
        footer = _Table.root(self.data[end : size - 10])
        self.fields = _fields(footer.table(1))
        for offset, metadata, body in (*footer.structs(2, _BLOCK), *footer.structs(3, _BLOCK)):
            inside = offset >= 8 and metadata >= 8 and body >= 0 and offset + metadata + body <= end
            _require(inside, "a record batch is outside of the file")
            message, start = self._message(offset)
            _require(start <= offset + metadata, "the metadata of a record batch is too long")
            if message is not None:
                self._add(message, offset + metadata, body)

    def read_stream(self) -> None:
        """Read all messages in order."""
        position = 0
        while position + 8 <= len(self.data):
            message, start = self._message(position)
            if message is None:
                break
            body = message.number(3, "<q")
            _require(0 <= body <= len(self.data) - start, "a record batch is longer than the file")
            if message.number(1, "<B") == _SCHEMA:
                self.fields = _fields(message.table(2))
            else:
                self._add(message, start, body)
            position = start + body

    def _message(self, position: int) -> tuple[_Table | None, int]:
        """Return (message, start of its body); the message is None at the end of the stream."""
        if self.data[position : position + 4] == _CONTINUATION:
            position += 4
        (length,) = struct.unpack_from("<i", self.data, position)
        if length == 0:
            return None, position + 4
        start = position + 4 + length
        _require(length > 0 and start <= len(self.data), "a message is longer than the file")
        return _Table.root(self.data[position + 4 : start]), start

    def _add(self, message: _Table, start: int, body: int) -> None:
        """Check a record batch or a dictionary and add its size."""
        kind, records = message.number(1, "<B"), message.table(2)
        _require(kind in (_DICTIONARY, _RECORDS), "a message has an unknown type")
        _require(message.number(3, "<q") <= body, "a record batch is longer than stated")
        fields, dictionary_id = self.fields, None
        if kind == _DICTIONARY:
            dictionary_id, records = records.number(0, "<q"), records.table(1)
            users = [field for field in _with_children(fields) if field.dictionary == dictionary_id]
            fields = [replace(field, dictionary=None) for field in users[:1]]
        batch = _Batch(records, list(_lengths(self.data, records, start, body)))
        batch.check(fields)
        self.size += batch.size
        if dictionary_id is not None:
            self.dictionaries[dictionary_id] = (batch.size, batch.rows)
        else:
            for field in fields:
                if field.dictionary in self.dictionaries:
                    self.size += shared_size(*self.dictionaries[field.dictionary], batch.rows)


def _lengths(data: Buffer, records: _Table, start: int, body: int) -> Iterator[int]:
    """Yield the uncompressed lengths of the buffers of a record batch."""
    is_compressed = records.has(3)
    for offset, length in records.structs(2, "<qq"):
        inside = offset >= 0 and length >= 0 and offset + length <= body
        _require(inside, "a buffer is outside of its record batch")
        if is_compressed and length > 0:
            _require(length >= 8, "a compressed buffer is too short")
            (full_length,) = struct.unpack_from("<q", data, start + offset)
            _require(full_length >= -1, "a compressed buffer has a negative length")
            # -1 means that this buffer is stored without compression.
            yield length - 8 if full_length == -1 else full_length
        else:
            yield length


@dataclass(frozen=True)
class _Field:
    """A field of the schema."""

    kind: int
    children: list[_Field]
    dictionary: int | None
    """The id of the dictionary with its values, if there is one."""

    @classmethod
    def of(cls, table: _Table, depth: int = 0) -> _Field:
        """Read a field and its children."""
        _require(depth < _DEEPEST, "the schema is nested too deeply")
        children = [cls.of(child, depth + 1) for child in table.tables(5)]
        dictionary = table.table(4).number(0, "<q") if table.has(4) else None
        return cls(table.number(2, "<B"), children, dictionary)


class _Batch:
    """The nodes and buffers of a record batch, in the order of the fields of the schema."""

    def __init__(self, records: _Table, lengths: list[int]) -> None:
        self.rows = records.number(0, "<q")
        nodes = list(records.structs(1, "<qq"))
        self.size = sum(lengths) + sum(length for length, _ in nodes)
        self.nodes = iter(nodes)
        self.lengths = iter(lengths)
        self.variadic = iter([count for (count,) in records.structs(4, "<q")])
        for length, nulls in nodes:
            _require(0 <= nulls <= length, "a column has more nulls than values")

    def check(self, fields: list[_Field]) -> None:
        """Check the fields up to the first with an unknown type."""
        _require(self.rows >= 0, "a record batch has fewer than 0 rows")
        for field in fields:
            if not self._check(field, self.rows):
                break

    def _check(self, field: _Field, rows: int | None) -> bool:
        """Check a field and its children; return False for an unknown type."""
        length = self._next(self.nodes)[0]
        _require(rows is None or length == rows, "a column does not have a value for each row")
        bits_per_value = _BUFFERS.get(field.kind) if field.dictionary is None else (8,)
        if bits_per_value is None:
            return False
        if field.kind == _NULL and field.dictionary is None:
            return True
        validity = self._next(self.lengths)
        _require(validity == 0 or validity * 8 >= length, "a buffer is too short")
        for bits in bits_per_value:
            available = self._next(self.lengths)
            _require(bits is None or available * 8 >= length * bits, "a buffer is too short")
        if field.kind in _VIEWS and field.dictionary is None:
            for _ in range(self._next(self.variadic)):
                self._next(self.lengths)
        if field.dictionary is not None:
            return True
        return all(self._check(child, None) for child in field.children)

    @staticmethod
    def _next(values: Iterator[Value]) -> Value:
        try:
            return next(values)
        except StopIteration as error:
            raise DamagedLayoutError("a column is missing in a record batch") from error


def _fields(schema: _Table) -> list[_Field]:
    return [_Field.of(field) for field in schema.tables(1)]


def _with_children(fields: list[_Field]) -> Iterator[_Field]:
    for field in fields:
        yield field
        yield from _with_children(field.children)


class _Table:
    """A FlatBuffers table; a second table, the vtable, has the offsets of its fields."""

    def __init__(self, data: bytes, position: int) -> None:
        self.data = data
        self.position = position
        (distance,) = struct.unpack_from("<i", data, position)
        self.offsets = position - distance
        _require(0 <= self.offsets <= len(data) - 4, "the metadata points outside of itself")
        (self.size,) = struct.unpack_from("<H", data, self.offsets)

    @classmethod
    def root(cls, data: bytes) -> _Table:
        """Return the table at the start of a buffer."""
        return cls(data, struct.unpack_from("<I", data, 0)[0])

    def _field_position(self, slot: int) -> int | None:
        if 4 + 2 * slot + 2 > self.size:
            return None
        (offset,) = struct.unpack_from("<H", self.data, self.offsets + 4 + 2 * slot)
        return self.position + offset if offset else None

    def has(self, slot: int) -> bool:
        """Return whether a field has a value."""
        return self._field_position(slot) is not None

    def number(self, slot: int, layout: str) -> int:
        """Return a number; 0 if it is missing."""
        position = self._field_position(slot)
        return 0 if position is None else int(struct.unpack_from(layout, self.data, position)[0])

    def table(self, slot: int) -> _Table:
        """Return a table that a field points to."""
        position = self._field_position(slot)
        if position is None:
            raise DamagedLayoutError("a part of the metadata is missing")
        return _Table(self.data, position + struct.unpack_from("<I", self.data, position)[0])

    def _vector(self, slot: int, width: int) -> range:
        """Return the positions of the elements of a vector."""
        position = self._field_position(slot)
        if position is None:
            return range(0)
        start = position + struct.unpack_from("<I", self.data, position)[0]
        (count,) = struct.unpack_from("<I", self.data, start)
        end = start + 4 + count * width
        _require(end <= len(self.data), "a list is longer than the metadata")
        return range(start + 4, end, width)

    def structs(self, slot: int, layout: str) -> Iterator[tuple[int, ...]]:
        """Yield the structs of a vector."""
        for position in self._vector(slot, struct.calcsize(layout)):
            yield struct.unpack_from(layout, self.data, position)

    def tables(self, slot: int) -> Iterator[_Table]:
        """Yield the tables of a vector."""
        for position in self._vector(slot, 4):
            yield _Table(self.data, position + struct.unpack_from("<I", self.data, position)[0])


def _require(condition: bool, problem: str) -> None:
    if not condition:
        raise DamagedLayoutError(problem)
