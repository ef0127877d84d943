"""Estimate how much memory the content of a file takes, before it is read."""

from __future__ import annotations

from karat.data.data_file import DataFile

BINARY = (".parquet", ".arrow", ".feather", ".ipc")
_COMPRESSION = 5
"""How many times as large as its file a compressed text usually is."""
_BINARY_COMPRESSION = 25
"""How many times as large as its file the table of a compressed Parquet file may be."""


def text_bytes(file: DataFile) -> int:
    """Return about how many bytes a text file has when it is not compressed."""
    return file.path.stat().st_size * (_COMPRESSION if file.compression else 1)


def table_bytes(file: DataFile) -> int:
    """Return about how many bytes the content of a Parquet or Arrow file takes in memory."""
    from karat.data.formats.table_files import is_seekable, size_in_memory

    if is_seekable(file):
        return size_in_memory(file)
    return file.path.stat().st_size * _BINARY_COMPRESSION
