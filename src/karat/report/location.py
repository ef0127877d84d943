"""What became of evidence that was located: a table of counts, and what a person must look at."""

from __future__ import annotations

from typing import Any

from karat.match.locate import AMBIGUOUS, NOT_FOUND, Located
from karat.report.terminal import WIDTH, plain_lines, short

_MOST = 5
_QUERY_WIDTH = 24
_ENDING = 10  # the last column and the gaps


def show(located: Located) -> None:
    """Print how many evidences had each outcome, then the first that were not placed."""
    rows = [[outcome, f"{count:,}"] for outcome, count in located.counts.items()]
    print("\n".join(plain_lines(["outcome", "evidence"], rows, 1)))
    for outcome in (AMBIGUOUS, NOT_FOUND):
        held = located.report.filter(outcome=outcome)
        if not held.height:
            continue
        rows = [
            [short(query, _QUERY_WIDTH), _on_one_line(text), f"{places:,}"]
            for query, text, places in held.select("query_id", "evidence", "places")
            .head(_MOST)
            .iter_rows()
        ]
        print()
        print("\n".join(plain_lines(["query", outcome, "places"], rows, 2)))
        if held.height > _MOST:
            print(f"and {held.height - _MOST:,} more")


def document(located: Located) -> dict[str, Any]:
    """Return the counts, and all that was not placed, as plain data."""
    places = located.places.partition_by("query_id", "evidence", as_dict=True)
    ambiguous = [
        {
            "query_id": query,
            "evidence": text,
            "places": places[query, text].drop("query_id", "evidence").to_dicts(),
        }
        for query, text in located.report.filter(outcome=AMBIGUOUS)
        .select("query_id", "evidence")
        .iter_rows()
    ]
    not_found = located.report.filter(outcome=NOT_FOUND).select("query_id", "evidence").to_dicts()
    return {
        "counts": located.counts,
        "ambiguous": ambiguous,
        "not_found": not_found,
        "incomplete": located.incomplete,
    }


def _on_one_line(text: str) -> str:
    return short(" ".join(text.split()), WIDTH - _QUERY_WIDTH - _ENDING)
