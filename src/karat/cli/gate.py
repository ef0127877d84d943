"""`karat gate`: whether a run keeps to its thresholds."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from karat.cli.advice import advise, after_gate
from karat.cli.options import Gold, Scoring, scoring
from karat.cli.outputs import Outputs, ReportTexts, report_options
from karat.config import REPORT_TEXTS


@scoring
def gate_command(
    how: Scoring,
    gold: Gold,
    run: Annotated[str, typer.Argument(metavar="RUN", help="What was found.")],
    baseline: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="A run, or scores that eval saved, to compare with."),
    ] = None,
    require: Annotated[
        list[str] | None,
        typer.Option(
            "--require",
            metavar="THRESHOLD",
            help='Such as "nDCG@10 >= 0.6", "R@10 max_drop 0.02 confidence 0.9 strict"; repeat.',
        ),
    ] = None,
    output: Annotated[
        list[Path] | None,
        typer.Option(
            "-o", "--output", metavar="FILE", help="Write .html, .xml (JUnit), .md or .json."
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
    preset: Annotated[str | None, typer.Option(metavar="NAME", help="Conventions.")] = None,
    report_texts: ReportTexts = REPORT_TEXTS,
) -> None:
    """Hold a run against thresholds, of karat.toml or --require.

    Ends with 0 if it keeps to all, with 1 if it does not, with 2 if that cannot be judged.
    """
    from karat.errors import KaratError
    from karat.evaluation import gate
    from karat.evaluation.verdict import GateEntry, document
    from karat.format import to_json
    from karat.report import verdict as verdict_files

    wanted = Outputs.of(output, verdict_files.check)
    if how.config.gate:
        print(f"thresholds of {how.config.path}", file=sys.stderr)
    try:
        with how.columns.checked():
            verdict = gate(
                how.gold(gold),
                how.run(run),
                require or (),
                baseline=None if baseline is None else how.run(baseline),
                config=how.config,
                preset=preset,
                **how.keywords,
            )
    except KaratError as error:
        # What was written by an earlier gate must not be taken for the answer to this one.
        for path in wanted.files:
            verdict_files.write([GateEntry(run, None, str(error))], path)
        wanted.write_failure(run, str(error))
        raise
    entry = GateEntry(verdict.run, verdict)
    written = [each for path in wanted.files for each in verdict_files.write([entry], path)]
    wanted.write_verdict(verdict, report_options(how, report_texts))
    print(to_json(document([entry])) if json else verdict)
    for path in [*written, *wanted.pages]:
        print(f"wrote {path}", file=sys.stderr)
    if not json:
        advise(after_gate(how, gold, run, baseline, verdict))
    if not verdict.passed:
        raise typer.Exit(1)
