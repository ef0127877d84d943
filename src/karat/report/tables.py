"""Tables as people read them: heads and cells of text; nothing is rounded before this."""

from __future__ import annotations

from collections.abc import Sequence

from karat.measures.names import parse
from karat.report.sheet import Sheet


def number(value: float | object | None, measure: str | None = None) -> str:
    """Show four decimals, whole numbers whole, and a dash where there is no value."""
    if value is None:
        return "–"
    if not isinstance(value, float):
        return str(value)
    if measure is not None and value.is_integer() and parse(measure).declaration.whole:
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


Table = tuple[list[str], list[list[str]]]


def group_table(sheet: Sheet) -> Table | None:
    """Return heads and a row a group, where groups were asked."""
    if sheet.groups is None:
        return None
    fields = group_fields(sheet)
    rows = []
    for key, part in sheet.groups.partition_by(fields, as_dict=True, maintain_order=True).items():
        values = [number(v, m) for m, v in part.select("measure", "value").iter_rows()]
        labels = ["–" if label is None else str(label) for label in key]
        rows.append([*labels, *values, f"{max(part['n'].to_list()):,}"])
    return [*fields, *sheet.summary["measure"], "n"], rows


def query_table(sheet: Sheet) -> Table | None:
    """Return heads and a row a query, where queries were asked."""
    if not sheet.show_queries:
        return None
    measures = sheet.summary["measure"].to_list()
    rows = [
        [query, *(number(v, m) for m, v in zip(measures, values, strict=True))]
        for query, *values in sheet.per_query.iter_rows()
    ]
    return ["query_id", *measures], rows


def group_fields(sheet: Sheet) -> list[str]:
    """Return the fields that the groups of a sheet are made by."""
    assert sheet.groups is not None
    return [name for name in sheet.groups.columns if name not in sheet.summary.columns]
