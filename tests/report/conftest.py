"""Fixtures that make reports quick to write."""

import pytest

from support.commands import parser


@pytest.fixture
def command(command, monkeypatch):
    """Run karat in this process, with a command line that is built only once."""
    monkeypatch.setattr("karat.cli.main.app", parser())
    return command


@pytest.fixture
def without_charts(monkeypatch):
    """Write pages without charts, which take longer to draw than everything else on a page."""
    monkeypatch.setattr("karat.report.page.html.charts", lambda _: [])
