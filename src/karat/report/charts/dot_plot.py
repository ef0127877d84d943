"""Values with their intervals: one row per measure, one dot per run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from karat.measures import Measure, parse
from karat.report.cells import format_value, format_with_interval
from karat.report.charts.chart import TitledChart
from karat.report.charts.theme import (
    Palette,
    inline_data,
    join_names,
    number_axis,
    run_encodings,
    tooltips,
)


def values(summaries: Mapping[str, pl.DataFrame], palette: Palette) -> list[TitledChart]:
    """Return one chart of values per unit: measures of different units do not share an axis."""
    all_rows = [
        {"run": run, **row}
        for run, summary in summaries.items()
        for row in summary.iter_rows(named=True)
        if row["value"] is not None
    ]
    axes: dict[str, list[dict[str, Any]]] = {}
    for row in all_rows:
        axes.setdefault(_axis_title(parse(row["measure"])), []).append(row)
    return [
        TitledChart(
            id=f"values-{at}",
            title=f"Values by run, {name}" if name != _VALUE else "Values by run",
            readout=_readout(axis_rows),
            chart=_chart(axis_rows, palette, name),
        )
        for at, (name, axis_rows) in enumerate(axes.items(), 1)
    ]


_VALUE = "value"


def _axis_title(measure: Measure) -> str:
    """Return the title of the axis of a measure."""
    if measure.declaration.unit is not None:
        return str(measure.declaration.unit)
    return "number of items" if measure.declaration.whole else _VALUE


def _chart(values: list[dict[str, Any]], palette: Palette, name: str) -> Any:
    import altair as alt

    runs = list(palette.runs)
    measures = list(dict.fromkeys(row["measure"] for row in values))
    data = [
        {
            "run": row["run"],
            "measure": row["measure"],
            "value": row["value"],
            "low": _default_to(row.get("low"), row["value"]),
            "high": _default_to(row.get("high"), row["value"]),
            "shown": format_with_interval(row),
            "n": row["n"],
        }
        for row in values
    ]
    y = alt.Y(
        field="measure",
        type="nominal",
        sort=measures,
        title=None,
        scale=alt.Scale(paddingInner=0.35, paddingOuter=0.15),
        axis=alt.Axis(labelLimit=160, grid=False, domain=False, ticks=False),
    )
    base = alt.Chart(inline_data(data)).encode(
        y=y,
        yOffset=alt.YOffset(field="run", type="nominal", sort=runs, scale=alt.Scale(domain=runs)),
        tooltip=tooltips(run="run", measure="measure", shown="value", n="queries"),
        **run_encodings(palette, "color"),
    )
    x = {
        "type": "quantitative",
        "title": name,
        "scale": alt.Scale(zero=False),
        "axis": number_axis(),
    }
    intervals = base.mark_rule(strokeWidth=2.5, opacity=0.55, strokeCap="round").encode(
        x=alt.X(field="low", **x), x2=alt.X2(field="high")
    )
    dots = base.mark_point(filled=True, size=75, opacity=1).encode(
        x=alt.X(field="value", **x), **run_encodings(palette, "shape")
    )
    height = len(measures) * (14 * len(runs) + 14)
    return alt.layer(intervals, dots).properties(height=height)


def _readout(values: list[dict[str, Any]]) -> str:
    measures = list(dict.fromkeys(row["measure"] for row in values))
    sentences = []
    for measure in measures:
        labels = [
            f"{row['run']} {format_value(row['value'], measure)}"
            for row in values
            if row["measure"] == measure
        ]
        sentences.append(f"{measure}: {join_names(labels)}.")
    if any(row.get("low") is not None for row in values):
        sentences.append("Lines are 95% intervals.")
    return " ".join(sentences)


def _default_to(end: float | None, value: float) -> float:
    return value if end is None else end
