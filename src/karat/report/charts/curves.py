"""Line charts: values by cutoff, precision by recall, and recall by delivered characters."""

from __future__ import annotations

from collections import Counter
from typing import Any

import polars as pl

from karat.measures import Measure, parse
from karat.report.cells import format_value
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

_GROUP = "cutoffs"
_MAX_NAMED = 3
_LOG_SCALE_RATIO = 30


def curves(frame: pl.DataFrame, palette: Palette, main: Measure | None = None) -> list[TitledChart]:
    """Return one chart per measure of its values by k: (run, measure, k, value).

    The curve of the main measure comes first, if there is one.
    """
    parts = frame.partition_by("measure", as_dict=True, maintain_order=True)
    name = None if main is None else Measure(main.declaration, None, main.params).name
    return [
        TitledChart(
            id=f"curve-{at}",
            title=f"{parse(measure).declaration.title} by cutoff ({measure}@k)",
            readout=_readout(measure, parts[measure,]),
            chart=_by_depth(parts[measure,].drop("measure"), palette),
            section="cutoffs",
            caption=_takeaway(measure, parts[measure,], main),
            group=_GROUP,
            option=f"{measure}@k",
        )
        for at, measure in enumerate(sorted((key[0] for key in parts), key=lambda m: m != name), 1)
    ]


def _by_depth(frame: pl.DataFrame, palette: Palette) -> Any:
    import altair as alt

    depths = frame["k"].unique().sort().to_list()
    x = alt.X(
        field="k",
        type="quantitative",
        title="k (cutoff)",
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
    return _lines(frame, palette, x, y, k="k", shown="value").properties(height=260)


def precision_recall(frame: pl.DataFrame, palette: Palette) -> TitledChart:
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
        id="precision-recall",
        title="Interpolated precision by recall",
        readout="The highest precision at each recall level or above, as a mean over queries: "
        f"from recall 0 to recall 1, {join_names(changes)}.",
        chart=_lines(renamed, palette, x, y, recall="recall", shown="precision").properties(
            height=260
        ),
        section="cutoffs",
        caption=_precision_takeaway(renamed),
        group=_GROUP,
        option="precision by recall",
    )


def _precision_takeaway(frame: pl.DataFrame) -> str:
    leaders = _leaders(frame, "recall")
    if frame["run"].n_unique() == 1:
        first, middle = frame["value"][0], frame.filter(pl.col("recall") == 0.5)["value"].item()
        run = frame["run"][0]
        return f"{run}: precision {first:.3f} at the lowest recall, {middle:.3f} at recall 0.5."
    run, levels = Counter(run for runs in leaders.values() for run in runs).most_common(1)[0]
    return f"{run} has the highest precision at {levels} of {len(leaders)} recall levels."


def recall_by_characters(frame: pl.DataFrame, palette: Palette) -> list[TitledChart]:
    """Return one chart per kind of recall: (run, measure, k, value, characters)."""
    return [
        _characters_chart(f"characters-{at}", measure, part, palette)
        for at, ((measure,), part) in enumerate(
            frame.partition_by("measure", as_dict=True, maintain_order=True).items(), 1
        )
    ]


def _characters_chart(
    chart_id: str, measure: str, frame: pl.DataFrame, palette: Palette
) -> TitledChart:
    import altair as alt

    least, most = (end(frame["characters"]) for end in (min, max))
    is_log = least > 0 and most > _LOG_SCALE_RATIO * least
    x = alt.X(
        field="characters",
        type="quantitative",
        title="characters delivered per query, mean",
        scale=alt.Scale(type="log", nice=False) if is_log else alt.Scale(zero=True),
        axis=number_axis(grid=False),
    )
    y = alt.Y(
        field="value",
        type="quantitative",
        title=measure,
        scale=alt.Scale(domainMin=0),
        axis=number_axis(),
    )
    rows = frame.with_columns(
        pl.col("characters").map_elements(lambda n: f"{n:,.0f}", return_dtype=pl.String).alias("of")
    )
    lines = _lines(rows, palette, x, y, k="k", of="characters", shown=measure)
    points = [
        f"{row['run']} at k = {row['k']}: {format_value(row['value'])} with "
        f"{row['characters']:,.0f} characters"
        for row in frame.iter_rows(named=True)
    ]
    return TitledChart(
        id=chart_id,
        title=f"{measure} against characters delivered",
        readout=f"{measure} by the mean number of characters of the first k results. "
        f"{'; '.join(points)}.",
        chart=lines.properties(height=260),
        section="results",
        caption=_characters_takeaway(measure, frame),
    )


def _characters_takeaway(measure: str, frame: pl.DataFrame) -> str:
    """State what each run delivers to reach a value that all runs reach."""
    parts = {
        str(run): part.select("value", "characters").rows()
        for (run,), part in frame.partition_by("run", as_dict=True, maintain_order=True).items()
    }
    target = min(max(value for value, _ in points) for points in parts.values())
    needed = sorted(
        (min(characters for value, characters in points if value >= target), run)
        for run, points in parts.items()
    )
    (fewest, first), *others = needed
    some = others if len(others) <= _MAX_NAMED else [*others[: _MAX_NAMED - 1], others[-1]]
    texts = [f"{first} delivers {fewest:,.0f} characters per query"]
    texts += [f"{run} {characters:,.0f}" for characters, run in some]
    return f"To reach {measure} {format_value(target)}, {', '.join(texts)}."


def _lines(frame: pl.DataFrame, palette: Palette, x: Any, y: Any, **tooltip_titles: str) -> Any:
    import altair as alt

    data = palette.named_last(frame).with_columns(
        pl.col("value").map_elements(format_value, return_dtype=pl.String).alias("shown")
    )
    base = alt.Chart(inline_data(data)).encode(
        x=x, y=y, tooltip=tooltips(run="run", **tooltip_titles)
    )
    is_crowded = len(palette.runs) > MAX_COLOURS
    lines = base.mark_line(strokeWidth=1 if is_crowded else 2).encode(
        **run_encodings(palette, "color", "strokeDash")
    )
    points = base.mark_point(filled=True, size=20 if is_crowded else 45, opacity=1).encode(
        **run_encodings(palette, "color", "shape")
    )
    return alt.layer(lines, points)


def _readout(measure: str, frame: pl.DataFrame) -> str:
    parts = frame.partition_by("run", as_dict=True, maintain_order=True)
    texts = []
    for (run,), part in parts.items():
        rows = part.rows(named=True)
        some = rows if len(parts) <= MAX_COLOURS else [rows[0], rows[-1]]
        values = [f"{format_value(row['value'])} at k = {row['k']}" for row in some]
        texts.append(f"{run}: {', '.join(values)}.")
    return f"{measure} of the first k results. {' '.join(texts)}"


def _takeaway(measure: str, frame: pl.DataFrame, main: Measure | None) -> str:
    """State which run leads, and whether that depends on the cutoff."""
    depths = frame["k"].unique().sort().to_list()
    at = depths[len(depths) // 2]
    if main is not None and main.cutoff in depths:
        at = main.cutoff
    values = dict(frame.filter(pl.col("k") == at).select("run", "value").iter_rows())
    if len(values) == 1:
        ((run, value),) = values.items()
        return f"{run} has {measure}@{at} = {format_value(value)}."
    leaders = _leaders(frame, "k")
    always = [run for run in values if all(run in runs for runs in leaders.values())]
    low, high = min(values.values()), max(values.values())
    others = f"{format_value(high)} against {format_value(low)}"
    if len(always) == len(values):
        return "All runs have the same values."
    if always:
        lowest = "" if len(values) == 2 else " for the lowest run"
        verb = "is" if len(always) == 1 else "are"
        return f"{join_names(always)} {verb} highest at every k; {others}{lowest} at k = {at}."
    (first, *_), (last, *_) = leaders[depths[0]], leaders[depths[-1]]
    if first == last:
        return f"{leaders[at][0]} is highest at k = {at}, but not at every k."
    return f"{first} is highest at k = {depths[0]}, {last} at k = {depths[-1]}."


def _leaders(frame: pl.DataFrame, axis: str) -> dict[float, list[str]]:
    """Return the runs with the highest value at each position of the axis."""
    best = frame.filter(pl.col("value") == pl.col("value").max().over(axis))
    return {
        position: part["run"].to_list()
        for (position,), part in best.partition_by(axis, as_dict=True, maintain_order=True).items()
    }
