"""HTML for notebooks: the size of gold and runs, and their first rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from karat.errors import counted
from karat.markup import Child, Markup, named, table, tag

if TYPE_CHECKING:
    from karat.data.gold import Gold
    from karat.data.run import Run

_SHOWN_ROWS = 5
# Colours derive from the text colour of the notebook, so that light and dark themes work.
_STYLE = """
.karat-box table.numbers { border-collapse: collapse; margin: .4em 0; font-size: 13px; }
.karat-box .numbers th, .karat-box .numbers td { padding: .3em .8em; text-align: right;
  vertical-align: top; background: none; font-variant-numeric: tabular-nums;
  border: 0; border-bottom: 1px solid color-mix(in srgb, currentColor 18%, transparent); }
.karat-box .numbers thead th { vertical-align: bottom; }
.karat-box .numbers tbody th, .karat-box .numbers .label,
.karat-box .numbers th:first-child { text-align: left; }
.karat-box .numbers tbody th { font-weight: 500; }
.karat-box .best .number { font-weight: 700; }
.karat-box small, .karat-box .interval { display: block; font-size: 12px; font-weight: 400; }
.karat-box small, .karat-box .interval, .karat-box .key, .karat-box .remarks,
.karat-box .hole, .karat-box .about { opacity: .75; }
.karat-box .key, .karat-box .remarks, .karat-box .about { font-size: 12px; margin: .4em 0; }
.karat-box summary { font-weight: 600; cursor: pointer; }
.karat-box .scroll { overflow-x: auto; }
.karat-box svg.gauge { display: block; width: 11em; height: 5px; margin: .3em 0 0 auto; }
.karat-box .track { fill: currentColor; opacity: .12; }
.karat-box .filled { fill: #4c8fce; }
.karat-box .between { stroke: currentColor; stroke-width: 2; }
"""


def boxed(*children: Child) -> Markup:
    """Return a box with its style sheet, which does not affect the rest of the notebook."""
    return tag("div", tag("style", Markup(_STYLE)), *children, class_="karat-box")


def gold_html(gold: Gold) -> Markup:
    """Return the number of queries, and the first rows of each kind of gold."""
    kinds = {"judgments": gold.judgments, "spans": gold.spans, "evidence": gold.evidence}
    present = {kind: rows for kind, rows in kinds.items() if rows is not None and rows.height}
    queries = gold.queries
    summary = [counted(queries.height, "query")]
    if gold.fields:
        summary.append(f"with {', '.join(gold.fields)}")
    return boxed(
        tag("p", tag("strong", "Gold"), " ", named(gold.name) if gold.name else None),
        tag("p", named(" ".join(summary), 500), class_="about"),
        _first_rows_html("queries", queries) if queries.width > 1 else None,
        [_first_rows_html(kind, rows) for kind, rows in present.items()],
    )


def run_html(run: Run) -> Markup:
    """Return the number of queries and results, and the first rows."""
    summary = [counted(run.query_ids.len(), "query"), counted(run.results.height, "result")]
    if run.failed:
        summary.append(f"{counted(run.failed, 'query')} failed")
    return boxed(
        tag("p", tag("strong", "Run"), " ", named(run.name) if run.name else None),
        tag("p", ", ".join(summary), class_="about"),
        _first_rows_html("results", run.results),
    )


def _first_rows_html(title: str, rows: pl.DataFrame) -> Markup:
    labels = [name for name, kind in rows.schema.items() if not kind.is_numeric()]
    columns = [*labels, *(name for name in rows.columns if name not in labels)]
    first_rows = rows.head(_SHOWN_ROWS).select(columns).rows()
    cells = [[_cell(value) for value in row] for row in first_rows]
    heads = [named(column) for column in columns]
    caption = f"{title}: {rows.height:,}"
    if rows.height > _SHOWN_ROWS:
        caption += f", the first {_SHOWN_ROWS}"
    return tag(
        "div",
        tag("p", caption, class_="about"),
        tag("div", table(heads, cells, len(labels)), class_="scroll"),
    )


def _cell(value: Any) -> Markup:
    if value is None:
        return named("–")
    return named(f"{value:.6g}" if isinstance(value, float) else str(value))
