"""The summary on top of a page: what was compared, which run is best, and how certain that is."""

from __future__ import annotations

from dataclasses import dataclass

from karat.report.cells import table_label
from karat.report.page.model import Page
from karat.report.page.sections.card import Card, page_card
from karat.report.page.sections.headline import (
    Pill,
    as_sentence,
    page_date,
    page_facts,
    page_headline,
    page_pill,
)
from karat.report.page.sections.interval_plot import Plot, draw_plot, estimate, main_rows


@dataclass(frozen=True)
class MainValue:
    """The value of the only run."""

    label: str
    text: str
    interval: str


@dataclass(frozen=True)
class SummaryView:
    """What the summary shows."""

    title: str
    facts: list[str]
    date: str
    created: str
    pill: Pill | None
    sentence: str
    value: MainValue | None
    """Only for a page of one run without a verdict."""
    plots: dict[str, Plot]
    """The same plot for wide and for narrow screens."""
    card: Card
    """The picture that the button copies."""


def summary_view(page: Page) -> SummaryView:
    """Return what the summary shows."""
    headline = page_headline(page)
    return SummaryView(
        title=page.title,
        facts=page_facts(page),
        date=page_date(page),
        created=page.created,
        pill=page_pill(headline),
        sentence=as_sentence(page, headline),
        value=_main_value(page),
        plots={
            "wide": draw_plot(page, width=640, size=14),
            "narrow": draw_plot(page, width=340, size=13, is_stacked=True),
        },
        card=page_card(page),
    )


def _main_value(page: Page) -> MainValue | None:
    if len(page.sheets) > 1 or page.verdict is not None or page.best is None:
        return None
    one = estimate(main_rows(page)[0])
    return MainValue(table_label(page.main_measure, page.sheets[0]), one.text, one.interval)
