"""A short table for a pull request or a notebook."""

from __future__ import annotations

from collections.abc import Sequence

from karat.report.sheet import Sheet, methods, remarks
from karat.report.tables import group_table, query_table, table_rows


def markdown(sheets: Sequence[Sheet]) -> str:
    """Return measures as rows and runs as columns, and what must stand beside them."""
    heads = ["measure", *(sheet.name for sheet in sheets), "n"]
    parts = [_table(heads, table_rows(sheets))]
    for sheet in sheets:
        parts += [
            f"**{_escape(sheet.name)}**\n\n{_table(*table)}"
            for table in (group_table(sheet), query_table(sheet))
            if table is not None
        ]
    if told := [*methods(sheets), *remarks(sheets)]:
        parts.append("".join(f"- {_escape(remark)}\n" for remark in told))
    return "\n".join(parts)


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    rule = ["---"] + ["---:"] * (len(heads) - 1)
    lines = [map(_escape, heads), rule, *(map(_escape, row) for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")
