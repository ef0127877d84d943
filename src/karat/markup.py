"""HTML that is escaped by construction: whatever is not markup already is text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape

# Control characters but newline and tab, what changes the direction of writing or begins a line
# (Vega cannot read that in names), and halves of surrogate pairs: a reader would not see them, or
# see something else than what is there.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
_VOID = frozenset({"br", "meta"})


class Markup(str):
    """HTML as it is to stand in a page; made by `tag` and `joined`, never from data."""

    __slots__ = ()


Child = str | None | Iterable["Child"]
Attribute = str | int | bool | None


def shown(text: str) -> str:
    r"""Return a text with what cannot be seen made visible.

    >>> shown("a\u202eb")
    'a⟨U+202E⟩b'
    """
    return _INVISIBLE.sub(lambda found: f"⟨U+{ord(found[0]):04X}⟩", text)


def brief(text: str, most: int) -> str:
    """Return a text of at most so many characters; names differ at either end, so the middle goes.

    >>> brief("abcdefgh", 5)
    'ab…gh'
    """
    if len(text) <= most:
        return text
    half = (most - 1) // 2
    return f"{text[: most - 1 - half]}…{text[len(text) - half :]}"


def tag(name: str, /, *children: Child, **attributes: Attribute) -> Markup:
    """Return an element; an underscore in an attribute is a hyphen, one at its end nothing.

    Children are markup, text or several of these; None is left out, as are attributes that are
    None or False.

    >>> tag("th", "a < b", scope="row", data_value="1", class_=None)
    '<th scope="row" data-value="1">a &lt; b</th>'
    """
    written = "".join(
        f" {key.rstrip('_').replace('_', '-')}"
        + ("" if value is True else f'="{escape(shown(str(value)))}"')
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    end = "" if name in _VOID else f"</{name}>"
    return Markup(f"<{name}{written}>{joined(*children)}{end}")


def joined(*children: Child) -> Markup:
    """Return children one after the other, text among them escaped."""
    return Markup("".join(map(_to_html, children)))


def table(heads: Sequence[Child], rows: Iterable[Sequence[Child]], n_labels: int = 1) -> Markup:
    """Return a table: labels to the left, numbers to the right."""
    sides = ["label" if at < n_labels else None for at in range(len(heads))]
    top = [
        tag("th", head, scope="col", class_=side) for head, side in zip(heads, sides, strict=True)
    ]
    body = [
        tag(
            "tr",
            tag("th", row[0], scope="row"),
            [tag("td", cell, class_=side) for cell, side in zip(row[1:], sides[1:], strict=True)],
        )
        for row in rows
    ]
    return tag("table", tag("thead", tag("tr", top)), tag("tbody", body), class_="numbers")


def named(text: str, most: int = 80) -> Markup:
    """Return a text of the data, whose direction of writing is its own, cut where it is long."""
    return tag("bdi", brief(text, most))


def _to_html(child: Child) -> str:
    if child is None or isinstance(child, Markup):
        return child or ""
    return escape(shown(child)) if isinstance(child, str) else joined(*child)
