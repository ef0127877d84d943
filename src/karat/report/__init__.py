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
    from karat.report.document_model import Document
    from karat.stats.groups import Field


def document(result: Result) -> Document:
    """Return what a result shows: its headline, tables and notes."""
    from karat.evaluation.comparison import Comparison
    from karat.evaluation.estimate import Estimate
    from karat.evaluation.explanation import Explanation
    from karat.evaluation.fusion_tuning import FusionTuning
    from karat.evaluation.history import History
    from karat.evaluation.location import Location
    from karat.evaluation.reranking import Reranking
    from karat.evaluation.scores import Scores
    from karat.evaluation.usage import Usage
    from karat.evaluation.validation import Validation
    from karat.evaluation.verdict import Verdict
    from karat.report.comparison import ComparisonSheet
    from karat.report.documents import (
        comparison,
        explanation,
        fusion,
        history,
        location,
        reranking,
        scores,
        usage,
        validation,
        verdict,
    )
    from karat.report.sheet import Sheet

    match result:
        case Scores():
            return scores.scores_document([Sheet(result)])
        case Comparison():
            return comparison.comparison_document(ComparisonSheet(result))
        case Verdict():
            return verdict.verdict_document(result)
        case Explanation():
            return explanation.explanation_document(result)
        case Validation():
            return validation.validation_document(result)
        case Usage():
            return usage.usage_document(result)
        case Estimate():
            return usage.estimate_document(result)
        case Location():
            return location.location_document(result)
        case FusionTuning():
            return fusion.tuning_document(result)
        case History():
            return history.history_document(result)
        case Reranking():
            return reranking.reranking_document(result)
    raise _unsupported(result)


def text(result: Result) -> str:
    """Return a result as plain text, 80 columns wide."""
    from karat.report.renderers import terminal

    return terminal.text(document(result))


def html(result: Result) -> str:
    """Return a result as HTML for a notebook."""
    from karat.report.renderers import notebook_html

    return notebook_html.html(document(result))


def write(result: Result, path: str | os.PathLike[str]) -> None:
    """Write a result in the format that the extension names."""
    from karat.evaluation.comparison import Comparison
    from karat.evaluation.history import History
    from karat.evaluation.scores import Scores
    from karat.evaluation.verdict import GateEntry, Verdict

    match result:
        case Scores():
            from karat.report import score_files
            from karat.report.sheet import Sheet

            is_markdown = os.fspath(path).lower().endswith(".md")
            score_files.write([Sheet(result, show_queries=not is_markdown)], path)
        case Comparison():
            from karat.report import comparison_files
            from karat.report.comparison import ComparisonSheet

            comparison_files.write(ComparisonSheet(result), path)
        case Verdict():
            from karat.report import verdict_files

            verdict_files.write([GateEntry(result.run, result)], path)
        case History():
            from karat.report import history_files

            history_files.write(result, path)
        case _:
            raise _unsupported(result)


def write_page(
    result: Result,
    path: str | os.PathLike[str],
    *,
    by: Sequence[Field] = (),
    texts: int = REPORT_TEXTS,
    title: str | None = None,
    full_paths: bool = False,
) -> None:
    """Write an HTML report that shows a result down to single queries, or its card (.png, .svg)."""
    from karat.evaluation.comparison import Comparison
    from karat.evaluation.scores import Scores
    from karat.evaluation.verdict import Verdict
    from karat.report import page_files
    from karat.report.options import ReportOptions
    from karat.report.page import build

    options = ReportOptions(texts, title=title, full_paths=full_paths)
    build.check([path])
    match result:
        case Scores():
            page = build.build_page([result], by=by, options=options)
        case Comparison():
            page = build.build_page(result.scores, comparison=result, options=options)
        case Verdict():
            page = build.verdict_page(result, options)
        case _:
            raise _unsupported(result)
    page_files.write(page, path)


def plot(
    result: Result,
    kind: str,
    *,
    by: Field | Sequence[Field] | None = None,
    measure: AnyMeasure | None = None,
    pairs: Sequence[tuple[str, str]] | None = None,
) -> Any:
    """Return an Altair chart of scores, of a comparison or of a history."""
    from karat.evaluation.comparison import Comparison
    from karat.evaluation.history import History
    from karat.evaluation.scores import Scores
    from karat.report.charts.plot import plot as plot_scores
    from karat.report.charts.plot import plot_history

    match result:
        case Scores():
            return plot_scores([result], kind, by=by, measure=measure)
        case Comparison():
            return plot_scores(result.scores, kind, by=by, measure=measure, pairs=pairs)
        case History():
            return plot_history(result, measure)
    raise _unsupported(result)


def _unsupported(result: Result) -> TypeError:
    return TypeError(f"{type(result).__name__} results do not support this output")
