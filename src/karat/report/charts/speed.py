"""Charts of latency and cost."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from karat.errors import counted
from karat.evaluation.usage import TOTAL
from karat.format import amount
from karat.measures.aggregate import SHARES, quantile
from karat.measures.registry import Combine
from karat.report.charts.bins import cumulative, edges, edges_by_ratio, max_error
from karat.report.charts.chart import TitledChart
from karat.report.charts.distribution import bin_chart, count_in_bins
from karat.report.charts.theme import (
    Palette,
    inline_data,
    join_names,
    legend,
    number_axis,
    run_encodings,
    tooltips,
)

_QUANTILES: tuple[Combine, ...] = ("p50", "p90", "p99")
POINTS, MIN_POINTS, MAX_POINTS_PER_CHART = 500, 100, 2_000
"""The maximum and minimum number of points of a line, and the maximum of all lines together."""
_BAR_QUANTILES = {"p50": 0.5, "p95": 0.95}
_FOLDED, _FOLDED_GROUP = "Stages and histograms", "latency"
_MAX_NAMED = 4
_NO_LOADS: Mapping[str, str | None] = {}
_LOG_SCALE_RATIO = 100
"""If the slowest query took this many times as long as the fastest, the axis is logarithmic."""


def stages(frame: pl.DataFrame, palette: Palette) -> TitledChart | None:
    """Return stacked bars of the stages at p50 and p95; None if no run has stages."""
    if frame["stage"].n_unique() < 2:
        return None
    bars, totals = stage_bars(frame)
    names = list(dict.fromkeys(bar["stage"] for bar in bars))
    return TitledChart(
        id="stages",
        title="Latency by stage, p50 and p95",
        readout=_stages_readout(bars, totals),
        chart=_stages_chart(bars, totals, names, palette),
        section="speed",
        caption=_stages_takeaway(bars, totals),
    )


def stage_bars(frame: pl.DataFrame) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the quantiles of the stages of each run, one after the other, and of the total.

    A run without stages has one bar of its total. The quantiles of the stages do not add up to the
    quantile of the total, since a query that is slow in one stage may be fast in another.
    """
    bars, totals = [], []
    for (run,), part in frame.partition_by("run", as_dict=True, maintain_order=True).items():
        times = {stage: rows["ms"].to_list() for stage, rows in _by_stage(part)}
        stages = [stage for stage in times if stage != TOTAL] or [TOTAL]
        for name, share in _BAR_QUANTILES.items():
            key = {"run": run, "quantile": name, "bar": f"{run}, {name}"}
            start = 0.0
            for stage in stages:
                ms = quantile(share, times[stage])
                bars.append(key | {"stage": stage, "ms": ms, "start": start, "end": start + ms})
                start += ms
            if TOTAL in times:
                totals.append(key | {"ms": quantile(share, times[TOTAL])})
    return bars, totals


def _stages_chart(
    bars: list[dict[str, Any]], totals: list[dict[str, Any]], names: list[str], palette: Palette
) -> Any:
    import altair as alt

    ends = {bar["bar"]: bar["end"] for bar in bars}
    for total in totals:
        ends[total["bar"]] = max(ends[total["bar"]], total["ms"])
    # Leaves room for the text after the longest bar.
    scale = alt.Scale(domain=[0, 1.35 * max(ends.values()) or 1], nice=False)
    axis = {"type": "quantitative", "title": "milliseconds", "scale": scale, "axis": number_axis()}
    y = alt.Y(
        field="bar",
        type="nominal",
        sort=list(ends),
        title=None,
        axis=alt.Axis(labelLimit=170, domain=False, ticks=False),
    )
    opacity = alt.Opacity(
        field="stage",
        type="ordinal",
        sort=names,
        scale=alt.Scale(
            type="ordinal", domain=names, range=np.linspace(1, 0.35, len(names)).tolist()
        ),
        # The symbols are as opaque as the bars.
        legend=legend(
            names,
            symbolType="square",
            symbolFillColor=palette.neutral,
            symbolOpacity=alt.Undefined,
        ),
    )
    drawn = alt.Chart(inline_data(row | {"shown": _milliseconds(row["ms"])} for row in bars))
    layers = [
        drawn.mark_bar(stroke=palette.colour("surface"), strokeWidth=1).encode(
            x=alt.X(field="start", **axis),
            x2=alt.X2(field="end"),
            y=y,
            opacity=opacity,
            tooltip=tooltips(run="run", stage="stage", quantile="quantile", shown="latency"),
            **run_encodings(palette, "color", show_legend=False),
        )
    ]
    if totals:
        rows = [
            row | {"shown": _milliseconds(row["ms"]), "end": ends[row["bar"]]} for row in totals
        ]
        marks = alt.Chart(inline_data(rows)).encode(
            y=y, tooltip=tooltips(bar="total of", shown="latency")
        )
        layers += [
            marks.mark_tick(thickness=2, size=18, color=palette.colour("ink")).encode(
                x=alt.X(field="ms", **axis)
            ),
            marks.mark_text(align="left", dx=6, fontSize=11).encode(
                x=alt.X(field="end", **axis), text=alt.Text(field="shown", type="nominal")
            ),
        ]
    return alt.layer(*layers).properties(height=max(60, 24 * len(ends)))


def _milliseconds(ms: float) -> str:
    """Format a latency with three significant digits.

    >>> _milliseconds(1234.5), _milliseconds(30.05), _milliseconds(0.1234)
    ('1,234 ms', '30.1 ms', '0.12 ms')
    """
    decimals = 0 if ms >= 100 else 1 if ms >= 10 else 2
    return f"{ms:,.{decimals}f} ms"


def _stages_takeaway(bars: list[dict[str, Any]], totals: list[dict[str, Any]]) -> str:
    """State the median latency of the slowest and the fastest run, and the slowest stage."""
    medians = {bar["run"]: bar["end"] for bar in bars if bar["quantile"] == "p50"}
    medians |= {total["run"]: total["ms"] for total in totals if total["quantile"] == "p50"}
    slowest, fastest = (pick(medians, key=lambda run: medians[run]) for pick in (max, min))
    parts = [bar for bar in bars if bar["run"] == slowest and bar["quantile"] == "p50"]
    longest = max(parts, key=lambda bar: bar["ms"])
    text = f"{slowest} takes {_milliseconds(medians[slowest])} at p50"
    if slowest != fastest:
        text += f", {fastest} {_milliseconds(medians[fastest])}"
    if longest["stage"] == TOTAL:
        return f"{text}."
    return f"{text}; the slowest stage of {slowest} is {longest['stage']}."


def _stages_readout(bars: list[dict[str, Any]], totals: list[dict[str, Any]]) -> str:
    sentences = []
    for bar in dict.fromkeys(row["bar"] for row in bars):
        texts = [f"{row['stage']} {amount(row['ms'])}" for row in bars if row["bar"] == bar]
        texts += [f"total {amount(row['ms'])}" for row in totals if row["bar"] == bar]
        sentences.append(f"{bar}: {', '.join(texts)} ms.")
    if totals:
        sentences.append(
            "The tick marks the total; the quantiles of the stages do not add up to it exactly."
        )
    return " ".join(sentences)


def latency(
    frame: pl.DataFrame, palette: Palette, loads: Mapping[str, str | None] = _NO_LOADS
) -> list[TitledChart]:
    """Return the cumulative distribution of latency for each stage: (run, stage, ms).

    `loads` states for each run how many queries ran at the same time.
    """
    charts = [
        TitledChart(
            id=f"latency-{at}",
            title=_cumulative_title(stage),
            readout=_readout(part, loads),
            chart=_chart(part, palette),
            section="speed",
            caption=_takeaway(part, stage),
            group=_FOLDED_GROUP,
            option=f"{stage}: cumulative",
            folded=_FOLDED,
        )
        for at, (stage, part) in enumerate(_by_stage(frame), 1)
    ]
    # The total comes first; the stages are folded.
    return [replace(charts[0], group=None, option="", folded=None), *charts[1:]]


def latency_histogram(
    frame: pl.DataFrame, palette: Palette, loads: Mapping[str, str | None] = _NO_LOADS
) -> list[TitledChart]:
    """Return a histogram of latency for each stage: (run, stage, ms)."""
    return [
        TitledChart(
            id=f"latency-histogram-{at}",
            title=_histogram_title(stage),
            readout=_histogram_readout(part, loads),
            chart=_histogram(part, palette),
            section="speed",
            caption=_slowest(part),
            group=_FOLDED_GROUP,
            option=f"{stage}: histogram",
            folded=_FOLDED,
        )
        for at, (stage, part) in enumerate(_by_stage(frame), 1)
    ]


def _cumulative_title(stage: str) -> str:
    done = "answered" if stage == TOTAL else f"that finished {stage}"
    return f"Share of queries {done} within t ms"


def _histogram_title(stage: str) -> str:
    return f"Distribution of {'total' if stage == TOTAL else stage} latency over queries"


def _by_stage(frame: pl.DataFrame) -> list[tuple[str, pl.DataFrame]]:
    parts = frame.partition_by("stage", as_dict=True, maintain_order=True)
    return [(str(stage), part) for (stage,), part in parts.items()]


def _range(frame: pl.DataFrame) -> tuple[float, float, bool]:
    """Return the shortest and the longest time, and whether to use a log scale."""
    low, high = frame["ms"].min(), frame["ms"].max()
    assert isinstance(low, float)
    assert isinstance(high, float)
    return low, high, low > 0 and high > _LOG_SCALE_RATIO * low


def _histogram(frame: pl.DataFrame, palette: Palette) -> Any:
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
        axis=number_axis(grid=False),
    )
    return bin_chart(bins, palette, x)


def _slowest(frame: pl.DataFrame) -> str:
    row = frame.sort("ms").row(-1, named=True)
    return f"The slowest query took {_milliseconds(row['ms'])}, in {row['run']}."


def _histogram_readout(frame: pl.DataFrame, loads: Mapping[str, str | None]) -> str:
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


def _chart(frame: pl.DataFrame, palette: Palette) -> Any:
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
        axis=number_axis(grid=False),
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
    lines = alt.Chart(inline_data(palette.named_last(pl.concat(steps)))).mark_line(
        interpolate="step-after", strokeWidth=2
    )
    dots = alt.Chart(inline_data(palette.named_last(pl.DataFrame(marks)))).mark_point(
        filled=True, size=70, opacity=1
    )
    return alt.layer(
        rules.mark_rule(color=palette.neutral, strokeDash=[2, 3]),
        rules.mark_text(align="left", baseline="bottom", dx=3, dy=-2, fontSize=10).encode(
            x=alt.value(0), text=alt.Text(field="name", type="nominal")
        ),
        lines.encode(x=x, y=y, **run_encodings(palette, "color")),
        dots.encode(
            x=x,
            y=y,
            tooltip=tooltips(run="run", shown="latency"),
            **run_encodings(palette, "color", "shape"),
        ),
    ).properties(height=240)


def _points(frame: pl.DataFrame) -> int:
    """Return the number of points per line: fewer if there are many lines."""
    return max(MIN_POINTS, min(POINTS, MAX_POINTS_PER_CHART // frame["run"].n_unique()))


def _takeaway(frame: pl.DataFrame, stage: str) -> str:
    """State how long 95% of the queries took: of a few runs, or of the fastest and slowest."""
    parts = frame.partition_by("run", as_dict=True, maintain_order=True)
    times = sorted(
        (quantile(0.95, part["ms"].to_list()), str(run)) for (run,), part in parts.items()
    )
    (least, fastest), *others = times if len(times) <= _MAX_NAMED else [times[0], times[-1]]
    slower = [f"{run} within {_milliseconds(ms)}" for ms, run in others]
    done = "answers 95% of queries" if stage == TOTAL else f"finishes {stage} for 95% of queries"
    first = f"{fastest} {done} within {_milliseconds(least)}"
    return ", ".join([first, *slower]) + "."


def _readout(frame: pl.DataFrame, loads: Mapping[str, str | None]) -> str:
    sentences, most = ["Share of queries that finished within a time."], 0
    for (run,), part in frame.partition_by("run", as_dict=True, maintain_order=True).items():
        times = part["ms"].sort().to_list()
        most = max(most, len(times))
        levels = [f"{name.upper()} {amount(quantile(SHARES[name], times))}" for name in _QUANTILES]
        levels.insert(2, f"P95 {amount(quantile(0.95, times))}")
        queries = f"{counted(len(times), 'query')}{_load_note(run, loads)}"
        sentences.append(f"{run}: {', '.join(levels)} ms over {queries}.")
    points = _points(frame)
    if most > points:
        sentences.append(
            f"Lines have {points} points and are at most {max_error(most, points):.1%} too low "
            "between them."
        )
    return " ".join(sentences)


def cost(frame: pl.DataFrame, palette: Palette) -> TitledChart | None:
    """Return the cost of each model in each stage; None if no call has a price."""
    named = frame.with_columns(
        pl.concat_str(
            pl.col("model").fill_null("–"), pl.lit(", "), pl.col("stage").fill_null("–")
        ).alias("what"),
        (pl.col("usd") / pl.col("queries")).alias("per_query"),
    )
    priced = named.filter(pl.col("usd").is_not_null())
    if not priced.height:
        return None
    many, unit = _cost_unit(priced["per_query"].to_list())
    priced = priced.with_columns(amount=pl.col("per_query") * many)
    totals = {
        str(run): math.fsum(part["amount"])
        for (run,), part in priced.partition_by("run", as_dict=True, maintain_order=True).items()
    }
    unpriced = named.filter(pl.col("usd").is_null())
    missing = [
        f"{counted(row['calls'], 'call')} of {row['what']} in {row['run']}"
        for row in unpriced.iter_rows(named=True)
    ]
    unknown = f" Not included, no price: {join_names(missing)}." if missing else ""
    parts = [
        f"{row['run']}, {row['what']}: {dollars(row['amount'])} per {unit}, {dollars(row['usd'])} "
        f"for all {counted(row['queries'], 'query')}."
        for row in priced.iter_rows(named=True)
    ]
    return TitledChart(
        id="cost",
        title=f"Cost by model and stage, per {unit}",
        readout=f"{' '.join(parts)}{unknown}",
        chart=_cost_chart(priced, unit, palette),
        section="speed",
        caption=_cost_takeaway(totals, unit),
    )


def dollars(usd: float) -> str:
    """Format an amount of money with at least two significant digits.

    >>> dollars(2001.3), dollars(1.67), dollars(0.264), dollars(0.00123), dollars(0.0)
    ('$2,001', '$1.67', '$0.26', '$0.0012', '$0.00')
    """
    if usd >= 100:
        return f"${usd:,.0f}"
    decimals = 1 - math.floor(math.log10(usd)) if usd > 0 else 2
    return f"${usd:,.{max(2, decimals)}f}"


def _cost_unit(per_query: Sequence[float]) -> tuple[int, str]:
    """Return how many queries the cost is stated for, so that the smallest amount is readable."""
    smallest = min((usd for usd in per_query if usd > 0), default=1.0)
    return (1_000, "1k queries") if smallest * 1_000 >= 0.01 else (1_000_000, "1M queries")


def _cost_takeaway(totals: Mapping[str, float], unit: str) -> str:
    ordered = sorted(totals.items(), key=lambda pair: pair[1])
    (cheapest, least), *others = (
        ordered if len(ordered) <= _MAX_NAMED else [ordered[0], ordered[-1]]
    )
    more = [f"{run} {dollars(usd)}" for run, usd in others]
    return ", ".join([f"{cheapest} costs {dollars(least)} per {unit}", *more]) + "."


def _cost_chart(priced: pl.DataFrame, unit: str, palette: Palette) -> Any:
    import altair as alt

    order = (
        priced.group_by("what")
        .agg(pl.col("amount").max())
        .sort("amount", "what", descending=[True, False])
    )["what"].to_list()
    data = priced.select(
        "run",
        "what",
        "amount",
        "calls",
        pl.col("amount").map_elements(dollars, return_dtype=pl.String).alias("shown"),
        *(
            pl.col(name).map_elements(lambda n: f"{n:,}", return_dtype=pl.String).fill_null("–")
            for name in ("prompt_tokens", "completion_tokens")
        ),
    )
    base = alt.Chart(inline_data(data)).encode(
        x=alt.X(
            field="amount",
            type="quantitative",
            title=f"USD per {unit}",
            # Leaves room for the number after the longest bar.
            scale=alt.Scale(domain=[0, 1.2 * max(priced["amount"]) or 1], nice=False),
            axis=number_axis(),
        ),
        y=alt.Y(
            field="what", type="nominal", sort=order, title=None, axis=alt.Axis(labelLimit=180)
        ),
        yOffset=alt.YOffset(
            field="run", type="nominal", scale=alt.Scale(domain=list(palette.runs))
        ),
        tooltip=tooltips(
            run="run",
            what="model, stage",
            shown=f"per {unit}",
            calls="calls",
            prompt_tokens="prompt tokens",
            completion_tokens="completion tokens",
        ),
    )
    bars = base.mark_bar(cornerRadius=2).encode(**run_encodings(palette, "color"))
    texts = base.mark_text(align="left", dx=4, fontSize=10).encode(
        text=alt.Text(field="shown", type="nominal")
    )
    height = len(order) * max(30, 16 * len(palette.runs) + 8)
    return alt.layer(bars, texts).properties(height=height)
