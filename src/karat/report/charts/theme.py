"""How runs look in every chart: a colour, a shape and a dash of their own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import cycle, islice
from typing import Any

import polars as pl

# Each has a contrast of 3 or more on white and on near black. The first four can be told apart
# whichever colours the eye confuses; from there on shapes and dashes help.
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
"""What is no run: diagonals, rules, the unchanged."""
_LABEL_LIMIT = 260
_LEGEND_WIDTH = 48


def colours(runs: Sequence[str]) -> dict[str, str]:
    """Return the colour of each run; it hangs on its place alone."""
    return dict(zip(runs, islice(cycle(COLOURS), len(runs)), strict=True))


def run_encodings(
    runs: Sequence[str], *channels: str, lines: bool = False, told: bool = True
) -> dict[str, Any]:
    """Return encodings that tell runs apart: of `color`, `shape` and `strokeDash` those asked.

    The legend shows `lines` in place of points, or nothing is `told` by it.
    """
    import altair as alt

    ways: dict[str, tuple[Any, Sequence[Any]]] = {
        "color": (alt.Color, COLOURS),
        "shape": (alt.Shape, SHAPES),
        "strokeDash": (alt.StrokeDash, DASHES),
    }
    shown = legend(runs, lines=lines) if told else None
    found = {}
    for channel in channels:
        kind, looks = ways[channel]
        scale = alt.Scale(domain=list(runs), range=list(islice(cycle(looks), len(runs))))
        found[channel] = kind(field="run", type="nominal", scale=scale, legend=shown)
    return found


def legend(labels: Sequence[str], *, lines: bool = False) -> Any:
    """Return a legend above the chart; none where there is only one thing to tell."""
    import altair as alt

    if len(labels) < 2:
        return None
    stroke = {"symbolType": "stroke", "symbolStrokeWidth": 2, "symbolSize": 400}
    # The dash of a line would fray a symbol that is full.
    looks = stroke if lines else {"symbolStrokeWidth": 0}
    # As many side by side as a phone has room for: Vega does not wrap.
    columns = max(1, min(len(labels), _LEGEND_WIDTH // (max(map(len, labels)) + 4)))
    return alt.Legend(
        title=None, orient="top", columns=columns, labelLimit=_LABEL_LIMIT, symbolOpacity=1, **looks
    )


def number_axis(**settings: Any) -> Any:
    """Return an axis of numbers with few ticks, so that their labels have room."""
    import altair as alt

    return alt.Axis(tickCount=6, labelFlush=False, **settings)


def inline_data(data: pl.DataFrame | Iterable[Mapping[str, Any]]) -> Any:
    """Return data as it stands in a chart."""
    import altair as alt

    table = data.to_dicts() if isinstance(data, pl.DataFrame) else list(data)
    return alt.InlineData(values=tuple(table))  # Altair copies a list with each step of a chart


def tooltips(**fields: str) -> list[Any]:
    """Return what is shown of a mark: field by field, under these titles."""
    import altair as alt

    return [
        alt.Tooltip(field=field, type="nominal", title=title) for field, title in fields.items()
    ]


def join_names(names: Sequence[str]) -> str:
    """Return names as a sentence holds them.

    >>> listed(["a"]), listed(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
