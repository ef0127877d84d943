"""karat's own format: JSON Lines with one query per line, and an optional header first.

The lines themselves are read and written in `native_gold` and `native_run`.
"""

from __future__ import annotations

import re
from collections.abc import Set

from karat.data.columns import EVIDENCE_LISTS, RELEVANT, RESULTS
from karat.data.data_file import DataFile
from karat.data.formats.base import Format, Kind, unambiguous_kind
from karat.data.formats.native_gold import read_gold, read_gold_pieces, write_gold
from karat.data.formats.native_run import read_run, read_run_pieces, write_run
from karat.data.frames import OLD_CONTEXTS
from karat.files import BYTE_ORDER_MARK, Source

ENDINGS = (".jsonl", ".ndjson")

_NATIVE_KEY = re.compile(rb'"(karat|query_id)"\s*:')
_KIND = re.compile(rb'"kind"\s*:\s*"(gold|run)"')
_KEY = re.compile(rb'"([\w-]+)"\s*:')
_GOLD_KEYS = ("relevant", "spans", "evidence", "answerable")
_RUN_KEYS = ("results", "error", "latency_ms")
# In nested JSON the first value is an object or a list, so any other value means a native line.
_PLAIN_FIRST_VALUE = re.compile(rb'\{\s*"(?:[^"\\]|\\.)*"\s*:\s*[^\s{[]')


def first_line(source: Source) -> bytes:
    """Return the first line that is not blank, as far as it is in the head of the file."""
    return source.head.removeprefix(BYTE_ORDER_MARK).lstrip().split(b"\n", 1)[0]


def sniff(source: Source) -> bool:
    """Return whether the first line is the header or a query of a native file."""
    first = first_line(source)
    return first.startswith(b"{") and (
        source.ending in ENDINGS
        or bool(_NATIVE_KEY.search(first))
        or bool(_PLAIN_FIRST_VALUE.match(first))
    )


def kind(source: DataFile) -> Kind | None:
    """Return the kind from the header, or else from the keys of the first query."""
    first = first_line(source)
    if declared := _KIND.search(first):
        return "gold" if declared[1] == b"gold" else "run"
    return kind_of_keys(source.columns.rename_names(key.decode() for key in _KEY.findall(first)))


def kind_of_keys(keys: Set[str]) -> Kind | None:
    """Return the kind of a native record with these keys."""
    if not keys.isdisjoint((*_GOLD_KEYS, *_RUN_KEYS)):
        return unambiguous_kind(
            gold=not keys.isdisjoint(_GOLD_KEYS), run=not keys.isdisjoint(_RUN_KEYS)
        )
    return unambiguous_kind(
        gold=not keys.isdisjoint((*RELEVANT, *EVIDENCE_LISTS)),
        run=not keys.isdisjoint((*RESULTS, OLD_CONTEXTS)),
    )


FORMAT = Format(
    "jsonl",
    ENDINGS,
    sniff,
    kind,
    read_gold,
    read_run,
    write_gold,
    write_run,
    read_run_pieces=read_run_pieces,
    read_gold_pieces=read_gold_pieces,
)
