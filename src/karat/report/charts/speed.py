"""Charts of latency and cost."""

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
"""The maximum and minimum number of points of a line, and the maximum of all lines together."""
_NO_LOADS: Mapping[str, str | None] = {}
_LOG_SCALE_RATIO = 100
"""If the slowest query took this many times as long as the fastest, the axis is logarithmic."""


def latency(
    frame: pl.DataFrame, runs: Sequence[str], loads: Mapping[str, str | None] = _NO_LOADS
) -> list[TitledChart]:
    """Return the cumulative distribution of latency for each stage: (run, stage, ms).

    `loads` states for each run how many queries ran at the same time.
    """
    return [
        TitledChart(
            f"latency-{at}",
            "speed",
            f"Latency, stage {stage}",
            _caption(part, loads),
            _chart(part, runs),
        )
        for at, (stage, part) in enumerate(_by_stage(frame), 1)
    ]


def latency_histogram(
    frame: pl.DataFrame, runs: Sequence[str], loads: Mapping[str, str | None] = _NO_LOADS
) -> list[TitledChart]:
    """Return a histogram of latency for each stage: (run, stage, ms)."""
    return [
        TitledChart(
            f"latency-histogram-{at}",
            "speed",
            f"Queries by latency, stage {stage}",
            _histogram_caption(part, loads),
            _histogram(part, runs),
        )
        for at, (stage, part) in enumerate(_by_stage(frame), 1)
    ]


def _by_stage(frame: pl.DataFrame) -> list[tuple[str, pl.DataFrame]]:
    parts = frame.partition_by("stage", as_dict=True, maintain_order=True)
    return [(str(stage), part) for (stage,), part in parts.items()]


def _range(frame: pl.DataFrame) -> tuple[float, float, bool]:
    """Return the shortest and the longest time, and whether to use a log scale."""
    low, high = frame["ms"].min(), frame["ms"].max()
    assert isinstance(low, float)
    assert isinstance(high, float)
    return low, high, low > 0 and high > _LOG_SCALE_RATIO * low


def _histogram(frame: pl.DataFrame, runs: Sequence[str]) -> Any:
    import altair as alt

    parts = frame.partition_by("run", as_dict=True, maintain_order=True)
    times = {str(run): part["ms"].to_numpy() for (run,), part in parts.items()}
    low, high, is_log = _range(frame)
    bins = count_in_bins(times, edges_by_ratio(low, high) if is_log else edges(low, high))
    first, last = bins[0]["low"], bins[-1]["high"]
    for row in bins:
        bracket = "]" if row["high"] == last else ")"
        row["bin"] = f"[{amount(row['low'])}, {amount(row['high'])}{bracket} ms"
    x = alt.X(
        field="low",
        type="quantitative",
        title="milliseconds",
        scale=alt.Scale(type="log" if is_log else "linear", domain=[first, last], nice=False),
        axis=number_axis(grid=False, labelOverlap="greedy"),
    )
    return bin_chart(bins, runs, x)


def _histogram_caption(frame: pl.DataFrame, loads: Mapping[str, str | None]) -> str:
    sentences = ["Number of queries by latency."]
    for (run,), part in frame.partition_by("run", as_dict=True, maintain_order=True).items():
        least, most = (amount(part["ms"].sort()[at]) for at in (0, -1))
        queries = counted(part.height, "query")
        sentences.append(f"{run}: {queries}, {least} to {most} ms{_load_note(run, loads)}.")
    if _range(frame)[2]:
        sentences.append("The time axis is logarithmic.")
    return " ".join(sentences)


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
            label = f"{name.upper()} {amount(at)} ms"
            marks.append({"run": run, "ms": at, "share": SHARES[name], "shown": label})
    _, _, is_log = _range(frame)
    x = alt.X(
        field="ms",
        type="quantitative",
        title="milliseconds",
        scale=alt.Scale(type="log", nice=False) if is_log else alt.Scale(zero=True),
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
    """Return the number of points per line: fewer if there are many lines."""
    return max(MIN_POINTS, min(POINTS, MAX_POINTS_PER_CHART // frame["run"].n_unique()))


def _caption(frame: pl.DataFrame, loads: Mapping[str, str | None]) -> str:
    sentences, most = ["Share of queries that finished within a time."], 0
    for (run,), part in frame.partition_by("run", as_dict=True, maintain_order=True).items():
        times = part["ms"].sort().to_list()
        most = max(most, len(times))
        levels = [f"{name.upper()} {amount(quantile(SHARES[name], times))}" for name in _QUANTILES]
        queries = f"{counted(len(times), 'query')}{_load_note(run, loads)}"
        sentences.append(f"{run}: {', '.join(levels)} ms over {queries}.")
    points = _points(frame)
    if most > points:
        sentences.append(
            f"Lines have {points} points and are at most {max_error(most, points):.1%} too low "
            "between them."
        )
    return " ".join(sentences)


def cost(frame: pl.DataFrame, runs: Sequence[str]) -> TitledChart | None:
    """Return the cost of each model in each stage; None if no call has a price."""
    named = frame.with_columns(
        pl.concat_str(
            pl.col("model").fill_null("–"), pl.lit(", "), pl.col("stage").fill_null("–")
        ).alias("what")
    )
    priced = named.filter(pl.col("usd").is_not_null())
    if not priced.height:
        return None
    totals = [
        f"{run}: {amount(math.fsum(part['usd']))} USD"
        for (run,), part in priced.partition_by("run", as_dict=True, maintain_order=True).items()
    ]
    unpriced = named.filter(pl.col("usd").is_null())
    missing = [
        f"{counted(row['calls'], 'call')} of {row['what']} in {row['run']}"
        for row in unpriced.iter_rows(named=True)
    ]
    unknown = f" Not included, no price: {join_names(missing)}." if missing else ""
    return TitledChart(
        "cost",
        "speed",
        "Cost by model and stage, all queries",
        f"{'; '.join(totals)}.{unknown}",
        _cost_chart(priced, runs),
    )


def _cost_chart(priced: pl.DataFrame, runs: Sequence[str]) -> Any:
    import altair as alt

    order = (
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
            # Leaves room for the number after the longest bar.
            scale=alt.Scale(domain=[0, 1.15 * max(priced["usd"]) or 1], nice=False),
            axis=number_axis(),
        ),
        y=alt.Y(
            field="what", type="nominal", sort=order, title=None, axis=alt.Axis(labelLimit=180)
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
    height = len(order) * max(30, 16 * len(runs) + 8)
    return alt.layer(bars, texts).properties(height=height)
