"""`karat gate`: check whether a run meets its thresholds."""

from __future__ import annotations

import sys
from pathlib import Path
from time import perf_counter
from typing import Any

import click

from karat.cli.next_step import advise, after_gate
from karat.cli.options import (
    CLUSTER,
    ENGINE,
    GOLD,
    JSON,
    MASTER,
    MEMORY,
    REPORT,
    RUN,
    SCORING,
    Scoring,
    output_files,
    start_engine,
)
from karat.cli.outputs import Outputs, print_written, report_options
from karat.cli.parameters import Option
from karat.cli.project import project_command, setting_errors


@project_command(
    "gate",
    GOLD,
    RUN,
    Option(
        "--require",
        panel="Thresholds",
        metavar="THRESHOLD",
        multiple=True,
        help='Add a threshold, such as "nDCG@10 >= 0.6" or '
        '"R@10 max_drop 0.02 confidence 0.9 strict". max_drop 0.02 fails if the drop is '
        "significantly larger than 0.02. With strict, it passes only if the drop is significantly "
        "smaller than 0.02. confidence sets the confidence level of this test (default 0.95). "
        "Repeat for more.",
    ),
    Option(
        "--baseline",
        panel="Thresholds",
        metavar="FILE",
        setting="baseline",
        is_path=True,
        help="Check max_drop and max_rise relative to this baseline: a run, or scores saved by "
        "`karat eval`.",
    ),
    CLUSTER,
    Option(
        "--update-baseline",
        panel="Thresholds",
        is_flag=True,
        help="Replace the baseline, a .parquet or .json file, by the scores of this run if it "
        "passes. If there is no baseline yet, thresholds that compare with it are not checked.",
    ),
    output_files(".html, .xml (JUnit), .md or .json"),
    JSON,
    *REPORT,
    Option(
        "--preset",
        panel="Scoring",
        metavar="NAME",
        help="Use the measure names and conventions of a preset, such as coverage.",
    ),
    ENGINE,
    MASTER,
    MEMORY,
    *SCORING,
)
def gate_command(
    gold: str,
    run: str,
    require: tuple[str, ...],
    baseline: str | None,
    cluster: str | None,
    update_baseline: bool,
    output: tuple[Path, ...],
    json: bool,
    title: str | None,
    report_texts: int,
    full_paths: bool,
    preset: str | None,
    engine: str,
    master: str | None,
    **scoring: Any,
) -> None:
    """Check a run against the thresholds in karat.toml and --require.

    The exit code is 0 if the run meets all thresholds, 1 if it does not, and 2 if a threshold
    cannot be checked.
    """
    from karat.errors import KaratError
    from karat.evaluation.verdict import GateEntry, document, gate
    from karat.format import to_json
    from karat.report import document as document_of
    from karat.report import verdict_files
    from karat.report.renderers import terminal

    outputs = Outputs.of(output, verdict_files.check)
    settings = Scoring.of(scoring)
    start_engine(engine, master)
    report = report_options(settings, title, report_texts, full_paths=full_paths)
    if settings.config.gate:
        print(f"using the thresholds in {settings.config.path}", file=sys.stderr)
    start = perf_counter()
    try:
        with setting_errors(), settings.columns.checked():
            verdict = gate(
                settings.gold(gold),
                settings.run(run),
                require,
                baseline=None if baseline is None else settings.run(baseline),
                update_baseline=update_baseline,
                config=settings.config,
                preset=preset,
                cluster=cluster,
                engine=engine,
                **settings.keywords,
            )
    except KaratError as error:
        # Replace the files of an earlier gate, so that they are not mistaken for this result.
        for path in outputs.files:
            verdict_files.write([GateEntry(run, None, str(error))], path)
        outputs.write_failure(title or run, str(error))
        raise
    entry = GateEntry(verdict.run, verdict, seconds=perf_counter() - start)
    written = [file for path in outputs.files for file in verdict_files.write([entry], path)]
    written += outputs.write_verdict(verdict, report)
    if json:
        print(to_json(document([entry])))
    else:
        terminal.show(document_of(verdict))
    print_written(written)
    if not json:
        advise(after_gate(settings, gold, run, preset, baseline, verdict))
    if not verdict.passed:
        raise click.exceptions.Exit(1)
