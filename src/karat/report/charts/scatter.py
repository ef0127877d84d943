"""Scatter plot of two runs: which queries improved or degraded, and by how much."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from karat.errors import counted
from karat.measures import Measure
from karat.report.cells import format_difference, format_value, measure_label
from karat.report.charts.bins import bin_numbers, edges
from karat.report.charts.chart import TitledChart
from karat.report.charts.theme import Palette, inline_data, legend, number_axis, tooltips

MAX_POINTS = 2_000
"""If there are more queries, they are counted in squares, with points for large changes."""
MAX_MOVED = 200
_MAX_NAMED = 3


def scatter(
    a: str, b: str, measure: Measure, both: pl.DataFrame, palette: Palette, at: int = 1
) -> TitledChart | None:
    """Return the values of b over those of a: (query_id, value_a, value_b, difference)."""
    if not both.height:
        return None
    higher = measure.declaration.higher_is_better
    gain = pl.col("difference") if higher else -pl.col("difference")
    queries = both.with_columns(
        pl.when(gain > 0)
        .then(pl.lit("b"))
        .when(gain < 0)
        .then(pl.lit("a"))
        .otherwise(pl.lit("same"))
        .alias("better")
    )
    counts = dict(queries.group_by("better").len().iter_rows())
    better = [
        f"{name} is better for {counted(counts.get(key, 0), 'query')}"
        for key, name in (("b", b), ("a", a))
    ]
    same = f"they are equal for {counts.get('same', 0):,}"
    return TitledChart(
        id=f"scatter-{at}",
        title=f"{measure}: {b} against {a}",
        readout=f"Of {counted(both.height, 'query')}, {better[0]}, {better[1]}, and {same}."
        f"{_thinning_note(both.height)}",
        chart=_chart(a, b, measure, queries, palette),
    )


def _thinning_note(n: int) -> str:
    if n <= MAX_POINTS:
        return ""
    return (
        f" Squares show the number of queries; points are the {MAX_MOVED} queries with the "
        "largest change."
    )


def grouped_points(queries: pl.DataFrame, measure: str) -> pl.DataFrame:
    """Return one row per pair of values, with the ids of some of its queries."""
    points = (
        queries.sort("query_id")
        .group_by("value_a", "value_b", "better")
        .agg(
            pl.len().alias("n"),
            pl.col("query_id").first().alias("query_id"),
            pl.col("query_id").head(_MAX_NAMED).alias("named"),
            pl.col("difference").first(),
        )
        .sort("value_a", "value_b")
    )
    return points.select(
        "value_a",
        "value_b",
        "better",
        "n",
        "query_id",
        pl.Series("queries", [_format_ids(row) for row in points.iter_rows(named=True)], pl.String),
        pl.Series(
            "moved", [_format_move(row, measure) for row in points.iter_rows(named=True)], pl.String
        ),
    )


def _format_move(row: dict[str, Any], measure: str) -> str:
    before, after = (format_value(row[f"value_{side}"], measure) for side in ("a", "b"))
    return f"{before} → {after} ({format_difference(row['difference'], measure)})"


def _format_ids(row: dict[str, Any]) -> str:
    more = row["n"] - len(row["named"])
    return ", ".join(row["named"]) + (f" and {more:,} more" if more else "")


def squares(queries: pl.DataFrame, bounds: np.ndarray[Any, Any]) -> pl.DataFrame:
    """Return the number of queries in each square of a grid; empty squares are left out."""
    cells = pl.DataFrame(
        {side: bin_numbers(queries[f"value_{side}"].to_numpy(), bounds) for side in ("a", "b")}
    )
    counts = cells.group_by("a", "b").len("n").sort("a", "b")
    ends = {
        f"{side}_{end}": bounds[counts[side].to_numpy() + step]
        for side in ("a", "b")
        for end, step in (("low", 0), ("high", 1))
    }
    return counts.select("n").with_columns(pl.Series(name, ends[name]) for name in ends)


def _chart(a: str, b: str, measure: Measure, queries: pl.DataFrame, palette: Palette) -> Any:
    import altair as alt

    low, high = _range(queries)
    scale = alt.Scale(domain=[low, high], nice=False, padding=8)
    x, y = (
        {
            "type": "quantitative",
            "title": f"{measure_label(measure.name)}, {run}",
            "scale": scale,
            "axis": number_axis(),
        }
        for run in (a, b)
    )
    ends = inline_data([{"low": low, "high": high}])
    diagonal = (
        alt.Chart(ends)
        .mark_rule(color=palette.neutral, strokeDash=[4, 4])
        .encode(
            x=alt.X(field="low", **x),
            y=alt.Y(field="low", **y),
            x2=alt.X2(field="high"),
            y2=alt.Y2(field="high"),
        )
    )
    layers = [diagonal]
    drawn = queries
    if queries.height > MAX_POINTS:
        grid = inline_data(squares(queries, edges(low, high)))
        opacity = alt.Scale(type="log", range=[0.12, 0.9])
        layers.append(
            alt.Chart(grid)
            .mark_rect(color=palette.neutral)
            .encode(
                x=alt.X(field="a_low", **x),
                x2=alt.X2(field="a_high"),
                y=alt.Y(field="b_low", **y),
                y2=alt.Y2(field="b_high"),
                opacity=alt.Opacity(field="n", type="quantitative", scale=opacity, legend=None),
                tooltip=tooltips(n="queries in this square"),
            )
        )
        order = pl.col("difference").abs()
        moved = queries.filter(pl.col("better") != "same")
        drawn = moved.sort(order, "query_id", descending=[True, False]).head(MAX_MOVED)
    layers.append(_points(a, b, measure, drawn, palette, x, y))
    return alt.layer(*layers).properties(height=360)


def _range(queries: pl.DataFrame) -> tuple[float, float]:
    ends = queries.select(
        low=pl.min_horizontal(pl.col("value_a").min(), pl.col("value_b").min()),
        high=pl.max_horizontal(pl.col("value_a").max(), pl.col("value_b").max()),
    ).row(0)
    low, high = float(ends[0]), float(ends[1])
    if low >= 0 and high <= 1:
        return 0.0, 1.0
    bounds = edges(low, high)
    return float(bounds[0]), float(bounds[-1])


def _points(
    a: str, b: str, measure: Measure, queries: pl.DataFrame, palette: Palette, x: Any, y: Any
) -> Any:
    import altair as alt

    labels = {"b": f"{b} better", "a": f"{a} better", "same": "equal"}
    styles = {
        "b": (palette.run_colour(b), "triangle-up"),
        "a": (palette.run_colour(a), "triangle-down"),
        "same": (palette.neutral, "circle"),
    }
    keys = [key for key in labels if key in queries["better"]]
    domain = [labels[key] for key in keys]
    points = grouped_points(queries, measure.name)
    data = points.with_columns(pl.col("better").replace_strict(labels, return_dtype=pl.String))
    encodings: dict[str, Any] = {}
    most = max(points["n"], default=1)
    if most > 1:
        encodings["size"] = alt.Size(
            field="n",
            type="quantitative",
            scale=alt.Scale(type="sqrt", domain=[1, most], range=[40, 400]),
            legend=None,
        )
    for channel, kind, at in (("color", alt.Color, 0), ("shape", alt.Shape, 1)):
        encodings[channel] = kind(
            field="better",
            type="nominal",
            scale=alt.Scale(domain=domain, range=[styles[key][at] for key in keys]),
            legend=legend([*domain, ""]),
        )
    return (
        alt.Chart(inline_data(data))
        .mark_point(filled=True, opacity=0.8, size=50)
        .encode(
            x=alt.X(field="value_a", **x),
            y=alt.Y(field="value_b", **y),
            tooltip=tooltips(queries="query", moved="value", n="queries at this point"),
            **encodings,
        )
    )
