"""Groups of queries: a table with one row per group, shaded by value."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from karat.markup import Markup, joined, named, tag
from karat.report.cells import (
    declaration_of,
    format_counts,
    format_interval,
    format_value,
    measure_label,
)
from karat.report.page.value_table import exact_attributes, scrollable
from karat.report.sheet import Sheet

_SHADES = 10


def group_tables(sheets: Sequence[Sheet]) -> Markup | None:
    """Return one table per run, or None if there are no groups."""
    grouped_sheets = [sheet for sheet in sheets if sheet.groups is not None]
    if not grouped_sheets:
        return None
    legend = (
        "Shading: the value, from 0 to 1; for amounts such as milliseconds, from 0 to the largest "
        "value of the column. *: fewer than 5 queries, so the value is uncertain."
    )
    tables = [_run_table(sheet) for sheet in grouped_sheets]
    return joined(tables, tag("p", legend, class_="key"))


def _run_table(sheet: Sheet) -> Markup:
    assert sheet.groups is not None
    fields, groups = sheet.group_fields, sheet.groups
    maxima = {measure: _darkest_value(groups, measure) for measure in sheet.summary["measure"]}
    heads = [tag("th", named(field), scope="col", class_="label") for field in fields]
    heads += [tag("th", measure_label(measure, sheet), scope="col") for measure in maxima]
    rows = []
    for key, part in sheet.group_parts:
        labels = [named("–" if value is None else str(value)) for value in key]
        small = "*" if part["small"].any() else ""
        rows.append(
            tag(
                "tr",
                tag("th", labels[0], scope="row"),
                [tag("td", name, class_="label") for name in labels[1:]],
                [
                    tag(
                        "td",
                        tag("span", format_value(row["value"], row["measure"]), class_="number"),
                        tag("span", format_interval(row), class_="interval"),
                        class_=_shade(row["value"], maxima[row["measure"]]),
                        **exact_attributes(row),
                    )
                    for row in part.iter_rows(named=True)
                ],
                tag("td", format_counts(part["n"]) + small, class_="size"),
            )
        )
    top = tag("thead", tag("tr", heads, tag("th", "n", scope="col")))
    by = f"by {', '.join(fields)}"
    table = tag("table", top, tag("tbody", rows), class_="numbers heat")
    return tag(
        "details",
        tag("summary", named(sheet.name), " ", named(by)),
        scrollable(table, f"{sheet.name} {by}"),
    )


def _darkest_value(groups: pl.DataFrame, measure: str) -> float:
    """Return the value with the darkest shade."""
    if declaration_of(measure).bounded:
        return 1.0
    return groups.filter(pl.col("measure") == measure)["value"].max() or 1.0  # type: ignore[return-value]


def _shade(value: float | None, most: float) -> str | None:
    if value is None:
        return None
    return f"heat-{min(max(int(_SHADES * value / most), 0), _SHADES - 1)}"
