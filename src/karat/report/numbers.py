"""Numbers as people read them; nothing is rounded before this."""

from __future__ import annotations

from collections.abc import Sequence

from karat.measures.parse import parse
from karat.report.sheet import Sheet


def number(value: float | object | None, measure: str | None = None) -> str:
    """Show four decimals, counts whole, and a dash where there is no value."""
    if value is None:
        return "–"
    if not isinstance(value, float):
        return str(value)
    if measure is not None and parse(measure).declaration.combine == "sum":
        return f"{value:,.0f}"
    return f"{value:.4f}"


def table_rows(sheets: Sequence[Sheet]) -> list[list[str]]:
    """Return a row a measure: its name, the value of each run, and n."""
    rows = []
    for at, measure in enumerate(sheets[0].summary["measure"]):
        values = [number(sheet.summary["value"][at], measure) for sheet in sheets]
        counts = sorted({sheet.summary["n"][at] for sheet in sheets})
        n = f"{counts[0]:,}" if len(counts) == 1 else f"{counts[0]:,}–{counts[-1]:,}"
        rows.append([measure, *values, n])
    return rows
