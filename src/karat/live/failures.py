"""Messages about the failed queries of a run: how many failed, and what may help."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from karat import checks
from karat.data.formats.native_run import Failure
from karat.data.run import Run
from karat.errors import counted, printable

MAX_FAILED = 0.05
"""Default for the share of queries that may fail."""

_REJECTED = (
    "if the server uses other names for its fields, map them: --field query=question "
    '(fields=["query=question"]); --body (body=) adds fields that it requires'
)
_NO_KEY = (
    "send the key that the server expects: --header 'Authorization: Bearer env:MY_TOKEN' "
    "(headers=), or --header-file FILE"
)
_UNREACHABLE = "check that the server is running, and that its URL is right"
_REJECTED_BY_ENGINE = (
    "correct the template, the filter, or the names of fields (--retriever-option, "
    "retriever_options=)"
)
_HINTS = {
    "HTTP 400": _REJECTED,
    "HTTP 401": _NO_KEY,
    "HTTP 403": _NO_KEY,
    "HTTP 404": "check the path of the URL, and names in it, such as the name of an index",
    "HTTP 415": 'if the server expects URL parameters, use --method GET (method="GET"); if it '
    "expects another content type, set it with --header 'Content-Type: …' (headers=)",
    "HTTP 422": _REJECTED,
    "HTTP 429": "send fewer requests: --rate 2 (rate=), -j 1 (jobs=)",
    "ConnectionError": _UNREACHABLE,
    "Timeout": "allow more time with --timeout SECONDS (timeout=), or run fewer queries at a "
    "time with -j (jobs=)",
}


@dataclass(frozen=True)
class FailedQueries:
    """The failed queries of a run, or of a part of it, by the type of their error."""

    n_queries: int
    """The number of all queries."""
    count_by_type: Mapping[str, int]
    first_by_type: Mapping[str, tuple[str, str]]
    """The first query id by bytes, and the message of its error."""
    settings: Mapping[str, Any]
    """The settings of the run."""

    @classmethod
    def of(cls, run: Run | FailedQueries) -> FailedQueries:
        """Collect the failed queries of a run."""
        if isinstance(run, FailedQueries):
            return run
        if run.errors is None:
            return cls(run.query_ids.len(), {}, {}, run.settings)
        first: dict[str, tuple[str, str]] = {}
        for query_id, kind, message in run.errors.select("query_id", "type", "message").iter_rows():
            first[kind] = min(first.get(kind, (query_id, message)), (query_id, message))
        return cls(run.query_ids.len(), Counter(run.errors["type"]), first, run.settings)

    def merge(self, other: FailedQueries) -> FailedQueries:
        """Return the failed queries of two parts of a run."""
        first = dict(self.first_by_type)
        for kind, example in other.first_by_type.items():
            first[kind] = min(first.get(kind, example), example)
        return FailedQueries(
            self.n_queries + other.n_queries,
            Counter(self.count_by_type) + Counter(other.count_by_type),
            first,
            self.settings or other.settings,
        )

    @property
    def count(self) -> int:
        """The number of failed queries."""
        return sum(self.count_by_type.values())

    @property
    def types(self) -> list[tuple[str, int]]:
        """The types of errors with their counts, the most common first."""
        return sorted(self.count_by_type.items(), key=lambda entry: (-entry[1], entry[0]))

    @property
    def most_common(self) -> str:
        """The most common type of error."""
        return self.types[0][0]


def too_many_failed(run: Run | FailedQueries, share: float, name: str | None = None) -> str | None:
    """Return a message if more than this share of the queries of a run failed."""
    failed = FailedQueries.of(run)
    # A division, because in floating point 0.29 * 100 is less than 29.
    if not failed.count or failed.count / failed.n_queries <= share:
        return None
    problem = failures(failed, f", more than the {share * 100:g}% that may fail")
    hint = hint_for(failed.most_common, failed.settings) or (
        "run the failed queries again (the same `karat run` command does that)"
    )
    prefix = f"{printable(name)}: " if name else ""
    return (
        f"{prefix}{problem}\n  hint: {hint}\n"
        "  --fail-on-error SHARE (fail_on_error=) allows more failures"
    )


def stopped_early(
    failure: Failure,
    count: int,
    settings: Mapping[str, Any],
    output: str | os.PathLike[str] | None,
) -> str:
    """Return the message for a run that was stopped by failures of the same kind in a row."""
    lines = [
        ": ".join(filter(None, [failure.type, failure.message])),
        f"stopped after {counted(count, 'failure')} of this kind in a row (--stop-after-failures, "
        "stop_after_failures=)",
    ]
    if output is not None:
        lines.append(
            f"{printable(str(output))} has all answers so far; the same command continues the run"
        )
    if hint := hint_for(failure.type, settings):
        lines.append(f"hint: {hint}")
    return "\n  ".join(lines)


def hint_for(kind: str, settings: Mapping[str, Any]) -> str | None:
    """Return a hint for a type of failure, or None; `settings` are those of the run.

    >>> hint_for("ConnectionError", {})
    'check that the server is running, and that its URL is right'
    """
    if kind == "HTTP 405":
        used, other = ("GET", "POST") if settings.get("method") == "GET" else ("POST", "GET")
        return (
            f"the server does not accept {used} at this URL: use --method {other} "
            f'(method="{other}"), or check the path'
        )
    if settings.get("engine") and kind in ("HTTP 400", "HTTP 422"):
        return _REJECTED_BY_ENGINE
    if re.fullmatch(r"HTTP 5\d\d", kind):
        return "check the log of the server; the same command runs the failed queries again"
    return _HINTS.get(kind)


def failures(run: Run | FailedQueries, remark: str) -> str:
    """Return a message: the number of failed queries by type, the remark, and an example."""
    failed = FailedQueries.of(run)
    by_type = ", ".join(f"{count:,} {printable(kind)}" for kind, count in failed.types)
    kind = failed.most_common
    query_id, message = failed.first_by_type[kind]
    example = ": ".join(printable(part) for part in (query_id, kind, message) if part)
    return (
        f"{failed.count:,} of {counted(failed.n_queries, 'query')} failed ({by_type}){remark}\n"
        f"  for example {example}"
    )


def checked_share(share: float) -> float:
    """Return the share of queries that may fail; raise an error unless it is from 0 to 1."""
    return checks.share(share, "fail_on_error", hint="0.05 is 5%")
