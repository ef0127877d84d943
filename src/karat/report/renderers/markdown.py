"""Documents as Markdown, for pull requests and wikis."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from karat.markup import shown
from karat.report.document_model import Cell, Document, FieldList, Notes, Section, Table, TextLines

_SPECIAL = re.compile(r"[\\|*`~$]|(?<=\])[(\[:]|(?<![^\W_])_|_(?![^\W_])")
"""Characters that would be markup; an underscore within a word is not, nor is a lone bracket."""
_ENTITY = re.compile(r"&(?=#?\w+;)")
_SIGNS = {"good": "✅ ", "caution": "⚠️ ", "bad": "❌ ", "neutral": ""}


def markdown(document: Document, *, level: int = 3) -> str:
    """Return a document as Markdown; `level` is the level of its headings."""
    return "\n".join(_parts(document, level))


def _parts(document: Document, level: int) -> Iterator[str]:
    if document.headline is not None:
        sign = _SIGNS[document.headline.tone]
        yield f"**{sign}{escape(document.headline.text)}**\n"
    for section in document.sections:
        yield from _section(section, level)
    if document.notes:
        yield _list(document.notes)
    if document.details:
        yield _folded("Method", document.details)


def _section(section: Section, level: int) -> Iterator[str]:
    if section.heading:
        yield f"{'#' * level} {escape(section.heading)}\n"
    for block in section.blocks:
        match block:
            case Table():
                if block.title:
                    yield f"**{escape(block.title)}**\n"
                yield piped_table(block)
                if block.notes:
                    yield _list(block.notes)
            case FieldList():
                yield "".join(f"- **{escape(k)}**: {escape(v)}\n" for k, v in block.items)
            case Notes():
                yield (
                    _folded("Details", block.sentences)
                    if block.is_detail
                    else _list(block.sentences)
                )
            case TextLines():
                yield _fenced(block.lines)


def _fenced(lines: Sequence[str]) -> str:
    """Return lines as they are, in a fence that none of them can close."""
    body = "\n".join(shown(line) for line in lines)
    longest = max(map(len, re.findall("`+", body)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{body}\n{fence}\n"


def piped_table(table: Table) -> str:
    """Return a table with pipes; marks drawn with characters are left out."""
    columns = [at for at, column in enumerate(table.columns) if column.scale is None]
    heads = [escape(table.columns[at].head) for at in columns]
    rules = ["---" if table.columns[at].align == "left" else "---:" for at in columns]
    rows = [[_cell(row[at]) for at in columns] for row in table.rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in [heads, rules, *rows])


def _cell(cell: Cell) -> str:
    value = escape(cell.text)
    if cell.is_best and value:
        value = f"**{value}**"
    return " ".join(part for part in (value, escape(cell.mark), escape(cell.interval)) if part)


def _list(sentences: Sequence[str]) -> str:
    return "".join(f"- {escape(sentence)}\n" for sentence in sentences)


def _folded(title: str, sentences: Sequence[str]) -> str:
    return f"<details><summary>{title}</summary>\n\n{_list(sentences)}\n</details>\n"


def escape(text: str) -> str:
    r"""Return a text that a cell or a line can hold, and that is shown as it is.

    Texts come from the data: a link or an image in a query must not become one.

    >>> print(escape("a|b <img> ![x](y) &lt; `c` d_e"))
    a\|b &lt;img> ![x]\(y) &amp;lt; \`c\` d_e
    """
    plain = _ENTITY.sub("&amp;", shown(text.replace("\n", " "))).replace("<", "&lt;")
    return _SPECIAL.sub(r"\\\g<0>", plain)
