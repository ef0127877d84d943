"""The appearance of charts: each run has its own colour, shape and dash pattern."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import cycle, islice
from typing import Any

import polars as pl

# Each colour has a contrast of at least 3 on white and on near black. The first four are
# distinguishable with every kind of colour blindness; further ones by shapes and dashes.
COLOURS = (
    "#1a78ca",
    "#d55e00",
    "#009e73",
    "#cf6f9f",
    "#7a6ad8",
    "#8a8f98",
    "#8f5a3c",
    "#b8860b",
)
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")
DASHES = ((1, 0), (6, 3), (2, 2), (9, 3, 2, 3), (4, 1))
NEUTRAL = "#8a8f98"
"""The colour of everything that is not a run: diagonals, rules, unchanged queries."""
_LABEL_LIMIT = 260
_LEGEND_WIDTH = 48


def colours(runs: Sequence[str]) -> dict[str, str]:
    """Return the colour of each run; it depends only on the position of the run."""
    return dict(zip(runs, islice(cycle(COLOURS), len(runs)), strict=True))


def run_encodings(
    runs: Sequence[str], *channels: str, lines: bool = False, show_legend: bool = True
) -> dict[str, Any]:
    """Return the encodings of runs for some of the channels `color`, `shape` and `strokeDash`.

    With `lines`, the legend shows lines instead of points.
    """
    import altair as alt

    styles: dict[str, tuple[Any, Sequence[Any]]] = {
        "color": (alt.Color, COLOURS),
        "shape": (alt.Shape, SHAPES),
        "strokeDash": (alt.StrokeDash, DASHES),
    }
    run_legend = legend(runs, lines=lines) if show_legend else None
    encodings = {}
    for channel in channels:
        encoding, values = styles[channel]
        scale = alt.Scale(domain=list(runs), range=list(islice(cycle(values), len(runs))))
        encodings[channel] = encoding(field="run", type="nominal", scale=scale, legend=run_legend)
    return encodings


def legend(labels: Sequence[str], *, lines: bool = False) -> Any:
    """Return a legend above the chart, or None if there is only one label."""
    import altair as alt

    if len(labels) < 2:
        return None
    stroke = {"symbolType": "stroke", "symbolStrokeWidth": 2, "symbolSize": 400}
    # Without strokeWidth 0, filled symbols would get the dashed outline of their line.
    symbols = stroke if lines else {"symbolStrokeWidth": 0}
    # As many columns as fit on a phone: Vega does not wrap legends.
    columns = max(1, min(len(labels), _LEGEND_WIDTH // (max(map(len, labels)) + 4)))
    return alt.Legend(
        title=None,
        orient="top",
        columns=columns,
        labelLimit=_LABEL_LIMIT,
        symbolOpacity=1,
        **symbols,
    )


def number_axis(**settings: Any) -> Any:
    """Return a numeric axis with few ticks, so that their labels do not overlap."""
    import altair as alt

    return alt.Axis(tickCount=6, labelFlush=False, **settings)


def inline_data(data: pl.DataFrame | Iterable[Mapping[str, Any]]) -> Any:
    """Return data that is embedded in a chart."""
    import altair as alt

    table = data.to_dicts() if isinstance(data, pl.DataFrame) else list(data)
    return alt.InlineData(
        values=tuple(table)
    )  # a tuple: Altair copies a list with every method call


def tooltips(**fields: str) -> list[Any]:
    """Return tooltips for fields, with their titles."""
    import altair as alt

    return [
        alt.Tooltip(field=field, type="nominal", title=title) for field, title in fields.items()
    ]


def join_names(names: Sequence[str]) -> str:
    """Return names joined for a sentence.

    >>> join_names(["a"]), join_names(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
