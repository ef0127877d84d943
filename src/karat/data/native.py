"""karat's own format: JSON Lines, one query a line, an optional header first."""

from __future__ import annotations

import re

from karat.data.files import BYTE_ORDER_MARK
from karat.data.format import Format
from karat.data.native_gold import read_gold, write_gold
from karat.data.native_run import read_run, write_run


def sniff(head: bytes) -> bool:
    """Tell whether the first line is a header or a query of a native file."""
    first = next((line for line in head.split(b"\n") if line.strip()), b"")
    return bool(re.match(rb'\s*\{.*"(karat|query_id)"\s*:', first.removeprefix(BYTE_ORDER_MARK)))


FORMAT = Format("jsonl", (".jsonl", ".ndjson"), sniff, read_gold, read_run, write_gold, write_run)
