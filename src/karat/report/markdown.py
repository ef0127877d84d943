"""A short table for a pull request or a notebook."""

from __future__ import annotations

from collections.abc import Sequence

from karat.report.sheet import Sheet, methods, remarks
from karat.report.tables import group_table, query_table, table_rows


def markdown(sheets: Sequence[Sheet]) -> str:
    """Return measures as rows and runs as columns, and what must stand beside them."""
    heads = ["measure", *(sheet.name for sheet in sheets), "n"]
    parts = [piped(heads, table_rows(sheets))]
    for sheet in sheets:
        parts += [
            f"**{escape(sheet.name)}**\n\n{piped(*table)}"
            for table in (group_table(sheet), query_table(sheet))
            if table is not None
        ]
    if told := [*methods(sheets), *remarks(sheets)]:
        parts.append("".join(f"- {escape(remark)}\n" for remark in told))
    return "\n".join(parts)


def piped(heads: Sequence[str], rows: Sequence[Sequence[str]], n_labels: int = 1) -> str:
    """Return a table: labels to the left, numbers to the right."""
    rule = ["---"] * n_labels + ["---:"] * (len(heads) - n_labels)
    lines = [map(escape, heads), rule, *(map(escape, row) for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def escape(text: str) -> str:
    """Return a text that a cell or a line can hold."""
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")
