"""karat's own format: JSON Lines, one query a line, an optional header first."""

from __future__ import annotations

import re
from collections.abc import Set

from karat.data.columns import EVIDENCE_LISTS, RELEVANT, RESULTS
from karat.data.data_file import DataFile
from karat.data.formats.base import Format, Kind, unambiguous_kind
from karat.data.formats.native_gold import read_gold, write_gold
from karat.data.formats.native_run import read_run, write_run
from karat.data.frames import OLD_CONTEXTS
from karat.files import BYTE_ORDER_MARK, Source

ENDINGS = (".jsonl", ".ndjson")

_NATIVE_KEY = re.compile(rb'"(karat|query_id)"\s*:')
_KIND = re.compile(rb'"kind"\s*:\s*"(gold|run)"')
_KEY = re.compile(rb'"([\w-]+)"\s*:')
_GOLD_KEYS = ("relevant", "spans", "evidence")
_RUN_KEYS = ("results", "error", "latency_ms")
# In nested JSON every query holds an object or a list, so a plain first value is a native line's.
_PLAIN_FIRST_VALUE = re.compile(rb'\{\s*"(?:[^"\\]|\\.)*"\s*:\s*[^\s{[]')


def first_line(source: Source) -> bytes:
    """Return the first line that holds something, or as much of it as the head does."""
    return source.head.removeprefix(BYTE_ORDER_MARK).lstrip().split(b"\n", 1)[0]


def sniff(source: Source) -> bool:
    """Tell whether the first line is a header or a query of a native file."""
    first = first_line(source)
    return first.startswith(b"{") and (
        source.ending in ENDINGS
        or bool(_NATIVE_KEY.search(first))
        or bool(_PLAIN_FIRST_VALUE.match(first))
    )


def kind(source: DataFile) -> Kind | None:
    """Tell gold from a run by the header, or else by the keys of the first query."""
    first = first_line(source)
    if told := _KIND.search(first):
        return "gold" if told[1] == b"gold" else "run"
    return kind_of_keys(source.columns.rename_names(key.decode() for key in _KEY.findall(first)))


def kind_of_keys(keys: Set[str]) -> Kind | None:
    """Tell gold from a run by the keys of a native record."""
    known = unambiguous_kind(
        gold=not keys.isdisjoint(_GOLD_KEYS), run=not keys.isdisjoint(_RUN_KEYS)
    )
    if known is not None or not keys.isdisjoint((*_GOLD_KEYS, *_RUN_KEYS)):
        return known
    return unambiguous_kind(
        gold=not keys.isdisjoint((*RELEVANT, *EVIDENCE_LISTS)),
        run=not keys.isdisjoint((*RESULTS, OLD_CONTEXTS)),
    )


FORMAT = Format("jsonl", ENDINGS, sniff, kind, read_gold, read_run, write_gold, write_run)
