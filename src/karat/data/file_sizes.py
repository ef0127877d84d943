"""Estimate how much memory the content of a file takes, before it is read."""

from __future__ import annotations

from collections.abc import Iterable

from karat.data.data_file import DataFile
from karat.errors import InputError

_COMPRESSION = 5
"""The usual compression ratio of text; some files have a much higher one."""
_TABLE_COMPRESSION = 25
"""The highest expected ratio of the size of a table to that of its compressed Parquet file."""


def estimated_bytes(files: Iterable[DataFile], of_text: int, of_table: int) -> int:
    """Return the estimated memory for some files.

    It is `of_text` times the size of each text, and `of_table` times the size of each table.
    """
    from karat.data.formats.table_files import is_table

    return sum(
        of_table * estimated_table_bytes(file) if is_table(file) else of_text * _text_bytes(file)
        for file in files
    )


def estimated_table_bytes(file: DataFile) -> int:
    """Return the approximate size in memory of a Parquet or Arrow file."""
    from karat.data.formats.table_files import size_in_memory

    if file.on_disk:
        return size_in_memory(file)
    return file.path.stat().st_size * _TABLE_COMPRESSION


def _text_bytes(file: DataFile) -> int:
    """Return the approximate size of a text file after decompression, in bytes."""
    size = file.path.stat().st_size
    if file.compression is None:
        return size
    try:
        return int(size * max(file.compression_of_start(), _COMPRESSION))
    except InputError:  # reading the file raises the error
        return size * _COMPRESSION
