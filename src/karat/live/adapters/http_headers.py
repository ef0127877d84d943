"""What the headers of an answer say that matters to a run."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping
from email.utils import parsedate_to_datetime

_QUOTED = r'"(?:[^"\\]|\\.)*"'
# One metric: its name, then parameters, whose values may be quoted and hold commas.
_METRIC = re.compile(
    rf"(?:^|(?<=,))\s*([^\s;,=\"]+)\s*((?:;[^;,\"]*(?:{_QUOTED}[^;,\"]*)?)*)(?:,|$)"
)
_DURATION = re.compile(r";\s*dur\s*=\s*\"?([0-9]+(?:\.[0-9]+)?)\"?\s*(?:;|$)", re.IGNORECASE)
_MOST_MS = 1e15


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return how many seconds a server asks us to wait (RFC 9110, section 10.2.3).

    A date is held against the server's own clock where it tells it.
    """
    told = headers.get("Retry-After", "").strip()
    if told.isascii() and told.isdecimal():
        return float(told)
    until = _seconds(told)
    if until is None:
        return None
    now = _seconds(headers.get("Date", ""))
    return max(0.0, until - (time.time() if now is None else now))


def server_timing(values: Iterable[str]) -> dict[str, float]:
    """Return the milliseconds of each stage of `Server-Timing` headers (W3C Server Timing).

    >>> server_timing(['db;dur=53.2, cache;desc="hit, warm";dur=2, miss', "db;dur=0.8"])
    {'db': 54.0, 'cache': 2.0}
    """
    stages: dict[str, float] = {}
    for value in values:
        for metric in _METRIC.finditer(value):
            duration = _DURATION.search(re.sub(r"desc\s*=\s*" + _QUOTED, "", metric[2]))
            if duration and float(duration[1]) < _MOST_MS:
                stages[metric[1]] = stages.get(metric[1], 0.0) + float(duration[1])
    return stages


def _seconds(date: str) -> float | None:
    try:
        return parsedate_to_datetime(date).timestamp()
    except (ValueError, OverflowError):
        return None
