"""`karat eval`: score runs against gold."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from karat.cli.advice import advise, after_eval
from karat.cli.options import By, Gold, MeasureNames, Preset, Scoring, repeated, scoring
from karat.cli.outputs import Outputs, ReportTexts, report_options
from karat.config import REPORT_TEXTS


@scoring
def evaluate_command(
    how: Scoring,
    gold: Gold,
    runs: Annotated[list[str], typer.Argument(metavar="RUN", help="What was found.")],
    measures: MeasureNames = None,
    by: By = None,
    per_query: Annotated[bool, typer.Option("--per-query", help="Also for each query.")] = False,
    intervals: Annotated[
        bool, typer.Option("--intervals/--no-intervals", help="Also between what values lie.")
    ] = True,
    median: Annotated[
        bool, typer.Option("--median", help="Show the median over queries next to each value.")
    ] = False,
    output: Annotated[
        list[Path] | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="Write .html, .json, .csv, .parquet, .md or .tex.",
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
    preset: Preset = None,
    report_texts: ReportTexts = REPORT_TEXTS,
) -> None:
    """Score runs against gold: measures as rows, runs as columns."""
    from karat.evaluation import Evaluator
    from karat.format import to_json
    from karat.report import scores as scores_files
    from karat.report import terminal
    from karat.report.sheet import Sheet

    wanted = Outputs.of(output, scores_files.check)
    with how.columns.checked():
        evaluator = Evaluator(how.gold(gold), measures, preset=preset, **how.keywords)
        scores = evaluator.all([how.run(run) for run in runs])
    sheets = [
        Sheet(score, tuple(by or ()), per_query, intervals=intervals, show_medians=median)
        for score in scores
    ]
    written = [each for path in wanted.files for each in scores_files.write(sheets, path)]
    report = report_options(how, report_texts)
    written += wanted.write_pages(scores, by=tuple(by or ()), options=report)
    if json:
        print(to_json(scores_files.json_document(sheets)))
    else:
        terminal.show(sheets)
    for path in written:
        print(f"wrote {path}", file=sys.stderr)
    if not json:
        options = repeated(measure=measures, by=by, preset=preset)
        advise(after_eval(how, gold, runs, options, scores))
