"""Estimate how much memory the content of a file takes, before it is read."""

from __future__ import annotations

from karat.data.data_file import DataFile
from karat.errors import InputError

BINARY = (".parquet", ".arrow", ".feather", ".ipc")
_COMPRESSION = 5
"""How many times as large as its file a compressed text usually is; some are much larger."""
_BINARY_COMPRESSION = 25
"""How many times as large as its file the table of a compressed Parquet file may be."""


def text_bytes(file: DataFile) -> int:
    """Return about how many bytes a text file has when it is not compressed."""
    size = file.path.stat().st_size
    if file.compression is None:
        return size
    try:
        return int(size * max(file.compression_of_start(), _COMPRESSION))
    except InputError:  # reading the file raises the error
        return size * _COMPRESSION


def table_bytes(file: DataFile) -> int:
    """Return about how many bytes the content of a Parquet or Arrow file takes in memory."""
    from karat.data.formats.table_files import is_seekable, size_in_memory

    if is_seekable(file):
        return size_in_memory(file)
    return file.path.stat().st_size * _BINARY_COMPRESSION
