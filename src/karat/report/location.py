"""The result of `locate` as text: counts by outcome, and examples that need a decision."""

from __future__ import annotations

from collections.abc import Iterator

from karat.evaluation.location import AMBIGUOUS, NOT_FOUND, Location
from karat.report.terminal import WIDTH, plain_lines, shorten

_MAX_ROWS = 5
_QUERY_WIDTH = 24
_LAST_COLUMN = 11  # the width of the last column and of the gaps


def text(location: Location) -> str:
    """Return the number of evidence texts per outcome, then examples without a span."""
    return "\n".join(_lines(location))


def _lines(location: Location) -> Iterator[str]:
    rows = [[outcome, f"{count:,}"] for outcome, count in location.counts.items()]
    yield from plain_lines(["outcome", "evidence texts"], rows, 1)
    for outcome in (AMBIGUOUS, NOT_FOUND):
        unresolved = location.report.filter(outcome=outcome)
        if not unresolved.height:
            continue
        rows = [
            [shorten(query, _QUERY_WIDTH), _on_one_line(evidence), f"{n_matches:,}"]
            for query, evidence, n_matches in unresolved.select("query_id", "evidence", "places")
            .head(_MAX_ROWS)
            .iter_rows()
        ]
        yield ""
        yield from plain_lines(["query", outcome, "matches"], rows, 2)
        if unresolved.height > _MAX_ROWS:
            yield f"and {unresolved.height - _MAX_ROWS:,} more"


def _on_one_line(text: str) -> str:
    return shorten(" ".join(text.split()), WIDTH - _QUERY_WIDTH - _LAST_COLUMN)
