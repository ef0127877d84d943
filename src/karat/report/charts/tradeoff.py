"""Trade-off charts: quality by latency, and by the length of the context."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from karat.format import amount
from karat.measures import Measure
from karat.report.cells import format_value, measure_label
from karat.report.charts.chart import TitledChart
from karat.report.charts.theme import (
    MAX_COLOURS,
    Palette,
    inline_data,
    join_names,
    number_axis,
    run_encodings,
    tooltips,
)

_MAX_NAMED = 4


def tradeoffs(
    frame: pl.DataFrame, measure: Measure, values: Mapping[str, float | None], palette: Palette
) -> list[TitledChart]:
    """Return charts of value by resource, for resources that two or more runs report."""
    charts = []
    for resource in _resources(measure):
        points = [
            {"run": run, "took": took, "value": value}
            for run, took in frame.select("run", resource.column).iter_rows()
            if took is not None and (value := values[run]) is not None
        ]
        if len(points) > 1:
            charts.append(_tradeoff_chart(points, resource, measure, palette))
    return charts


@dataclass(frozen=True)
class _Resource:
    column: str
    name: str
    axis_title: str
    less: str
    """The comparative: what a run with less of it is."""
    least: str


def _resources(measure: Measure) -> list[_Resource]:
    results = "all" if measure.cutoff is None else f"the first {measure.cutoff}"
    return [
        _Resource("latency_ms", "median latency", "median latency [ms]", "faster", "fastest"),
        _Resource(
            "context_tokens",
            "context tokens",
            "prompt tokens per query, mean",
            "shorter",
            "one with the shortest context",
        ),
        _Resource(
            "context_characters",
            "context characters",
            f"characters of {results} results, mean",
            "shorter",
            "one with the shortest context",
        ),
    ]


def pareto_front(points: Sequence[tuple[float, float]], *, higher: bool) -> list[bool]:
    """Return which points (took, value) are not dominated: no other is as good in both.

    >>> pareto_front([(1, 0.5), (2, 0.7), (3, 0.6)], higher=True)
    [True, True, False]
    """
    signed = [(took, value if higher else -value) for took, value in points]
    return [
        not any(a <= took and b >= value and (a, b) != (took, value) for a, b in signed)
        for took, value in signed
    ]


def _tradeoff_chart(
    points: list[dict[str, Any]], resource: _Resource, measure: Measure, palette: Palette
) -> TitledChart:
    higher = measure.declaration.higher_is_better
    best = pareto_front([(row["took"], row["value"]) for row in points], higher=higher)
    on_front = [row["run"] for row, is_best in zip(points, best, strict=True) if is_best]
    data = [
        row
        | {
            "front": is_best,
            "shown": format_value(row["value"], measure.name),
            "shown_took": amount(row["took"]),
        }
        for row, is_best in zip(points, best, strict=True)
    ]
    labels = [f"{row['run']} {row['shown']} at {row['shown_took']}" for row in data]
    return TitledChart(
        id=f"tradeoff-{resource.column.replace('_', '-')}",
        title=f"{measure} by {resource.name}",
        readout=f"{measure} by {resource.axis_title}: {join_names(labels)}. The dashed line is the "
        f"Pareto front, with {join_names(on_front)}.",
        chart=_chart(data, resource, measure, palette),
        section="speed",
        caption=_takeaway(on_front, len(points), resource),
    )


def _takeaway(on_front: Sequence[str], n_runs: int, resource: _Resource) -> str:
    if len(on_front) == 1:
        return f"{on_front[0]} is both the best run and the {resource.least}."
    if len(on_front) == n_runs:
        return f"A trade-off: no run is both better and {resource.less} than another."
    names = join_names(on_front) if len(on_front) <= _MAX_NAMED else f"{len(on_front)} runs"
    return f"{names} are on the Pareto front (dashed): no run is both better and {resource.less}."


def _chart(
    data: list[dict[str, Any]], resource: _Resource, measure: Measure, palette: Palette
) -> Any:
    import altair as alt

    across, up = (_scale([row[name] for row in data]) for name in ("took", "value"))
    x = alt.X(
        field="took",
        type="quantitative",
        title=resource.axis_title,
        scale=across,
        axis=number_axis(),
    )
    y = alt.Y(
        field="value",
        type="quantitative",
        title=measure_label(measure.name),
        scale=up,
        axis=number_axis(),
    )
    best = sorted((row for row in data if row["front"]), key=lambda row: row["took"])
    line = (
        alt.Chart(inline_data(best))
        .mark_line(color=palette.neutral, strokeDash=[4, 4], interpolate="step-after")
        .encode(x=x, y=y)
    )
    base = alt.Chart(inline_data(data)).encode(
        x=x, y=y, tooltip=tooltips(run="run", shown=measure.name, shown_took=resource.axis_title)
    )
    # Runs on the front are filled, others are rings: readable without the line.
    dots = [
        alt.Chart(inline_data(part))
        .mark_point(filled=filled, size=130, opacity=1, strokeWidth=2)
        .encode(
            x=x,
            y=y,
            tooltip=base.encoding.tooltip,
            **run_encodings(palette, "color", "shape", show_legend=False),
        )
        for filled in (True, False)
        if (part := [row for row in data if row["front"] == filled])
    ]
    # The names of many runs would overlap.
    is_crowded = len(palette.runs) > MAX_COLOURS
    labelled = [
        row for row in data if not is_crowded or row["front"] or row["run"] in palette.named
    ]
    return alt.layer(line, *dots, *_names(labelled, x, y)).properties(height=260)


def _scale(values: Sequence[float]) -> Any:
    """Return a scale with room around the points, also if all values are equal."""
    import altair as alt

    least, most = min(values), max(values)
    if least < most:
        return alt.Scale(zero=False, padding=30)
    room = abs(least) / 2 or 1.0
    return alt.Scale(zero=False, domain=[least - room, most + room])


def _names(data: list[dict[str, Any]], x: Any, y: Any) -> Iterator[Any]:
    """Yield the names of the runs next to their points, towards the middle of the chart."""
    import altair as alt

    least, most = (end(row["took"] for row in data) for end in (min, max))
    runs_by_point: dict[tuple[float, float], list[str]] = {}
    for row in data:  # runs at one point share a label, since two labels would overlap
        runs_by_point.setdefault((row["took"], row["value"]), []).append(row["run"])
    labels = [
        {"took": took, "value": value, "run": ", ".join(runs)}
        for (took, value), runs in runs_by_point.items()
    ]
    for right in (False, True):
        part = [row for row in labels if (row["took"] > (least + most) / 2) == right]
        names = alt.Chart(inline_data(part)).encode(
            x=x, y=y, text=alt.Text(field="run", type="nominal")
        )
        if part and right:
            yield names.mark_text(align="right", dx=-10, dy=-8, limit=160)
        elif part:
            yield names.mark_text(align="left", dx=10, dy=-8, limit=160)
