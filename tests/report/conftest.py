"""Fixtures that make reports quick to write."""

import pytest


@pytest.fixture
def without_charts(monkeypatch):
    """Write pages without charts, which take longer to draw than everything else on a page."""
    monkeypatch.setattr("karat.report.page.html.charts", lambda _: [])
