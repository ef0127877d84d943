"""How the queries spread: how many have which value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from karat.arrays import Floats
from karat.errors import counted
from karat.measures import parse
from karat.report.charts.bins import bin_numbers, edges
from karat.report.charts.chart import TitledChart
from karat.report.charts.theme import inline_data, number_axis, run_encodings, tooltips
from karat.report.tables import format_value, measure_label

MAX_LINES = 4
"""More runs than that are drawn as strips."""


def distribution(
    measure: str, per_query: Mapping[str, pl.Series], at: int = 1
) -> TitledChart | None:
    """Draw how many queries of each run have which value; None where no query has one."""
    known = {run: column.drop_nulls().to_numpy() for run, column in per_query.items()}
    held = {run: column for run, column in known.items() if column.size}
    if not held:
        return None
    return TitledChart(
        f"distribution-{at}",
        "curves",
        f"Queries by {measure}",
        " ".join(_caption(run, column, measure) for run, column in held.items()),
        _chart(held, list(per_query), measure),
    )


def histogram(held: Mapping[str, Floats], *, whole: bool) -> list[dict[str, Any]]:
    """Return a row a run and bin: its edges, and how many queries lie in it."""
    low = min(float(column.min()) for column in held.values())
    high = max(float(column.max()) for column in held.values())
    if not whole and low >= 0 and 0.05 < high <= 1:
        low, high = 0.0, 1.0
    return count_in_bins(held, edges(low, high, whole=whole))


def count_in_bins(held: Mapping[str, Floats], bounds: Floats) -> list[dict[str, Any]]:
    """Return a row a run and bin between the bounds: its edges, and how many queries lie in it."""
    return [
        {"run": run, "low": float(bounds[at]), "high": float(bounds[at + 1]), "queries": int(n)}
        for run, column in held.items()
        for at, n in enumerate(np.bincount(bin_numbers(column, bounds), minlength=bounds.size - 1))
    ]


def _chart(held: Mapping[str, Floats], runs: Sequence[str], measure: str) -> Any:
    import altair as alt

    whole = parse(measure).declaration.whole
    found = histogram(held, whole=whole)
    last = found[-1]["high"]
    for row in found:
        ends = ")" if row["high"] < last or whole else "]"
        row["bin"] = (
            f"[{format_value(row['low'], measure)}, {format_value(row['high'], measure)}{ends}"
        )
    x = alt.X(
        field="low",
        type="quantitative",
        title=measure_label(measure),
        scale=alt.Scale(domain=[found[0]["low"], last], nice=False),
        axis=number_axis(grid=False, **({"tickMinStep": 1} if whole else {})),
    )
    return bin_chart(found, runs, x)


def bin_chart(found: Sequence[dict[str, Any]], runs: Sequence[str], x: Any) -> Any:
    """Draw bins: bars of one run, steps of a few, strips of many; `x` is of their lower edges."""
    import altair as alt

    held = list(dict.fromkeys(row["run"] for row in found))
    last = found[-1]["high"]
    tips = tooltips(run="run", bin="value", queries="queries")
    base = alt.Chart(inline_data(found)).encode(x=x, x2=alt.X2(field="high"), tooltip=tips)
    if len(held) > MAX_LINES:
        return _strips(base, held, runs)
    y = alt.Y(
        field="queries",
        type="quantitative",
        title="queries",
        stack=None,
        axis=number_axis(tickMinStep=1),
    )
    if len(held) == 1:
        alone = base.mark_bar(binSpacing=1, orient="vertical").encode(
            y=y, **run_encodings(runs, "color")
        )
        return alone.properties(height=220)
    looks = run_encodings(runs, "color", "strokeDash", lines=True)
    filled = base.encode(y=y, color=looks["color"])
    # A line of steps ends where its last bin does.
    closing = [row | {"low": last} for row in found if row["high"] == last]
    data = inline_data(
        sorted([*found, *closing], key=lambda row: (runs.index(row["run"]), row["low"]))
    )
    steps = alt.Chart(data).encode(x=x, y=y, color=looks["color"])
    return alt.layer(
        steps.mark_area(interpolate="step-after", opacity=0.1),
        steps.mark_line(interpolate="step-after", strokeWidth=2).encode(
            strokeDash=looks["strokeDash"]
        ),
        # What is pointed at is the bin of a run, not the corner of its step.
        filled.mark_bar(opacity=0, orient="vertical"),
    ).properties(height=220)


def _strips(base: Any, held: Sequence[str], runs: Sequence[str]) -> Any:
    """Draw a strip a run, the fuller the more queries: more lines could not be told apart."""
    import altair as alt

    strength = alt.Opacity(
        field="queries",
        type="quantitative",
        scale=alt.Scale(type="sqrt", domainMin=0, range=[0, 1]),
        legend=None,
    )
    y = alt.Y(
        field="run", type="nominal", sort=list(runs), title=None, axis=alt.Axis(labelLimit=160)
    )
    strips = base.mark_rect().encode(
        y=y, opacity=strength, **run_encodings(runs, "color", told=False)
    )
    return strips.properties(height=24 * len(held))


def _caption(run: str, column: Floats, measure: str) -> str:
    middle = format_value(float(np.median(column)), measure)
    none, all_ = int(np.count_nonzero(column == 0)), int(np.count_nonzero(column == 1))
    queries = f"{run}: {counted(column.size, 'query')}, the median is {middle}"
    if parse(measure).declaration.unit is not None or parse(measure).declaration.whole:
        return f"{queries}."
    return f"{queries}; {_share(none, column.size)} have 0, {_share(all_, column.size)} have 1."


def _share(n: int, of: int) -> str:
    return f"{n:,} ({n / of:.0%})"
