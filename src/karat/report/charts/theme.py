"""The appearance of charts: each run has its own colour, shape and dash pattern."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

LIGHT = {
    "run-0": "#1a6fc4",
    "run-1": "#c85200",
    "run-2": "#008760",
    "run-3": "#b8487f",
    "run-4": "#6a58cf",
    "run-5": "#7b5436",
    "run-6": "#0b7f94",
    "run-7": "#8f7200",
    "run-other": "#8a929c",
    "better": "#13743a",
    "worse": "#b3261e",
    "ink": "#16191d",
    "line-strong": "#8b949e",
    "surface": "#ffffff",
}
"""The colours of notebooks: those of static/theme.css with a light background."""
MAX_COLOURS = 8
"""With more runs, only the best run and the baseline have a colour on a page."""
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")
DASHES = ((1, 0), (6, 3), (2, 2), (9, 3, 2, 3), (4, 1))
_LABEL_LIMIT = 260
_LEGEND_WIDTH = 48


@dataclass(frozen=True)
class Palette:
    """The colours of a chart: variables of the style sheet on a page, fixed in a notebook."""

    runs: tuple[str, ...]
    highlighted: tuple[str, ...] = ()
    """The runs with a colour on a page of more than eight: the best run and the baseline."""
    on_page: bool = False

    @property
    def named(self) -> tuple[str, ...]:
        """The runs with a colour; in a notebook, the colours of many runs are repeated."""
        is_limited = self.on_page and len(self.runs) > MAX_COLOURS
        return self.highlighted if is_limited else self.runs

    @property
    def neutral(self) -> str:
        """The colour of everything that is not a run: diagonals, rules, unchanged queries."""
        return self.colour("line-strong")

    def colour(self, name: str) -> str:
        """Return a colour by the name of its variable in the style sheet."""
        return f"var(--{name})" if self.on_page else LIGHT[name]

    def run_colour(self, run: str) -> str:
        """Return the colour of a run; it depends only on the position of the run."""
        named = self.named
        if run not in named:
            return self.colour("run-other")
        return self.colour(f"run-{named.index(run) % MAX_COLOURS}")

    def named_last(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Return the rows with the coloured runs last: they are drawn above the grey ones."""
        return frame.sort(pl.col("run").is_in(self.named), maintain_order=True)


def run_encodings(
    palette: Palette, *channels: str, lines: bool = False, show_legend: bool = True
) -> dict[str, Any]:
    """Return the encodings of runs for some of the channels `color`, `shape` and `strokeDash`.

    With `lines`, the legend shows lines instead of points.
    """
    import altair as alt

    styles: dict[str, tuple[Any, list[Any]]] = {
        "color": (alt.Color, [palette.run_colour(run) for run in palette.runs]),
        "shape": (alt.Shape, _by_position(palette, SHAPES)),
        "strokeDash": (alt.StrokeDash, _by_position(palette, DASHES)),
    }
    run_legend = legend(palette.runs, lines=lines, only=palette.named) if show_legend else None
    encodings = {}
    for channel in channels:
        encoding, values = styles[channel]
        scale = alt.Scale(domain=list(palette.runs), range=values)
        encodings[channel] = encoding(field="run", type="nominal", scale=scale, legend=run_legend)
    return encodings


def _by_position(palette: Palette, styles: Sequence[Any]) -> list[Any]:
    """Return a style for each run; grey runs have the first."""
    named = palette.named
    return [styles[named.index(run) % len(styles) if run in named else 0] for run in palette.runs]


def legend(
    labels: Sequence[str],
    *,
    lines: bool = False,
    only: Sequence[str] | None = None,
    **settings: Any,
) -> Any:
    """Return a legend above the chart, or None if there is only one label; `only` limits it."""
    import altair as alt

    listed = labels if only is None else only
    if len(labels) < 2 or not listed:
        return None
    stroke = {"symbolType": "stroke", "symbolStrokeWidth": 2, "symbolSize": 400}
    # Without strokeWidth 0, filled symbols would get the dashed outline of their line.
    symbols: dict[str, Any] = stroke if lines else {"symbolStrokeWidth": 0}
    if len(listed) < len(labels):
        symbols["values"] = list(listed)
    # As many columns as fit on a phone: Vega does not wrap legends.
    columns = max(1, min(len(listed), _LEGEND_WIDTH // (max(map(len, listed)) + 4)))
    return alt.Legend(
        **{
            "title": None,
            "orient": "top",
            "columns": columns,
            "labelLimit": _LABEL_LIMIT,
            "symbolOpacity": 1,
            **symbols,
            **settings,
        }
    )


def number_axis(**settings: Any) -> Any:
    """Return a numeric axis with few ticks, so that their labels do not overlap."""
    import altair as alt

    overlap: dict[str, Any] = {"labelFlush": False, "labelOverlap": "greedy", "labelSeparation": 6}
    return alt.Axis(tickCount=6, **(overlap | settings))


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
