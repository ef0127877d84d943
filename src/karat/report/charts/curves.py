"""Line charts: values by cutoff, and precision by recall."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from karat.measures import parse
from karat.report.cells import format_value
from karat.report.charts.chart import TitledChart
from karat.report.charts.theme import inline_data, join_names, number_axis, run_encodings, tooltips


def curves(frame: pl.DataFrame, runs: Sequence[str]) -> list[TitledChart]:
    """Return one chart per measure of its values by k: (run, measure, k, value)."""
    return [
        TitledChart(
            f"curve-{at}",
            "curves",
            f"{parse(measure).declaration.title} by k ({measure}@k)",
            _caption(measure, part),
            _by_depth(part.drop("measure"), runs),
        )
        for at, ((measure,), part) in enumerate(
            frame.partition_by("measure", as_dict=True, maintain_order=True).items(), 1
        )
    ]


def _by_depth(frame: pl.DataFrame, runs: Sequence[str]) -> Any:
    import altair as alt

    depths = frame["k"].unique().sort().to_list()
    x = alt.X(
        field="k",
        type="quantitative",
        title="cutoff k",
        scale=alt.Scale(type="log", domain=[depths[0], depths[-1]], nice=False),
        axis=alt.Axis(values=depths, format="d", grid=False, labelOverlap="greedy"),
    )
    y = alt.Y(
        field="value",
        type="quantitative",
        title=None,
        scale=alt.Scale(domainMin=0),
        axis=number_axis(),
    )
    return _lines(frame, runs, x, y, k="k", shown="value").properties(height=240)


def precision_recall(frame: pl.DataFrame, runs: Sequence[str]) -> TitledChart:
    """Return the chart of interpolated precision by recall: (run, recall, precision)."""
    import altair as alt

    unit_scale = alt.Scale(domain=[0, 1])
    x = alt.X(
        field="recall", type="quantitative", title="recall", scale=unit_scale, axis=number_axis()
    )
    y = alt.Y(
        field="value", type="quantitative", title="precision", scale=unit_scale, axis=number_axis()
    )
    renamed = frame.rename({"precision": "value"})
    ends = {
        run: (part["value"][0], part["value"][-1])
        for (run,), part in renamed.partition_by("run", as_dict=True, maintain_order=True).items()
    }
    changes = [f"{run} falls from {first:.3f} to {last:.3f}" for run, (first, last) in ends.items()]
    return TitledChart(
        "precision-recall",
        "curves",
        "Interpolated precision by recall",
        f"The highest precision at each recall level or above, as a mean over queries: "
        f"from recall 0 to recall 1, {join_names(changes)}.",
        _lines(renamed, runs, x, y, recall="recall", shown="precision").properties(height=240),
    )


def _lines(frame: pl.DataFrame, runs: Sequence[str], x: Any, y: Any, **tooltip_titles: str) -> Any:
    import altair as alt

    data = frame.with_columns(
        pl.col("value").map_elements(format_value, return_dtype=pl.String).alias("shown")
    )
    base = alt.Chart(inline_data(data)).encode(
        x=x, y=y, tooltip=tooltips(run="run", **tooltip_titles)
    )
    lines = base.mark_line(strokeWidth=2).encode(**run_encodings(runs, "color", "strokeDash"))
    points = base.mark_point(filled=True, size=45, opacity=1).encode(
        **run_encodings(runs, "color", "shape")
    )
    return alt.layer(lines, points)


def _caption(measure: str, frame: pl.DataFrame) -> str:
    changes = []
    for (run,), part in frame.partition_by("run", as_dict=True, maintain_order=True).items():
        first, last = part.row(0, named=True), part.row(-1, named=True)
        changes.append(
            f"{run} goes from {format_value(first['value'])} at k = {first['k']} "
            f"to {format_value(last['value'])} at k = {last['k']}"
        )
    return f"{measure} of the first k results: {join_names(changes)}."
