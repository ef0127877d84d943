"""Scores and comparisons as a notebook shows them."""

from __future__ import annotations

from karat.data.notebook import boxed
from karat.markup import Markup
from karat.report.comparison import ComparisonSheet
from karat.report.page.headline import headline
from karat.report.page.pairs import differences, said
from karat.report.sheet import Sheet


def scores_html(sheet: Sheet) -> Markup:
    """Return the values of a run and what must be known beside them."""
    return boxed(headline([sheet], None))


def comparison_html(sheet: ComparisonSheet) -> Markup:
    """Return the values of the runs and what lies between them."""
    return boxed(headline(sheet.runs, sheet), differences(sheet), said(sheet))
