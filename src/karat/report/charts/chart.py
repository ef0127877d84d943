"""A chart with its title, its takeaway and its read-out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from karat.markup import brief, shown

_MAX_TEXT = 200
ChartSection = Literal["results", "cutoffs", "speed", "history"]


@dataclass(frozen=True)
class PageChart:
    """A chart of an HTML report, as a Vega-Lite specification."""

    id: str
    section: ChartSection
    title: str
    caption: str
    """One sentence: what the chart shows."""
    readout: str
    """The numbers of the chart in words, also for readers who cannot see it."""
    spec: dict[str, Any]
    group: str | None = None
    """Charts of the same group share one place; the reader picks one by its option."""
    option: str = ""
    folded: str | None = None
    """The title of the folded part of the section that the chart is in."""


@dataclass(frozen=True)
class TitledChart:
    """An Altair chart with its title and texts, for a report or a notebook."""

    id: str
    title: str
    readout: str
    chart: Any
    section: ChartSection | None = None
    """None if pages do not draw this kind of chart; then there is no caption either."""
    caption: str = ""
    group: str | None = None
    option: str = ""
    folded: str | None = None

    def on_page(self) -> PageChart:
        """Return the chart for a report: as wide as the page, with the styles of the page."""
        assert self.section is not None
        # Altair has validated each part; validating the whole again would double the time.
        spec = self.chart.properties(width="container").to_dict(validate=False)
        # The page sets the version of Vega-Lite and the style of text and axes.
        for key in ("$schema", "config"):
            spec.pop(key, None)
        return PageChart(
            id=self.id,
            section=self.section,
            title=self.title,
            caption=self.caption,
            readout=self.readout,
            spec=_visible(spec),
            group=self.group,
            option=self.option,
            folded=self.folded,
        )


def _visible(part: Any) -> Any:
    """Return a part of a specification with long texts cut and invisible characters made visible.

    Otherwise, a name could hide or reverse the text around it.
    """
    if isinstance(part, str):
        return shown(brief(part, _MAX_TEXT))
    if isinstance(part, dict):
        return {key: _visible(value) for key, value in part.items()}
    return [_visible(item) for item in part] if isinstance(part, list) else part


def concat_charts(charts: Sequence[TitledChart], width: int = 480) -> Any:
    """Return one Altair chart: a single chart, or several stacked vertically."""
    import altair as alt

    titled = [
        chart.chart.properties(title=chart.title, description=chart.readout, width=width)
        for chart in charts
    ]
    return titled[0] if len(titled) == 1 else alt.vconcat(*titled)
