"""Tables of plain text cells."""

from __future__ import annotations

from collections.abc import Sequence

from karat.markup import Child, Markup, tag


def table(heads: Sequence[str], rows: Sequence[Sequence[Child]], n_labels: int = 1) -> Markup:
    """Return a table: labels to the left, numbers to the right."""
    top = tag(
        "tr",
        [tag("th", head, scope="col", class_=_side(at, n_labels)) for at, head in enumerate(heads)],
    )
    body = [
        tag(
            "tr",
            tag("th", row[0], scope="row"),
            [tag("td", cell, class_=_side(at, n_labels)) for at, cell in enumerate(row) if at],
        )
        for row in rows
    ]
    return tag("table", tag("thead", top), tag("tbody", body), class_="values")


def _side(at: int, n_labels: int) -> str | None:
    return "label" if at < n_labels else None
