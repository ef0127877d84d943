"""Histograms: how many queries have which value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from karat.arrays import Floats
from karat.errors import counted
from karat.measures import parse
from karat.report.cells import format_value, measure_label
from karat.report.charts.bins import bin_numbers, edges
from karat.report.charts.chart import TitledChart
from karat.report.charts.theme import Palette, inline_data, number_axis, run_encodings, tooltips

MAX_LINES = 4
"""If there are more runs, they are drawn as strips."""


def distribution(
    measure: str, per_query: Mapping[str, pl.Series], palette: Palette, at: int = 1
) -> TitledChart | None:
    """Return the histogram of a measure for each run; None if no query has a value."""
    columns = {run: column.drop_nulls().to_numpy() for run, column in per_query.items()}
    values = {run: column for run, column in columns.items() if column.size}
    if not values:
        return None
    return TitledChart(
        id=f"distribution-{at}",
        title=f"Distribution of {measure} over queries",
        readout=" ".join(_readout(run, column, measure) for run, column in values.items()),
        chart=_chart(values, palette, measure),
        section="cutoffs",
        caption=_takeaway(values, measure),
        group="distribution",
        option=measure,
        folded="Distribution over queries",
    )


def histogram(values: Mapping[str, Floats], *, whole: bool) -> list[dict[str, Any]]:
    """Return one row per run and bin: its edges, and the number of queries."""
    low = min(float(column.min()) for column in values.values())
    high = max(float(column.max()) for column in values.values())
    if not whole and low >= 0 and 0.05 < high <= 1:
        low, high = 0.0, 1.0
    return count_in_bins(values, edges(low, high, whole=whole))


def count_in_bins(values: Mapping[str, Floats], bounds: Floats) -> list[dict[str, Any]]:
    """Return one row per run and bin between the bounds: its edges, and the number of queries."""
    return [
        {"run": run, "low": float(bounds[at]), "high": float(bounds[at + 1]), "queries": int(n)}
        for run, column in values.items()
        for at, n in enumerate(np.bincount(bin_numbers(column, bounds), minlength=bounds.size - 1))
    ]


def _chart(values: Mapping[str, Floats], palette: Palette, measure: str) -> Any:
    import altair as alt

    whole = parse(measure).declaration.whole
    bins = histogram(values, whole=whole)
    last = bins[-1]["high"]
    for row in bins:
        ends = ")" if row["high"] < last or whole else "]"
        row["bin"] = (
            f"[{format_value(row['low'], measure)}, {format_value(row['high'], measure)}{ends}"
        )
    x = alt.X(
        field="low",
        type="quantitative",
        title=measure_label(measure),
        scale=alt.Scale(domain=[bins[0]["low"], last], nice=False),
        axis=number_axis(grid=False, **({"tickMinStep": 1} if whole else {})),
    )
    return bin_chart(bins, palette, x)


def bin_chart(bins: Sequence[dict[str, Any]], palette: Palette, x: Any) -> Any:
    """Return a chart of bins: bars for one run, steps for a few runs, strips for many."""
    import altair as alt

    names = list(dict.fromkeys(row["run"] for row in bins))
    last = bins[-1]["high"]
    tips = tooltips(run="run", bin="value", queries="queries")
    base = alt.Chart(inline_data(bins)).encode(x=x, x2=alt.X2(field="high"), tooltip=tips)
    if len(names) > MAX_LINES:
        return _strips(base, names, palette)
    y = alt.Y(
        field="queries",
        type="quantitative",
        title="queries",
        stack=None,
        axis=number_axis(tickMinStep=1),
    )
    if len(names) == 1:
        alone = base.mark_bar(binSpacing=1, orient="vertical").encode(
            y=y, **run_encodings(palette, "color")
        )
        return alone.properties(height=220)
    styles = run_encodings(palette, "color", "strokeDash", lines=True)
    filled = base.encode(y=y, color=styles["color"])
    # The line of steps ends at the end of the last bin.
    closing = [row | {"low": last} for row in bins if row["high"] == last]
    data = inline_data(
        sorted([*bins, *closing], key=lambda row: (palette.runs.index(row["run"]), row["low"]))
    )
    steps = alt.Chart(data).encode(x=x, y=y, color=styles["color"])
    return alt.layer(
        steps.mark_area(interpolate="step-after", opacity=0.1),
        steps.mark_line(interpolate="step-after", strokeWidth=2).encode(
            strokeDash=styles["strokeDash"]
        ),
        # Invisible bars, so that tooltips appear for the whole bin, not only at its corner.
        filled.mark_bar(opacity=0, orient="vertical"),
    ).properties(height=220)


def _strips(base: Any, names: Sequence[str], palette: Palette) -> Any:
    """Return a strip per run; the opacity shows the number of queries, as lines would overlap."""
    import altair as alt

    strength = alt.Opacity(
        field="queries",
        type="quantitative",
        scale=alt.Scale(type="sqrt", domainMin=0, range=[0, 1]),
        legend=None,
    )
    y = alt.Y(
        field="run",
        type="nominal",
        sort=list(palette.runs),
        title=None,
        axis=alt.Axis(labelLimit=160),
    )
    strips = base.mark_rect().encode(
        y=y, opacity=strength, **run_encodings(palette, "color", show_legend=False)
    )
    return strips.properties(height=24 * len(names))


def _takeaway(values: Mapping[str, Floats], measure: str) -> str:
    """State on how many queries each run scores 0, or its median where 0 is not a failure."""
    declaration = parse(measure).declaration
    if declaration.unit is not None or declaration.whole:
        medians = {run: float(np.median(column)) for run, column in values.items()}
        low, high = (pick(medians, key=lambda run: medians[run]) for pick in (min, max))
        texts = [f"{format_value(medians[run], measure)} ({run})" for run in (low, high)]
        return f"Medians range from {texts[0]} to {texts[1]}."
    zeros = {run: int(np.count_nonzero(column == 0)) for run, column in values.items()}
    texts_of = {run: f"{n:,}" if n else "none" for run, n in zeros.items()}
    runs = sorted(zeros, key=lambda run: -zeros[run])
    most, *others = runs if len(runs) <= MAX_LINES else [runs[0], runs[-1]]
    queries = counted(values[most].size, "query")
    if not zeros[most]:
        return f"No run scores 0 on any of {queries}." if others else "No query scores 0."
    named = ", ".join(f"{run} on {texts_of[run]}" for run in others)
    rest = "" if len(others) == len(runs) - 1 else "; the other runs on no more"
    return f"{most} scores 0 on {texts_of[most]} of {queries}{', ' * bool(named)}{named}{rest}."


def _readout(run: str, column: Floats, measure: str) -> str:
    median = format_value(float(np.median(column)), measure)
    zeros, ones = int(np.count_nonzero(column == 0)), int(np.count_nonzero(column == 1))
    queries = f"{run}: {counted(column.size, 'query')}, median {median}"
    if parse(measure).declaration.unit is not None or parse(measure).declaration.whole:
        return f"{queries}."
    return f"{queries}; {_share(zeros, column.size)} score 0, {_share(ones, column.size)} score 1."


def _share(n: int, total: int) -> str:
    return f"{n:,} ({n / total:.0%})"
