"""A short table for a pull request or a notebook."""

from __future__ import annotations

from collections.abc import Sequence

from karat.evaluation.remarks import scoring_notes
from karat.markup import shown
from karat.report.conclusion import scores_conclusion
from karat.report.sheet import Sheet, interval_methods, remarks
from karat.report.tables import group_table, query_table, table_heads, table_rows

_MAX_RUN_COLUMNS = 6  # more runs stand below each other


def markdown(sheets: Sequence[Sheet]) -> str:
    """Return which run is best, the values, and what must stand beside them."""
    parts = [f"**{escape(scores_conclusion(sheets))}**\n", value_table(sheets)]
    for sheet in sheets:
        parts += [
            f"**{escape(sheet.name)}**\n\n{pipe_table(*table)}"
            for table in (group_table(sheet), query_table(sheet))
            if table is not None
        ]
    if told := [*remarks(sheets), *scoring_notes(sheets[0].scores)]:
        parts.append(bullet_list(told))
    if told := interval_methods(sheets):
        parts.append(details_block("how the intervals came about", told))
    return "\n".join(parts)


def value_table(sheets: Sequence[Sheet]) -> str:
    """Return the table of values: runs as columns, or as rows where there are many."""
    heads = table_heads(sheets, [sheet.name for sheet in sheets])
    rows = table_rows(sheets)
    if len(sheets) > _MAX_RUN_COLUMNS:
        heads, *rows = map(list, zip(["run", *heads[1:]], *rows, strict=True))
    return pipe_table(heads, rows)


def bullet_list(sentences: Sequence[str]) -> str:
    """Return a list."""
    return "".join(f"- {escape(sentence)}\n" for sentence in sentences)


def details_block(title: str, sentences: Sequence[str]) -> str:
    """Return a list that is shown when a person asks for it."""
    return f"<details><summary>{title}</summary>\n\n{bullet_list(sentences)}\n</details>\n"


def pipe_table(heads: Sequence[str], rows: Sequence[Sequence[str]], n_labels: int = 1) -> str:
    """Return a table: labels to the left, numbers to the right."""
    rule = ["---"] * n_labels + ["---:"] * (len(heads) - n_labels)
    lines = [map(escape, heads), rule, *(map(escape, row) for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def escape(text: str) -> str:
    """Return a text that a cell or a line can hold."""
    text = shown(text.replace("\n", " "))
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")
