"""Buttons that lead to queries; without scripts they do nothing and are not shown."""

from __future__ import annotations

import json

from karat.markup import Markup, named, tag
from karat.report.page.model import Json

# JSON in attributes, as an attribute cannot hold every character an id can.


def query_button(query_id: str) -> Markup:
    """Return a button that opens a query."""
    return tag("button", named(query_id, 48), type="button", data_query=json.dumps(query_id))


def show_button(show: Json) -> Markup:
    """Return a button that sets the table of queries to what is meant."""
    words = "show these queries"
    return tag("button", words, type="button", class_="show", data_show=json.dumps(show))
