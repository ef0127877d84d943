"""The top of a page: what it is of, and what came of it in a sentence."""

from __future__ import annotations

from karat.errors import counted
from karat.markup import Markup, named, tag
from karat.report import headline
from karat.report.page.gate import sign
from karat.report.page.headline import LONGEST
from karat.report.page.made import when
from karat.report.page.model import Page


def header(page: Page) -> Markup:
    """Return the title, the verdict and the facts that tell one page from another."""
    judged = None if page.verdict is None else (sign(page.verdict.passed), " ")
    facts = [
        counted(page.queries.ids.len(), "query"),
        counted(len(page.sheets), "run"),
        when(page.created),
    ]
    return tag(
        "header",
        tag("h1", named(page.title, 200)),
        tag("p", judged, named(_said(page), LONGEST), class_="lead"),
        tag("p", [tag("span", fact) for fact in facts], class_="about"),
    )


def _said(page: Page) -> str:
    if page.verdict is not None:
        return page.verdict.summary
    if page.comparison is not None:
        return headline.of_comparison(page.comparison)
    return headline.of_scores(page.sheets)
