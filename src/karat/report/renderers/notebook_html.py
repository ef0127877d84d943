"""Documents as HTML for notebooks: no scripts, and styles that follow light and dark themes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from karat.markup import Markup, joined, tag
from karat.report.document_model import (
    Cell,
    Document,
    FieldList,
    Notes,
    Section,
    Table,
    TextLines,
    Tone,
)

_COLOURS: dict[Tone, str] = {
    "neutral": "inherit",
    "good": "#1a7f37",
    "caution": "#9a6700",
    "bad": "#cf222e",
}
_MUTED = "opacity:.7;font-size:.9em"


def html(document: Document) -> str:
    """Return a document as a block of HTML."""
    parts = [*_head(document), *(_section(section) for section in document.sections)]
    parts += [_list(sentences) for sentences in (document.notes, document.details) if sentences]
    return str(tag("div", *parts, style="max-width:100%;overflow-x:auto"))


def _head(document: Document) -> Iterator[Markup]:
    if document.headline is not None:
        colour = _COLOURS[document.headline.tone]
        yield tag("p", document.headline.text, style=f"font-weight:600;color:{colour}")


def _section(section: Section) -> Markup:
    parts: list[Markup] = []
    if section.heading:
        parts.append(tag("p", section.heading, style="font-weight:600"))
    for block in section.blocks:
        match block:
            case Table():
                parts.append(_table(block))
            case FieldList():
                rows = [
                    tag(
                        "tr",
                        tag("th", k, style="text-align:left"),
                        tag("td", v, style="text-align:left"),
                    )
                    for k, v in block.items
                ]
                parts.append(tag("table", *rows))
            case Notes():
                parts.append(_list(block.sentences))
            case TextLines():
                parts.append(tag("pre", "\n".join(block.lines)))
    return joined(*parts)


def _table(table: Table) -> Markup:
    columns = [at for at, column in enumerate(table.columns) if column.scale is None]
    heads = [
        tag("th", table.columns[at].head, style=f"text-align:{table.columns[at].align}")
        for at in columns
    ]
    rows = [
        tag("tr", *(_cell(row[at], table.columns[at].align) for at in columns))
        for row in table.rows
    ]
    caption = [tag("caption", table.title, style="text-align:left")] if table.title else []
    body = tag("table", *caption, tag("thead", tag("tr", *heads)), tag("tbody", *rows))
    return joined(body, _list(table.notes)) if table.notes else body


def _cell(cell: Cell, align: str) -> Markup:
    weight = ";font-weight:600" if cell.is_best else ""
    style = f"text-align:{align};color:{_COLOURS[cell.tone]}{weight}"
    parts: list[Markup | str] = [cell.text]
    if cell.mark:
        parts += [" ", tag("sup", cell.mark)]
    if cell.interval:
        parts += [" ", tag("span", cell.interval, style=_MUTED)]
    return tag("td", *parts, style=style)


def _list(sentences: Sequence[str]) -> Markup:
    return tag("ul", *(tag("li", sentence) for sentence in sentences), style=_MUTED)
