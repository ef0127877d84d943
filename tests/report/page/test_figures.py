"""The figures of a section: groups share one place, others are folded, and texts are text."""

from __future__ import annotations

import pytest

from karat.report.page.sections.figures import figures_view
from karat.report.page.templates import render
from support.charts import HOSTILE, charts_of_page
from support.markup import Reader

pytest.importorskip("altair")


def test_charts_of_a_group_share_one_place() -> None:
    view = figures_view(charts_of_page(), "cutoffs")
    assert view is not None
    assert [(group.picker, len(group.charts)) for group in view.groups] == [("Measure", 4)]
    (fold,) = view.folds
    assert fold.title == "Distribution over queries"
    assert [[chart.option for chart in group.charts] for group in fold.groups] == [
        ["nDCG@10", "RR@10"]
    ]


def test_section_without_charts_has_no_figures() -> None:
    assert figures_view(charts_of_page(), "results") is None


def test_every_chart_has_a_figure_with_its_texts() -> None:
    charts = charts_of_page()
    for section in ("cutoffs", "speed"):
        view = figures_view(charts, section)
        markup = Reader(render("figures.html", view=view, sample=""))
        ids = [given["id"] for name, given in markup.elements if name == "figure"]
        drawn = [chart for chart in charts if chart.section == section]
        assert sorted(ids, key=str) == sorted(f"chart-{chart.id}" for chart in drawn)
        described = {given.get("aria-describedby") for _, given in markup.elements}
        texts = {given.get("id") for name, given in markup.elements if name == "p"}
        assert described - {None} <= texts
        assert "img" not in [name for name, _ in markup.elements]
        for chart in drawn:
            assert chart.title in markup.text
            assert chart.caption in markup.text
            assert chart.readout in markup.text
        assert HOSTILE in markup.text
