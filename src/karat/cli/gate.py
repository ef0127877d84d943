"""`karat gate`: whether a run keeps to its thresholds."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from karat.cli.next_step import advise, after_gate
from karat.cli.options import GOLD, JSON, REPORT_QUERIES, RUN, SCORING, Scoring, output_files
from karat.cli.outputs import Outputs, report_options
from karat.cli.parameters import Option, command


@command(
    "gate",
    GOLD,
    RUN,
    Option(
        "--require",
        panel="Thresholds",
        metavar="THRESHOLD",
        multiple=True,
        help='Require a threshold, such as "nDCG@10 >= 0.6" or '
        '"R@10 max_drop 0.02 confidence 0.9 strict". Repeat for more.',
    ),
    Option(
        "--baseline",
        panel="Thresholds",
        metavar="FILE",
        help="Compare with this run, or with scores that eval saved.",
    ),
    output_files(".html, .xml (JUnit), .md or .json"),
    JSON,
    REPORT_QUERIES,
    Option("--preset", panel="Scoring", metavar="NAME", help="Use the conventions of a preset."),
    *SCORING,
)
def gate_command(
    gold: str,
    run: str,
    require: tuple[str, ...],
    baseline: str | None,
    output: tuple[Path, ...],
    json: bool,
    report_texts: int,
    preset: str | None,
    **scoring: Any,
) -> None:
    """Check a run against the thresholds of karat.toml or --require.

    The exit code is 0 if the run meets all thresholds, 1 if it does not, and 2 if that cannot be
    determined.
    """
    from karat.errors import KaratError
    from karat.evaluation.verdict import GateEntry, document, gate
    from karat.format import to_json
    from karat.report import verdict as verdict_files

    how = Scoring.of(scoring)
    wanted = Outputs.of(output, verdict_files.check)
    if how.config.gate:
        print(f"thresholds of {how.config.path}", file=sys.stderr)
    try:
        with how.columns.checked():
            verdict = gate(
                how.gold(gold),
                how.run(run),
                require,
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
        advise(after_gate(how, gold, run, preset, baseline, verdict))
    if not verdict.passed:
        raise click.exceptions.Exit(1)
