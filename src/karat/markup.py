"""HTML elements with automatic escaping: any string that is not `Markup` is escaped."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape

# Control characters except newline and tab, characters that change the text direction, line
# separators (which Vega cannot read in names), and lone surrogates. They are invisible, or change
# how the text around them is displayed.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
_VOID = frozenset({"br", "meta"})


class Markup(str):
    """HTML that needs no escaping. It is made by `tag` and `joined`, never directly from data."""

    __slots__ = ()


Child = str | None | Iterable["Child"]
Attribute = str | int | bool | None


def shown(text: str) -> str:
    r"""Return a text with invisible characters replaced by their code points.

    >>> shown("a\u202eb")
    'a⟨U+202E⟩b'
    """
    return _INVISIBLE.sub(lambda match: f"⟨U+{ord(match[0]):04X}⟩", text)


def brief(text: str, most: int) -> str:
    """Return a text shortened to at most `most` characters.

    The middle is removed, because names usually differ at the start or at the end.

    >>> brief("abcdefgh", 5)
    'ab…gh'
    """
    if len(text) <= most:
        return text
    half = (most - 1) // 2
    return f"{text[: most - 1 - half]}…{text[len(text) - half :]}"


def tag(name: str, /, *children: Child, **attributes: Attribute) -> Markup:
    """Return an HTML element.

    Children are markup, text, or iterables of these. Children that are None and attributes that
    are None or False are omitted. In the names of attributes, underscores become hyphens, and
    trailing underscores are removed.

    >>> tag("th", "a < b", scope="row", data_value="1", class_=None)
    '<th scope="row" data-value="1">a &lt; b</th>'
    """
    parts = [name]
    for key, value in attributes.items():
        attribute = key.rstrip("_").replace("_", "-")
        if value is True:
            parts.append(attribute)
        elif value is not None and value is not False:
            parts.append(f'{attribute}="{escape(shown(str(value)))}"')
    end = "" if name in _VOID else f"</{name}>"
    return Markup(f"<{' '.join(parts)}>{joined(*children)}{end}")


def joined(*children: Child) -> Markup:
    """Return children as one piece of markup, with text escaped."""
    return Markup("".join(map(_to_html, children)))


def table(heads: Sequence[Child], rows: Iterable[Sequence[Child]], n_labels: int = 1) -> Markup:
    """Return a table in which the first `n_labels` columns are labels, aligned to the left."""
    sides = ["label" if column < n_labels else None for column in range(len(heads))]
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
    """Return text from the data, shortened, with its own text direction."""
    return tag("bdi", brief(text, most))


def _to_html(child: Child) -> str:
    if child is None or isinstance(child, Markup):
        return child or ""
    return escape(shown(child)) if isinstance(child, str) else joined(*child)
