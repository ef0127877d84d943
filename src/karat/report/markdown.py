"""Scores as Markdown, for pull requests and notebooks."""

from __future__ import annotations

from collections.abc import Sequence

from karat.evaluation.remarks import scoring_notes
from karat.markup import shown
from karat.report.conclusion import scores_conclusion
from karat.report.sheet import Sheet, interval_methods, remarks
from karat.report.tables import group_table, query_table, table_heads, table_rows

_MAX_RUN_COLUMNS = 6  # more runs become rows instead of columns


def markdown(sheets: Sequence[Sheet]) -> str:
    """Return the conclusion, the values, groups and queries if requested, and the remarks."""
    parts = [f"**{escape(scores_conclusion(sheets))}**\n", value_table(sheets)]
    for sheet in sheets:
        parts += [
            f"**{escape(sheet.name)}**\n\n{pipe_table(*table)}"
            for table in (group_table(sheet), query_table(sheet))
            if table is not None
        ]
    if notes := [*remarks(sheets), *scoring_notes(sheets[0].scores)]:
        parts.append(bullet_list(notes))
    if method_notes := interval_methods(sheets):
        parts.append(details_block("how the intervals were computed", method_notes))
    return "\n".join(parts)


def value_table(sheets: Sequence[Sheet]) -> str:
    """Return the table of values: runs as columns, or as rows if there are many."""
    heads = table_heads(sheets, [sheet.name for sheet in sheets])
    rows = table_rows(sheets)
    if len(sheets) > _MAX_RUN_COLUMNS:
        heads, *rows = map(list, zip(["run", *heads[1:]], *rows, strict=True))
    return pipe_table(heads, rows)


def bullet_list(sentences: Sequence[str]) -> str:
    """Return sentences as a bullet list."""
    return "".join(f"- {escape(sentence)}\n" for sentence in sentences)


def details_block(title: str, sentences: Sequence[str]) -> str:
    """Return sentences as a collapsed list under a title."""
    return f"<details><summary>{title}</summary>\n\n{bullet_list(sentences)}\n</details>\n"


def pipe_table(heads: Sequence[str], rows: Sequence[Sequence[str]], n_labels: int = 1) -> str:
    """Return a table: labels are left-aligned, numbers right-aligned."""
    rule = ["---"] * n_labels + ["---:"] * (len(heads) - n_labels)
    lines = [map(escape, heads), rule, *(map(escape, row) for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def escape(text: str) -> str:
    """Return a text escaped for a table cell or a line."""
    text = shown(text.replace("\n", " "))
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")
