"""Differences between runs, pair by pair, and the queries with the largest changes."""

from __future__ import annotations

from collections.abc import Iterator

from karat.evaluation.comparison import Moved
from karat.markup import Markup, joined, named, table, tag
from karat.report.cells import format_difference, format_value
from karat.report.comparison import ComparisonSheet
from karat.report.documents.comparison import detail_tables, format_changes, method_notes
from karat.report.page.value_table import query_button, remark_list, scrollable
from karat.report.sheet import interval_methods

_MAX_OPEN_ROWS = 20
"""Longer tables are collapsed."""
_MAX_OPEN_TABLES = 3
"""Any further tables are collapsed: with many runs, only some pairs are of interest."""
_TEXT_LENGTH = 200


def pair_section(sheet: ComparisonSheet) -> Markup:
    """Return the tables of differences, the largest changes, and the notes on the tests."""
    return joined(difference_tables(sheet), _moved_tables(sheet), pair_notes(sheet))


def pair_notes(sheet: ComparisonSheet) -> Markup | None:
    """Return the notes on the tests, without those that the table of values already shows."""
    of_values = interval_methods(sheet.runs)
    new_notes = [note for note in method_notes(sheet) if note not in of_values]
    return remark_list([*new_notes, *sheet.remarks(sheet.names, sheet.measures)])


def difference_tables(sheet: ComparisonSheet) -> Iterator[Markup]:
    """Yield the tables of differences; long ones are collapsed."""
    for at, shown in enumerate(detail_tables(sheet)):
        heads = [column.head for column in shown.columns]
        rows = [[named(cell.full_text) for cell in row] for row in shown.rows]
        yield tag(
            "details",
            tag("summary", named(shown.title, 200)),
            scrollable(table(heads, rows, shown.n_labels), shown.title),
            open=len(rows) <= _MAX_OPEN_ROWS and at < _MAX_OPEN_TABLES,
        )


def _moved_tables(sheet: ComparisonSheet) -> Iterator[Markup]:
    for at, (a, b) in enumerate(sheet.names):
        moved_queries = [moved for moved in sheet.moved if (moved.a, moved.b) == (a, b)]
        if moved_queries:
            measure = sheet.label(moved_queries[0].measure)
            title = f"{b} − {a}: queries with the largest change in {measure}"
            heads = ["query", "text", "changed ranks", "from", "to", "difference"]
            rows = table(heads, [_moved_cells(moved) for moved in moved_queries], n_labels=3)
            yield tag(
                "details",
                tag("summary", named(title, 200)),
                scrollable(rows, title),
                open=at < _MAX_OPEN_TABLES,
            )


def _moved_cells(moved: Moved) -> list[Markup]:
    measure = moved.measure
    return [
        query_button(moved.query_id),
        named(moved.text or "–", _TEXT_LENGTH),
        named(format_changes(moved) or "–", _TEXT_LENGTH),
        named(format_value(moved.value_a, measure)),
        named(format_value(moved.value_b, measure)),
        named(format_difference(moved.difference, measure)),
    ]
