"""The charts of a section: single figures, figures that share one place, and folded ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from karat.report.charts import PageChart

_PICKERS = {
    "cutoffs": "Measure",
    "distribution": "Measure",
    "latency": "Stage",
    "history": "Measure",
}
"""The label of the control that picks a chart of a group."""


@dataclass(frozen=True)
class FigureGroup:
    """Charts in one place; if there are several, the reader picks one."""

    picker: str
    charts: list[PageChart]


@dataclass(frozen=True)
class Fold:
    """A folded part of a section."""

    title: str
    groups: list[FigureGroup] = field(default_factory=list)


@dataclass(frozen=True)
class FiguresView:
    """The charts of a section."""

    groups: list[FigureGroup]
    folds: list[Fold]


def figures_view(charts: Sequence[PageChart], section: str) -> FiguresView | None:
    """Return the charts of a section, or None if it has none."""
    view = FiguresView([], [])
    found: dict[tuple[str | None, str], FigureGroup] = {}
    for chart in charts:
        if chart.section != section:
            continue
        key = chart.folded, chart.group or chart.id
        if key not in found:
            found[key] = FigureGroup(_PICKERS.get(chart.group or "", ""), [])
            _groups(view, chart.folded).append(found[key])
        found[key].charts.append(chart)
    return view if found else None


def _groups(view: FiguresView, folded: str | None) -> list[FigureGroup]:
    """Return the groups of a fold, which is added if it is new; None: those always visible."""
    if folded is None:
        return view.groups
    fold = next((fold for fold in view.folds if fold.title == folded), None)
    if fold is None:
        fold = Fold(folded)
        view.folds.append(fold)
    return fold.groups
