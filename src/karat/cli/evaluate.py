"""`karat eval`: score runs against gold."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from karat.cli.options import By, Gold, MeasureNames, Preset, Scoring, scoring


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
    output: Annotated[
        list[Path] | None,
        typer.Option(
            "-o", "--output", metavar="FILE", help="Write .json, .csv, .parquet, .md or .tex."
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
    preset: Preset = None,
) -> None:
    """Score runs against gold: measures as rows, runs as columns."""
    from karat.evaluation import Evaluator
    from karat.report import files, terminal
    from karat.report.document import print_document

    files.check(output or ())
    evaluator = Evaluator(how.gold(gold), measures, preset=preset, **how.keywords)
    scores = evaluator.all([how.run(run) for run in runs])
    sheets = [
        score.sheet(by=tuple(by or ()), per_query=per_query, intervals=intervals)
        for score in scores
    ]
    written = [each for path in output or () for each in files.write(sheets, path)]
    if json:
        print_document(sheets)
    else:
        terminal.show(sheets)
    for path in written:
        print(f"wrote {path}", file=sys.stderr)
