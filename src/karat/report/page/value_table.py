"""Parts of sections that are made without templates: buttons, remarks, scrolling tables."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from karat.markup import Markup, brief, named, tag
from karat.report.page.model import Json

# Attributes hold JSON, since an id may contain characters that HTML attributes cannot.


def query_button(query_id: str) -> Markup:
    """Return a button that opens a query."""
    return tag("button", named(query_id, 48), type="button", data_query=json.dumps(query_id))


def show_button(show: Json) -> Markup:
    """Return a button that sets the filters of the table of queries."""
    text = "show these queries"
    return tag("button", text, type="button", class_="show", data_show=json.dumps(show))


MAX_SENTENCE = 2_000
"""Longer sentences are shortened: they contain names of runs, which can have any length."""
SummaryRow = Mapping[str, Any]


def exact_attributes(row: SummaryRow) -> dict[str, str | None]:
    """Return the attributes that hold a value and its interval with all digits."""
    numbers = {f"data_{name}": row.get(name) for name in ("value", "low", "high")}
    return {name: None if value is None else repr(value) for name, value in numbers.items()}


def remark_list(remarks: Sequence[str]) -> Markup | None:
    """Return remarks as a list, or None if there are none."""
    items = [tag("li", named(remark, MAX_SENTENCE)) for remark in remarks]
    return tag("ul", items, class_="remarks") if items else None


def scrollable(table: Markup, label: str) -> Markup:
    """Return a table in a box that scrolls if the table is wider than the page."""
    return tag(
        "div",
        table,
        class_="scroll fitted",
        role="region",
        tabindex=0,
        aria_label=brief(label, 200),
    )
