"""Results as text, files, HTML pages and charts.

Each function accepts every result type that has the requested form. The rendering modules are
imported on the first call, so that importing this package is cheap.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from karat.config import REPORT_TEXTS

if TYPE_CHECKING:
    from karat.evaluation.result import Result
    from karat.measures.name_parser import AnyMeasure
    from karat.stats.groups import Field


def text(result: Result) -> str:
    """Return a result as plain text of 80 columns."""
    from karat.evaluation.comparison import Comparison
    from karat.evaluation.estimate import Estimate
    from karat.evaluation.explanation import Explanation
    from karat.evaluation.location import Location
    from karat.evaluation.usage import Usage
    from karat.evaluation.validation import Validation
    from karat.evaluation.verdict import Verdict

    match result:
        case Comparison():
            from karat.report import comparison, comparison_text

            return comparison_text.text(comparison.ComparisonSheet(result))
        case Verdict():
            from karat.report import verdict

            return verdict.text(result)
        case Explanation():
            from karat.report import explanation

            return explanation.text(result)
        case Validation():
            from karat.report import validation

            return validation.text(result)
        case Usage():
            from karat.report import usage

            return usage.text(result)
        case Estimate():
            from karat.report import estimate

            return estimate.text(result)
        case Location():
            from karat.report import location

            return location.text(result)
    raise _unsupported(result)


def html(result: Result) -> str | None:
    """Return a result as HTML for a notebook, or None if its type has no HTML form."""
    from karat.evaluation.comparison import Comparison
    from karat.evaluation.scores import Scores

    match result:
        case Scores():
            from karat.report.page.value_table import scores_html
            from karat.report.sheet import Sheet

            return scores_html(Sheet(result))
        case Comparison():
            from karat.report.comparison import ComparisonSheet
            from karat.report.page.run_pairs import comparison_html

            return comparison_html(ComparisonSheet(result, n_moved=0))
    return None


def write(result: Result, path: str | os.PathLike[str]) -> None:
    """Write a result; the extension of the path selects the format."""
    from karat.evaluation.comparison import Comparison
    from karat.evaluation.scores import Scores
    from karat.evaluation.verdict import GateEntry, Verdict

    match result:
        case Scores():
            from karat.report import scores
            from karat.report.sheet import Sheet

            is_markdown = os.fspath(path).lower().endswith(".md")
            scores.write([Sheet(result, show_queries=not is_markdown)], path)
        case Comparison():
            from karat.report import comparison, comparison_text

            comparison_text.write(comparison.ComparisonSheet(result), path)
        case Verdict():
            from karat.report import verdict

            verdict.write([GateEntry(result.run, result)], path)
        case _:
            raise _unsupported(result)


def write_page(
    result: Result,
    path: str | os.PathLike[str],
    *,
    by: Sequence[Field] = (),
    texts: int = REPORT_TEXTS,
) -> None:
    """Write an HTML report that shows a result down to single queries."""
    from karat.evaluation.comparison import Comparison
    from karat.evaluation.scores import Scores
    from karat.evaluation.verdict import Verdict
    from karat.report.options import ReportOptions
    from karat.report.page import build

    options = ReportOptions(texts)
    match result:
        case Scores():
            page = build.build_page([result], by=by, options=options)
        case Comparison():
            page = build.build_page(result.scores, comparison=result, options=options)
        case Verdict():
            page = build.verdict_page(result, options)
        case _:
            raise _unsupported(result)
    build.write(page, path)


def plot(
    result: Result,
    kind: str,
    *,
    by: Field | Sequence[Field] | None = None,
    measure: AnyMeasure | None = None,
    pairs: Sequence[tuple[str, str]] | None = None,
) -> Any:
    """Return an Altair chart of scores or of a comparison."""
    from karat.evaluation.comparison import Comparison
    from karat.evaluation.scores import Scores
    from karat.report.charts.plot import plot as plot_scores

    match result:
        case Scores():
            return plot_scores([result], kind, by=by, measure=measure)
        case Comparison():
            return plot_scores(result.scores, kind, by=by, measure=measure, pairs=pairs)
    raise _unsupported(result)


def _unsupported(result: Result) -> TypeError:
    return TypeError(f"{type(result).__name__} results do not support this output")
