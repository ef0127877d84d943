"""What lies between runs, pair by pair, and the queries that moved."""

from __future__ import annotations

from collections.abc import Iterator

from karat.data.notebook import boxed
from karat.evaluation.comparison import Moved
from karat.markup import Markup, joined, named, table, tag
from karat.report.comparison import ComparisonSheet
from karat.report.comparison_tables import format_changes, notes, pair_title, sections
from karat.report.page.value_table import query_button, remark_list, scrollable, value_section
from karat.report.sheet import interval_methods
from karat.report.tables import format_difference, format_value

_MAX_OPEN_ROWS = 20
"""Longer tables are folded."""
_MAX_OPEN_TABLES = 3
"""Of more tables, these are open: whoever compares many runs comes for some of the pairs."""
_TEXT_LENGTH = 200


def pair_section(sheet: ComparisonSheet) -> Markup:
    """Return the tables of differences, the queries that moved most, and how it was tested."""
    return joined(difference_tables(sheet), _moved_tables(sheet), pair_notes(sheet))


def pair_notes(sheet: ComparisonSheet) -> Markup | None:
    """Return how it was tested, but what is said of the values already."""
    of_values = interval_methods(sheet.runs)
    own = [note for note in notes(sheet) if note not in of_values]
    return remark_list([*own, *sheet.remarks()])


def difference_tables(sheet: ComparisonSheet) -> Iterator[Markup]:
    """Yield the tables of differences, long ones folded."""
    # Without a title are the values, which the headline shows.
    titled = [section for section in sections(sheet) if section.title]
    for at, section in enumerate(titled):
        rows = [[named(cell) for cell in row] for row in section.rows]
        yield tag(
            "details",
            tag("summary", named(section.title, 200)),
            scrollable(table(section.heads, rows, section.n_labels), section.title),
            open=len(rows) <= _MAX_OPEN_ROWS and at < _MAX_OPEN_TABLES,
        )


def _moved_tables(sheet: ComparisonSheet) -> Iterator[Markup]:
    for at, (a, b) in enumerate(sheet.names):
        own = [moved for moved in sheet.moved if (moved.a, moved.b) == (a, b)]
        if own:
            words = (
                f"{pair_title(a, b)}: the queries that moved most by {sheet.label(own[0].measure)}"
            )
            heads = ["query", "text", "what changed", "from", "to", "difference"]
            rows = table(heads, [_moved_cells(each) for each in own], n_labels=3)
            yield tag(
                "details",
                tag("summary", named(words, 200)),
                scrollable(rows, words),
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


def comparison_html(sheet: ComparisonSheet) -> Markup:
    """Return the values of the runs and the differences, as a notebook shows them."""
    return boxed(value_section(sheet.runs, sheet), difference_tables(sheet), pair_notes(sheet))
