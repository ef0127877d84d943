"""Values of saved scores over time, one line per run."""

from __future__ import annotations

from typing import Any

import polars as pl

from karat.evaluation.history import History, commit_label, series
from karat.report.cells import format_value, measure_label
from karat.report.charts.chart import TitledChart
from karat.report.charts.theme import (
    Palette,
    inline_data,
    number_axis,
    run_encodings,
    tooltips,
)


def history_charts(history: History, palette: Palette) -> list[TitledChart]:
    """Return one chart per measure; the palette decides which runs are drawn."""
    table = history.table.filter(pl.col("run").is_in(palette.runs) & pl.col("value").is_not_null())
    measures = table["measure"].unique(maintain_order=True)
    return [
        _chart(at, table.filter(pl.col("measure") == measure), history.by, palette)
        for at, measure in enumerate(measures, 1)
    ]


def _chart(at: int, rows: pl.DataFrame, by: str, palette: Palette) -> TitledChart:
    measure = str(rows["measure"][0])
    return TitledChart(
        id=f"history-{at}",
        title=f"{measure_label(measure)} by {by}",
        readout=_readout(rows, measure),
        chart=_drawing(rows, by, measure, palette),
        section="history",
        caption=_caption(rows, measure),
        group="history",
        option=measure,
    )


def _drawing(rows: pl.DataFrame, by: str, measure: str, palette: Palette) -> Any:
    import altair as alt

    data = [
        {
            "run": row["run"],
            "time": row["saved"].isoformat(),
            "saved": f"{row['saved']:%Y-%m-%d %H:%M} UTC",
            "commit": commit_label(row),
            "value": row["value"],
            "low": row["value"] if row["low"] is None else row["low"],
            "high": row["value"] if row["high"] is None else row["high"],
            "shown": format_value(row["value"], measure),
            "n": row["n"],
        }
        for row in palette.named_last(rows).iter_rows(named=True)
    ]
    x = alt.X(
        field="time",
        type="temporal",
        title="saved (UTC)",
        scale=alt.Scale(type="utc"),
        axis=number_axis(grid=False),
    )
    if by == "commit":
        order = rows.sort("committed", "saved", maintain_order=True)
        names = list(dict.fromkeys(commit_label(row) for row in order.iter_rows(named=True)))
        x = alt.X(field="commit", type="nominal", title="commit", sort=names)
    axis: dict[str, Any] = {"scale": alt.Scale(zero=False), "axis": number_axis(), "title": None}
    base = alt.Chart(inline_data(data)).encode(
        x=x,
        tooltip=tooltips(run="run", saved="saved", commit="commit", shown=measure, n="queries"),
        **run_encodings(palette, "color"),
    )
    intervals = base.mark_rule(strokeWidth=1.5, opacity=0.5).encode(
        y=alt.Y(field="low", type="quantitative", **axis), y2=alt.Y2(field="high")
    )
    y = alt.Y(field="value", type="quantitative", **axis)
    lines = base.mark_line(strokeWidth=2).encode(
        y=y, **run_encodings(palette, "color", "strokeDash")
    )
    points = base.mark_point(filled=True, size=55, opacity=1).encode(
        y=y, **run_encodings(palette, "color", "shape")
    )
    return alt.layer(intervals, lines, points).properties(height=240)


def _caption(rows: pl.DataFrame, measure: str) -> str:
    texts = [
        f"{run} went from {format_value(part['value'][0], measure)} to "
        f"{format_value(part['value'][-1], measure)}"
        if part.height > 1
        else f"{run} has one value, {format_value(part['value'][0], measure)}"
        for (run, _), part in series(rows)
    ]
    changes = "; ".join(texts)
    return f"{changes}. Vertical lines are 95% intervals of the values, not of the changes."


def _readout(rows: pl.DataFrame, measure: str) -> str:
    texts = []
    for (run, _), part in series(rows):
        values = [
            f"{format_value(row['value'], measure)} on {row['saved']:%Y-%m-%d}"
            for row in part.iter_rows(named=True)
        ]
        texts.append(f"{run}: {', '.join(values)}.")
    return " ".join(texts)
