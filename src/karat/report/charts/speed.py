"""How long runs took, and what they cost."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from karat.errors import counted
from karat.format import amount
from karat.measures.aggregate import SHARES, quantile
from karat.measures.registry import Combine
from karat.report.charts.bins import cumulative, edges, edges_by_ratio, max_error
from karat.report.charts.chart import TitledChart
from karat.report.charts.distribution import bin_chart, count_in_bins
from karat.report.charts.theme import (
    NEUTRAL,
    inline_data,
    join_names,
    number_axis,
    run_encodings,
    tooltips,
)

_QUANTILES: tuple[Combine, ...] = ("p50", "p90", "p99")
POINTS, MIN_POINTS, MAX_POINTS_PER_CHART = 500, 100, 2_000
"""How many points a line has at most and at least, and all lines of a chart together."""
_NO_LOADS: Mapping[str, str | None] = {}
_LOG_SCALE_RATIO = 100
"""Where the slowest query took so many times the fastest, the axis goes by the logarithm."""


def latency(
    frame: pl.DataFrame, runs: Sequence[str], loads: Mapping[str, str | None] = _NO_LOADS
) -> list[TitledChart]:
    """Draw for each stage which share of queries was done by when: (run, stage, ms).

    `loads` says of runs how many questions shared the retriever.
    """
    return [
        TitledChart(
            f"latency-{at}",
            "speed",
            f"Latency of the stage {stage}",
            _caption(part, loads),
            _chart(part, runs),
        )
        for at, (stage, part) in enumerate(_by_stage(frame), 1)
    ]


def latency_histogram(
    frame: pl.DataFrame, runs: Sequence[str], loads: Mapping[str, str | None] = _NO_LOADS
) -> list[TitledChart]:
    """Draw for each stage how many queries took how long: (run, stage, ms)."""
    return [
        TitledChart(
            f"latency-histogram-{at}",
            "speed",
            f"Queries by latency of the stage {stage}",
            _histogram_caption(part, loads),
            _histogram(part, runs),
        )
        for at, (stage, part) in enumerate(_by_stage(frame), 1)
    ]


def _by_stage(frame: pl.DataFrame) -> list[tuple[str, pl.DataFrame]]:
    parts = frame.partition_by("stage", as_dict=True, maintain_order=True)
    return [(str(stage), part) for (stage,), part in parts.items()]


def _range(frame: pl.DataFrame) -> tuple[float, float, bool]:
    """Return the least and the most time, and whether they lie far from each other."""
    low, high = frame["ms"].min(), frame["ms"].max()
    assert isinstance(low, float)
    assert isinstance(high, float)
    return low, high, low > 0 and high > _LOG_SCALE_RATIO * low


def _histogram(frame: pl.DataFrame, runs: Sequence[str]) -> Any:
    import altair as alt

    parts = frame.partition_by("run", as_dict=True, maintain_order=True)
    held = {str(run): part["ms"].to_numpy() for (run,), part in parts.items()}
    low, high, far = _range(frame)
    found = count_in_bins(held, edges_by_ratio(low, high) if far else edges(low, high))
    first, last = found[0]["low"], found[-1]["high"]
    for row in found:
        bracket = "]" if row["high"] == last else ")"
        row["bin"] = f"[{amount(row['low'])}, {amount(row['high'])}{bracket} ms"
    x = alt.X(
        field="low",
        type="quantitative",
        title="milliseconds",
        scale=alt.Scale(type="log" if far else "linear", domain=[first, last], nice=False),
        axis=number_axis(grid=False, labelOverlap="greedy"),
    )
    return bin_chart(found, runs, x)


def _histogram_caption(frame: pl.DataFrame, loads: Mapping[str, str | None]) -> str:
    said = []
    for (run,), part in frame.partition_by("run", as_dict=True, maintain_order=True).items():
        least, most = (amount(part["ms"].sort()[at]) for at in (0, -1))
        queries = counted(part.height, "query")
        said.append(f"{run}: {queries} between {least} and {most} ms{_load_note(run, loads)}.")
    widths = " Bins widen with the time." if _range(frame)[2] else ""
    return f"How many queries took how long. {' '.join(said)}{widths}"


def _load_note(run: object, loads: Mapping[str, str | None]) -> str:
    load = loads.get(str(run))
    return f", {load}" if load else ""


def _chart(frame: pl.DataFrame, runs: Sequence[str]) -> Any:
    import altair as alt

    steps, marks = [], []
    for (run,), part in frame.partition_by("run", as_dict=True, maintain_order=True).items():
        ms, share = cumulative(part["ms"].to_numpy(), _points(frame))
        steps.append(pl.DataFrame({"run": run, "ms": ms, "share": share}))
        times = part["ms"].sort().to_list()
        for name in _QUANTILES:
            at = quantile(SHARES[name], times)
            shown = f"{name.upper()} {amount(at)} ms"
            marks.append({"run": run, "ms": at, "share": SHARES[name], "shown": shown})
    _, _, far = _range(frame)
    x = alt.X(
        field="ms",
        type="quantitative",
        title="milliseconds",
        scale=alt.Scale(type="log", nice=False) if far else alt.Scale(zero=True),
        axis=number_axis(grid=False, labelOverlap="greedy"),
    )
    y = alt.Y(
        field="share",
        type="quantitative",
        title="share of queries",
        scale=alt.Scale(domain=[0, 1]),
        axis=alt.Axis(format="%", grid=False, values=[0, 0.25, 0.5, 0.75, 1]),
    )
    levels = [{"share": SHARES[name], "name": name.upper()} for name in _QUANTILES]
    rules = alt.Chart(inline_data(levels)).encode(y=y)
    lines = alt.Chart(inline_data(pl.concat(steps))).mark_line(
        interpolate="step-after", strokeWidth=2
    )
    dots = alt.Chart(inline_data(marks)).mark_point(filled=True, size=70, opacity=1)
    return alt.layer(
        rules.mark_rule(color=NEUTRAL, strokeDash=[2, 3]),
        rules.mark_text(align="left", baseline="bottom", dx=3, dy=-2, fontSize=10).encode(
            x=alt.value(0), text=alt.Text(field="name", type="nominal")
        ),
        lines.encode(x=x, y=y, **run_encodings(runs, "color")),
        dots.encode(
            x=x,
            y=y,
            tooltip=tooltips(run="run", shown="latency"),
            **run_encodings(runs, "color", "shape"),
        ),
    ).properties(height=240)


def _points(frame: pl.DataFrame) -> int:
    """Return how many points a line has: fewer where there are many lines."""
    return max(MIN_POINTS, min(POINTS, MAX_POINTS_PER_CHART // frame["run"].n_unique()))


def _caption(frame: pl.DataFrame, loads: Mapping[str, str | None]) -> str:
    said, most = [], 0
    for (run,), part in frame.partition_by("run", as_dict=True, maintain_order=True).items():
        times = part["ms"].sort().to_list()
        most = max(most, len(times))
        spent = [f"{name.upper()} {amount(quantile(SHARES[name], times))}" for name in _QUANTILES]
        queries = f"{counted(len(times), 'query')}{_load_note(run, loads)}"
        said.append(f"{run}: {', '.join(spent)} ms of {queries}.")
    points = _points(frame)
    thinned = (
        ""
        if most <= points
        else (
            f" Lines are drawn through {points} points and are at most "
            f"{max_error(most, points):.1%} too low between them."
        )
    )
    return f"Which share of queries was done by when. {' '.join(said)}{thinned}"


def cost(frame: pl.DataFrame, runs: Sequence[str]) -> TitledChart | None:
    """Draw what each model cost in each stage; None where no call has a price."""
    named = frame.with_columns(
        pl.concat_str(
            pl.col("model").fill_null("–"), pl.lit(", "), pl.col("stage").fill_null("–")
        ).alias("what")
    )
    priced = named.filter(pl.col("usd").is_not_null())
    if not priced.height:
        return None
    said = [
        f"{run}: {amount(math.fsum(part['usd']))} USD"
        for (run,), part in priced.partition_by("run", as_dict=True, maintain_order=True).items()
    ]
    unpriced = named.filter(pl.col("usd").is_null())
    missing = [
        f"{counted(row['calls'], 'call')} of {row['what']} in {row['run']}"
        for row in unpriced.iter_rows(named=True)
    ]
    unknown = f" Without a price, and not in it: {join_names(missing)}." if missing else ""
    return TitledChart(
        "cost",
        "speed",
        "Cost by model and stage, all queries",
        f"{'; '.join(said)}.{unknown}",
        _cost_chart(priced, runs),
    )


def _cost_chart(priced: pl.DataFrame, runs: Sequence[str]) -> Any:
    import altair as alt

    kinds = (
        priced.group_by("what")
        .agg(pl.col("usd").max())
        .sort("usd", "what", descending=[True, False])
    )["what"].to_list()
    data = priced.select(
        "run",
        "what",
        "usd",
        "calls",
        pl.col("usd").map_elements(amount, return_dtype=pl.String).alias("shown"),
        *(
            pl.col(name).map_elements(lambda n: f"{n:,}", return_dtype=pl.String).fill_null("–")
            for name in ("prompt_tokens", "completion_tokens")
        ),
    )
    base = alt.Chart(inline_data(data)).encode(
        x=alt.X(
            field="usd",
            type="quantitative",
            title="USD",
            # Room for the number behind the longest bar.
            scale=alt.Scale(domain=[0, 1.15 * max(priced["usd"]) or 1], nice=False),
            axis=number_axis(),
        ),
        y=alt.Y(
            field="what", type="nominal", sort=kinds, title=None, axis=alt.Axis(labelLimit=180)
        ),
        yOffset=alt.YOffset(field="run", type="nominal", scale=alt.Scale(domain=list(runs))),
        tooltip=tooltips(
            run="run",
            what="model, stage",
            shown="USD",
            calls="calls",
            prompt_tokens="prompt tokens",
            completion_tokens="completion tokens",
        ),
    )
    bars = base.mark_bar(cornerRadius=2).encode(**run_encodings(runs, "color"))
    texts = base.mark_text(align="left", dx=4, fontSize=10).encode(
        text=alt.Text(field="shown", type="nominal")
    )
    height = len(kinds) * max(30, 16 * len(runs) + 8)
    return alt.layer(bars, texts).properties(height=height)
