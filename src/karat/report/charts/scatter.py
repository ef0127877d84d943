"""Run against run: which queries moved, and how far."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from karat.errors import counted
from karat.measures import Measure
from karat.report.charts.bins import bin_numbers, edges
from karat.report.charts.chart import TitledChart
from karat.report.charts.theme import NEUTRAL, colours, inline_data, legend, number_axis, tooltips
from karat.report.tables import format_difference, format_value, measure_label

MAX_POINTS = 2_000
"""More queries are counted in squares, and only those that moved most are drawn one by one."""
MAX_MOVED = 200
_MAX_NAMED = 3


def scatter(
    a: str, b: str, measure: Measure, both: pl.DataFrame, runs: Sequence[str], at: int = 1
) -> TitledChart | None:
    """Draw the values of b by those of a: (query_id, value_a, value_b, difference)."""
    if not both.height:
        return None
    higher = measure.declaration.higher_is_better
    gained = pl.col("difference") if higher else -pl.col("difference")
    told = both.with_columns(
        pl.when(gained > 0)
        .then(pl.lit("b"))
        .when(gained < 0)
        .then(pl.lit("a"))
        .otherwise(pl.lit("same"))
        .alias("better")
    )
    counts = dict(told.group_by("better").len().iter_rows())
    better = [
        f"{name} is better for {counted(counts.get(key, 0), 'query')}"
        for key, name in (("b", b), ("a", a))
    ]
    alike = f"they are the same for {counts.get('same', 0):,}"
    return TitledChart(
        f"scatter-{at}",
        "pairs",
        f"{measure}: {b} against {a}",
        f"Of {counted(both.height, 'query')}, {better[0]}, {better[1]}, and {alike}."
        f"{_thinning_note(both.height)}",
        _chart(a, b, measure, told, runs),
    )


def _thinning_note(n: int) -> str:
    if n <= MAX_POINTS:
        return ""
    return f" Squares show how many queries lie where; points are the {MAX_MOVED} that moved most."


def grouped_points(told: pl.DataFrame, measure: str) -> pl.DataFrame:
    """Return a row for each place at which queries lie, with the ids of some of them."""
    places = (
        told.sort("query_id")
        .group_by("value_a", "value_b", "better")
        .agg(
            pl.len().alias("n"),
            pl.col("query_id").first().alias("query_id"),
            pl.col("query_id").head(_MAX_NAMED).alias("named"),
            pl.col("difference").first(),
        )
        .sort("value_a", "value_b")
    )
    return places.select(
        "value_a",
        "value_b",
        "better",
        "n",
        "query_id",
        pl.Series("queries", [_format_ids(row) for row in places.iter_rows(named=True)], pl.String),
        pl.Series(
            "moved", [_format_move(row, measure) for row in places.iter_rows(named=True)], pl.String
        ),
    )


def _format_move(row: dict[str, Any], measure: str) -> str:
    one, other = (format_value(row[f"value_{side}"], measure) for side in ("a", "b"))
    return f"{one} → {other} ({format_difference(row['difference'], measure)})"


def _format_ids(row: dict[str, Any]) -> str:
    more = row["n"] - len(row["named"])
    return ", ".join(row["named"]) + (f" and {more:,} more" if more else "")


def squares(told: pl.DataFrame, bounds: np.ndarray[Any, Any]) -> pl.DataFrame:
    """Return how many queries lie in each square of a grid, where there are any."""
    cells = pl.DataFrame(
        {side: bin_numbers(told[f"value_{side}"].to_numpy(), bounds) for side in ("a", "b")}
    )
    counts = cells.group_by("a", "b").len("n").sort("a", "b")
    ends = {
        f"{side}_{end}": bounds[counts[side].to_numpy() + step]
        for side in ("a", "b")
        for end, step in (("low", 0), ("high", 1))
    }
    return counts.select("n").with_columns(pl.Series(name, ends[name]) for name in ends)


def _chart(a: str, b: str, measure: Measure, told: pl.DataFrame, runs: Sequence[str]) -> Any:
    import altair as alt

    low, high = _range(told)
    span = alt.Scale(domain=[low, high], nice=False, padding=8)
    x, y = (
        {
            "type": "quantitative",
            "title": f"{measure_label(measure.name)}, {run}",
            "scale": span,
            "axis": number_axis(),
        }
        for run in (a, b)
    )
    ends = inline_data([{"low": low, "high": high}])
    diagonal = (
        alt.Chart(ends)
        .mark_rule(color=NEUTRAL, strokeDash=[4, 4])
        .encode(
            x=alt.X(field="low", **x),
            y=alt.Y(field="low", **y),
            x2=alt.X2(field="high"),
            y2=alt.Y2(field="high"),
        )
    )
    layers = [diagonal]
    shown = told
    if told.height > MAX_POINTS:
        grid = inline_data(squares(told, edges(low, high)))
        most = alt.Scale(type="log", range=[0.12, 0.9])
        layers.append(
            alt.Chart(grid)
            .mark_rect(color=NEUTRAL)
            .encode(
                x=alt.X(field="a_low", **x),
                x2=alt.X2(field="a_high"),
                y=alt.Y(field="b_low", **y),
                y2=alt.Y2(field="b_high"),
                opacity=alt.Opacity(field="n", type="quantitative", scale=most, legend=None),
                tooltip=tooltips(n="queries in this square"),
            )
        )
        order = pl.col("difference").abs()
        moved = told.filter(pl.col("better") != "same")
        shown = moved.sort(order, "query_id", descending=[True, False]).head(MAX_MOVED)
    layers.append(_points(a, b, measure, shown, runs, x, y))
    return alt.layer(*layers).properties(height=360)


def _range(told: pl.DataFrame) -> tuple[float, float]:
    ends = told.select(
        low=pl.min_horizontal(pl.col("value_a").min(), pl.col("value_b").min()),
        high=pl.max_horizontal(pl.col("value_a").max(), pl.col("value_b").max()),
    ).row(0)
    low, high = float(ends[0]), float(ends[1])
    if low >= 0 and high <= 1:
        return 0.0, 1.0
    bounds = edges(low, high)
    return float(bounds[0]), float(bounds[-1])


def _points(
    a: str, b: str, measure: Measure, told: pl.DataFrame, runs: Sequence[str], x: Any, y: Any
) -> Any:
    import altair as alt

    words = {"b": f"{b} better", "a": f"{a} better", "same": "the same"}
    colour = colours(runs)
    looks = {
        "b": (colour[b], "triangle-up"),
        "a": (colour[a], "triangle-down"),
        "same": (NEUTRAL, "circle"),
    }
    held = [key for key in words if key in told["better"]]
    domain = [words[key] for key in held]
    found = grouped_points(told, measure.name)
    data = found.with_columns(pl.col("better").replace_strict(words, return_dtype=pl.String))
    encodings: dict[str, Any] = {}
    most = max(found["n"], default=1)
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
            scale=alt.Scale(domain=domain, range=[looks[key][at] for key in held]),
            legend=legend([*domain, ""]),
        )
    return (
        alt.Chart(inline_data(data))
        .mark_point(filled=True, opacity=0.8, size=50)
        .encode(
            x=alt.X(field="value_a", **x),
            y=alt.Y(field="value_b", **y),
            tooltip=tooltips(queries="query", moved="value", n="queries here"),
            **encodings,
        )
    )
