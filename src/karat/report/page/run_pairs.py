"""What lies between runs, pair by pair, and the queries that moved."""

from __future__ import annotations

from collections.abc import Iterator

from karat.data.notebook import boxed
from karat.evaluation.comparison import Moved
from karat.markup import Markup, joined, named, table, tag
from karat.report.comparison import ComparisonSheet
from karat.report.comparison_tables import change_words, notes, sections, title
from karat.report.page.value_table import headline, query_button, scrolled, sentences
from karat.report.sheet import methods
from karat.report.tables import number, signed

_OPEN = 20
"""Longer tables are folded."""
_FIRST = 3
"""Of more tables, these are open: whoever compares many runs comes for some of the pairs."""
_TEXT = 200


def pairs(sheet: ComparisonSheet) -> Markup:
    """Return the tables of differences, the queries that moved most, and how it was tested."""
    return joined(differences(sheet), _all_moved(sheet), said(sheet))


def said(sheet: ComparisonSheet) -> Markup | None:
    """Return how it was tested, but what is said of the values already."""
    of_values = methods(sheet.runs)
    own = [note for note in notes(sheet) if note not in of_values]
    return sentences([*own, *sheet.remarks()])


def differences(sheet: ComparisonSheet) -> Iterator[Markup]:
    """Yield the tables of differences, long ones folded."""
    # Without a title are the values, which the headline shows.
    titled = [section for section in sections(sheet) if section.title]
    for at, section in enumerate(titled):
        rows = [[named(cell) for cell in row] for row in section.rows]
        yield tag(
            "details",
            tag("summary", named(section.title, 200)),
            scrolled(table(section.heads, rows, section.n_labels), section.title),
            open=len(rows) <= _OPEN and at < _FIRST,
        )


def _all_moved(sheet: ComparisonSheet) -> Iterator[Markup]:
    for at, (a, b) in enumerate(sheet.names):
        own = [moved for moved in sheet.moved if (moved.a, moved.b) == (a, b)]
        if own:
            words = f"{title(a, b)}: the queries that moved most by {sheet.label(own[0].measure)}"
            heads = ["query", "text", "what changed", "from", "to", "difference"]
            rows = table(heads, [_moved(each) for each in own], n_labels=3)
            yield tag(
                "details",
                tag("summary", named(words, 200)),
                scrolled(rows, words),
                open=at < _FIRST,
            )


def _moved(moved: Moved) -> list[Markup]:
    measure = moved.measure
    return [
        query_button(moved.query_id),
        named(moved.text or "–", _TEXT),
        named(change_words(moved) or "–", _TEXT),
        named(number(moved.value_a, measure)),
        named(number(moved.value_b, measure)),
        named(signed(moved.difference, measure)),
    ]


def comparison_html(sheet: ComparisonSheet) -> Markup:
    """Return the values of the runs and the differences, as a notebook shows them."""
    return boxed(headline(sheet.runs, sheet), differences(sheet), said(sheet))
