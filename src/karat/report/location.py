"""Locations of evidence texts as text: a table of counts, and what a person must look at."""

from __future__ import annotations

from collections.abc import Iterator

from karat.evaluation.location import AMBIGUOUS, NOT_FOUND, Location
from karat.report.terminal import WIDTH, plain_lines, shorten

_MAX_ROWS = 5
_QUERY_WIDTH = 24
_LAST_COLUMN = 10  # the last column and the gaps


def text(located: Location) -> str:
    """Return how many evidence texts had each outcome, then the first that have no span."""
    return "\n".join(_lines(located))


def _lines(located: Location) -> Iterator[str]:
    rows = [[outcome, f"{count:,}"] for outcome, count in located.counts.items()]
    yield from plain_lines(["outcome", "evidence"], rows, 1)
    for outcome in (AMBIGUOUS, NOT_FOUND):
        unplaced = located.report.filter(outcome=outcome)
        if not unplaced.height:
            continue
        rows = [
            [shorten(query, _QUERY_WIDTH), _on_one_line(evidence), f"{places:,}"]
            for query, evidence, places in unplaced.select("query_id", "evidence", "places")
            .head(_MAX_ROWS)
            .iter_rows()
        ]
        yield ""
        yield from plain_lines(["query", outcome, "places"], rows, 2)
        if unplaced.height > _MAX_ROWS:
            yield f"and {unplaced.height - _MAX_ROWS:,} more"


def _on_one_line(text: str) -> str:
    return shorten(" ".join(text.split()), WIDTH - _QUERY_WIDTH - _LAST_COLUMN)
