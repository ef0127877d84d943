"""A short table for a pull request or a notebook."""

from __future__ import annotations

from collections.abc import Sequence

from karat.evaluation.remarks import scoring_notes
from karat.markup import shown
from karat.report.conclusion import of_scores
from karat.report.sheet import Sheet, methods, remarks
from karat.report.tables import group_table, query_table, table_heads, table_rows

_WIDE = 6  # more runs stand below each other


def markdown(sheets: Sequence[Sheet]) -> str:
    """Return which run is best, the values, and what must stand beside them."""
    parts = [f"**{escape(of_scores(sheets))}**\n", values(sheets)]
    for sheet in sheets:
        parts += [
            f"**{escape(sheet.name)}**\n\n{piped(*table)}"
            for table in (group_table(sheet), query_table(sheet))
            if table is not None
        ]
    if told := [*remarks(sheets), *scoring_notes(sheets[0].scores)]:
        parts.append(listed(told))
    if told := methods(sheets):
        parts.append(folded("how the intervals came about", told))
    return "\n".join(parts)


def values(sheets: Sequence[Sheet]) -> str:
    """Return the table of values: runs as columns, or as rows where there are many."""
    heads = table_heads(sheets, [sheet.name for sheet in sheets])
    rows = table_rows(sheets)
    if len(sheets) > _WIDE:
        heads, *rows = map(list, zip(["run", *heads[1:]], *rows, strict=True))
    return piped(heads, rows)


def listed(sentences: Sequence[str]) -> str:
    """Return a list."""
    return "".join(f"- {escape(sentence)}\n" for sentence in sentences)


def folded(title: str, sentences: Sequence[str]) -> str:
    """Return a list that is shown when a person asks for it."""
    return f"<details><summary>{title}</summary>\n\n{listed(sentences)}\n</details>\n"


def piped(heads: Sequence[str], rows: Sequence[Sequence[str]], n_labels: int = 1) -> str:
    """Return a table: labels to the left, numbers to the right."""
    rule = ["---"] * n_labels + ["---:"] * (len(heads) - n_labels)
    lines = [map(escape, heads), rule, *(map(escape, row) for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def escape(text: str) -> str:
    """Return a text that a cell or a line can hold."""
    text = shown(text.replace("\n", " "))
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")
