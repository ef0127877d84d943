"""`karat compare`: whether one run is better than another, and how sure that is."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from karat.cli.advice import advise, after_compare
from karat.cli.options import By, Gold, MeasureNames, Preset, Scoring, scoring
from karat.cli.outputs import Outputs, ReportTexts, report_options
from karat.config import REPORT_TEXTS


@scoring
def compare_command(
    how: Scoring,
    gold: Gold,
    runs: Annotated[list[str], typer.Argument(metavar="RUN", help="What was found: two or more.")],
    measures: MeasureNames = None,
    baseline: Annotated[
        str | None,
        typer.Option(
            metavar="RUN", help="Compare all with this run, by name or path, not all with all."
        ),
    ] = None,
    by: By = None,
    test: Annotated[
        str, typer.Option(metavar="randomization|t|wilcoxon", help="The test that p is of.")
    ] = "randomization",
    correction: Annotated[
        str,
        typer.Option(
            metavar="holm|bh|bonferroni|tukey|none", help="How p is corrected for several pairs."
        ),
    ] = "holm",
    moved: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=0,
            help="Show N queries that rose and N that fell most, by the first measure.",
            show_default="3, or 0 for more than 10 pairs",
        ),
    ] = None,
    difference: Annotated[
        float | None,
        typer.Option(metavar="X", help="Say how many queries it takes to show a difference of X."),
    ] = None,
    output: Annotated[
        list[Path] | None,
        typer.Option(
            "-o", "--output", metavar="FILE", help="Write .html, .json, .csv, .md or .tex."
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
    preset: Preset = None,
    report_texts: ReportTexts = REPORT_TEXTS,
) -> None:
    """Compare runs pair by pair: differences, intervals, tests, and what moved."""
    from karat.evaluation import compare
    from karat.format import to_json
    from karat.report import comparison_text
    from karat.report.comparison import ComparisonSheet

    wanted = Outputs.of(output, comparison_text.check)
    with how.columns.checked():
        comparison = compare(
            how.gold(gold),
            [how.run(run) for run in runs],
            measures,
            baseline=baseline,
            by=by,
            test=test,
            correction=correction,
            preset=preset,
            **how.keywords,
        )
    sheet = ComparisonSheet(comparison, moved, difference)
    written = [each for path in wanted.files for each in comparison_text.write(sheet, path)]
    written += wanted.write_pages(
        comparison.scores, comparison=comparison, options=report_options(how, report_texts)
    )
    if json:
        print(to_json(sheet.as_dict()))
    else:
        comparison_text.show(sheet)
    for path in written:
        print(f"wrote {path}", file=sys.stderr)
    if not json:
        advise(after_compare(how, gold, runs, comparison))
