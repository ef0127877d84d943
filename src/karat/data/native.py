"""karat's own format: JSON Lines, one query a line, an optional header first."""

from __future__ import annotations

import re

from karat.data.files import BYTE_ORDER_MARK
from karat.data.format import Format
from karat.data.native_gold import read_gold, write_gold
from karat.data.native_run import read_run, write_run

ENDINGS = (".jsonl", ".ndjson")

_NATIVE_KEY = re.compile(rb'"(karat|query_id)"\s*:')
# In nested JSON every query holds an object or a list, so a plain first value is a native line's.
_PLAIN_FIRST_VALUE = re.compile(rb'\{\s*"(?:[^"\\]|\\.)*"\s*:\s*[^\s{[]')


def sniff(head: bytes, ending: str) -> bool:
    """Tell whether the first line is a header or a query of a native file."""
    text = head.removeprefix(BYTE_ORDER_MARK).lstrip()
    first = text.split(b"\n", 1)[0]
    return first.startswith(b"{") and (
        ending in ENDINGS
        or bool(_NATIVE_KEY.search(first))
        or bool(_PLAIN_FIRST_VALUE.match(first))
    )


FORMAT = Format("jsonl", ENDINGS, sniff, read_gold, read_run, write_gold, write_run)
