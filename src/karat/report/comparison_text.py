"""A comparison as text: lines, ruled tables in a terminal, Markdown."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from karat.errors import printable
from karat.report.comparison import ComparisonSheet, Moved
from karat.report.comparison_tables import change_words, notes, sections, title
from karat.report.markdown import escape, piped
from karat.report.sheet import remarks
from karat.report.tables import number, signed
from karat.report.terminal import WIDTH, print_wide, short, wide_lines, width_of

_ID_WIDTH = 24
_LEAST_TEXT = 12  # less of a query's text says nothing


def text(sheet: ComparisonSheet) -> str:
    """Return everything as plain text of 80 columns."""
    lines: list[str] = []
    for section in sections(sheet):
        lines += [""] * bool(lines) + [section.title] * bool(section.title)
        lines += wide_lines(section.heads, section.rows, section.n_labels, section.n_last)
    return "\n".join([*lines, *_below(sheet)])


def show(sheet: ComparisonSheet) -> None:
    """Print everything; in a terminal, tables are ruled and as wide as it is."""
    for number_of_section, section in enumerate(sections(sheet)):
        if number_of_section:
            print()
        if section.title:
            print(section.title)
        print_wide(section.heads, section.rows, section.n_labels, n_last=section.n_last)
    print("\n".join(_below(sheet)))


def _below(sheet: ComparisonSheet) -> Iterator[str]:
    """Yield what stands below the tables."""
    for a, b in sheet.names:
        own = [moved for moved in sheet.moved if (moved.a, moved.b) == (a, b)]
        if own:
            yield ""
            measure = own[0].measure
            yield from _wrapped(f"{title(a, b)}: the queries that moved most by {measure}")
            for moved in own:
                yield from _moved(moved)
    yield ""
    for note in _said(sheet):
        yield from _wrapped(printable(note))


def _said(sheet: ComparisonSheet) -> list[str]:
    """Return what must be known beside the numbers."""
    return [*notes(sheet), *sheet.remarks(), *remarks(sheet.runs), *sheet.runs[0].way()]


def _moved(moved: Moved) -> Iterator[str]:
    values = f"{number(moved.value_a, moved.measure)} → {number(moved.value_b, moved.measure)}"
    line = (
        f"  {signed(moved.difference, moved.measure)}  {values}  {short(moved.query_id, _ID_WIDTH)}"
    )
    room = WIDTH - width_of(line) - 2
    if moved.text and room >= _LEAST_TEXT:
        line += f"  {_begun(moved.text, room)}"
    yield line
    whole = change_words(moved).replace(" → ", "\N{NO-BREAK SPACE}→\N{NO-BREAK SPACE}")
    for each in _wrapped(whole, "    ", "    "):
        yield each.replace("\N{NO-BREAK SPACE}", " ")


def _wrapped(words: str, indent: str = "", further: str = "  ") -> list[str]:
    """Break a text into lines; wide characters take room that textwrap does not see."""
    room = min(WIDTH, max(WIDTH // 2, WIDTH - (width_of(words) - len(words))))
    return textwrap.wrap(
        words, room, initial_indent=indent, subsequent_indent=further, break_on_hyphens=False
    )


def _begun(words: str, room: int) -> str:
    """Return how a query begins; unlike names, queries differ at their beginning."""
    words = printable(" ".join(words.split()))
    if width_of(words) <= room:
        return words
    begun = ""
    for character in words:
        if width_of(begun + character) > room - 1:
            break
        begun += character
    return f"{begun.rstrip()}…"


def markdown(sheet: ComparisonSheet) -> str:
    """Return everything as Markdown, for a pull request or a notebook."""
    parts = [
        (f"**{escape(section.title)}**\n\n" if section.title else "")
        + piped(section.heads, section.rows, section.n_labels)
        for section in sections(sheet)
    ]
    if sheet.moved:
        rows = [
            [
                title(moved.a, moved.b),
                moved.query_id,
                moved.text or "",
                change_words(moved),
                signed(moved.difference, moved.measure),
            ]
            for moved in sheet.moved
        ]
        heads = ["pair", "query", "text", "changed", sheet.moved[0].measure]
        parts.append(f"**the queries that moved most**\n\n{piped(heads, rows, 4)}")
    parts.append("".join(f"- {escape(note)}\n" for note in _said(sheet)))
    return "\n".join(parts)
