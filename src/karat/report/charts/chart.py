"""A chart with what stands beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from karat.markup import brief, shown

_MAX_TEXT = 200
ChartSection = Literal["curves", "groups", "speed", "pairs"]


@dataclass(frozen=True)
class PageChart:
    """A chart of a page, as Vega-Lite takes it."""

    id: str
    section: ChartSection
    title: str
    caption: str
    """What it shows, in words: for those who do not see it, and for those who do."""
    spec: dict[str, Any]


@dataclass(frozen=True)
class TitledChart:
    """A chart as Altair draws it; a page and a notebook show the same."""

    id: str
    section: ChartSection
    title: str
    caption: str
    chart: Any

    def on_page(self) -> PageChart:
        """Return it as wide as the page lets it, in the colours of the page."""
        # Altair checks each part as it is made; to check the whole again takes as long as all else.
        spec = self.chart.properties(width="container").to_dict(validate=False)
        # The page says which version draws it, and how text and axes look.
        for key in ("$schema", "config"):
            spec.pop(key, None)
        return PageChart(self.id, self.section, self.title, self.caption, _visible(spec))


def _visible(part: Any) -> Any:
    """Return a part of a chart with names cut and what cannot be seen in them made visible.

    A query's id stays as it is, since it is looked up by it.
    """
    if isinstance(part, str):
        return shown(brief(part, _MAX_TEXT))
    if isinstance(part, dict):
        return {key: own if key == "query_id" else _visible(own) for key, own in part.items()}
    return [_visible(own) for own in part] if isinstance(part, list) else part


def concat_charts(drawings: Sequence[TitledChart], width: int = 480) -> Any:
    """Return one Altair chart of one or several, each under its title."""
    import altair as alt

    titled = [drawing.chart.properties(title=drawing.title, width=width) for drawing in drawings]
    return titled[0] if len(titled) == 1 else alt.vconcat(*titled)
