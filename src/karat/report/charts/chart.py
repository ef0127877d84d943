"""A chart with its title and caption."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from karat.markup import brief, shown

_MAX_TEXT = 200
ChartSection = Literal["curves", "groups", "speed", "comparison"]


@dataclass(frozen=True)
class PageChart:
    """A chart of an HTML report, as a Vega-Lite specification."""

    id: str
    section: ChartSection
    title: str
    caption: str
    """A description of the chart, also for readers who cannot see it."""
    spec: dict[str, Any]


@dataclass(frozen=True)
class TitledChart:
    """An Altair chart with its title and caption, for a report or a notebook."""

    id: str
    section: ChartSection
    title: str
    caption: str
    chart: Any

    def on_page(self) -> PageChart:
        """Return the chart for a report: as wide as the page, with the styles of the page."""
        # Altair has validated each part; validating the whole again would double the time.
        spec = self.chart.properties(width="container").to_dict(validate=False)
        # The page sets the version of Vega-Lite and the style of text and axes.
        for key in ("$schema", "config"):
            spec.pop(key, None)
        return PageChart(self.id, self.section, self.title, self.caption, _visible(spec))


def _visible(part: Any) -> Any:
    """Return a part of a specification with long texts cut and invisible characters made visible.

    Query ids are unchanged, since the page looks queries up by id.
    """
    if isinstance(part, str):
        return shown(brief(part, _MAX_TEXT))
    if isinstance(part, dict):
        return {key: value if key == "query_id" else _visible(value) for key, value in part.items()}
    return [_visible(item) for item in part] if isinstance(part, list) else part


def concat_charts(charts: Sequence[TitledChart], width: int = 480) -> Any:
    """Return one Altair chart: a single chart, or several stacked vertically."""
    import altair as alt

    titled = [chart.chart.properties(title=chart.title, width=width) for chart in charts]
    return titled[0] if len(titled) == 1 else alt.vconcat(*titled)
