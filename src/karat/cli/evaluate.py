"""`karat eval`: score runs against gold."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from karat.cli.next_step import advise, after_eval
from karat.cli.options import (
    BY,
    CLUSTER,
    ENGINE,
    GOLD,
    JSON,
    MASTER,
    MEASURES,
    MEMORY,
    PRESET,
    REPORT,
    RUNS,
    SCORING,
    TEX,
    WIDE,
    Scoring,
    output_files,
    start_engine,
)
from karat.cli.outputs import Outputs, print_written, report_options
from karat.cli.parameters import Option
from karat.cli.project import project_command


@project_command(
    "eval",
    GOLD,
    RUNS,
    MEASURES,
    PRESET,
    BY,
    CLUSTER,
    output_files(".html, .json, .csv, .parquet, .md or .tex"),
    JSON,
    Option(
        "--per-query", panel="Output", is_flag=True, help="Also show the values for each query."
    ),
    Option(
        "--intervals/--no-intervals",
        panel="Output",
        default=True,
        help="Show 95% confidence intervals.",
    ),
    Option(
        "--median",
        panel="Output",
        is_flag=True,
        help="Show the median over the queries next to each value.",
    ),
    Option(
        "--history",
        panel="Output",
        metavar="FOLDER",
        setting="history",
        is_path=True,
        help="Save the scores in this folder, too, and show earlier ones in .html reports; "
        "`karat history` shows how they changed.",
    ),
    WIDE,
    *TEX,
    *REPORT,
    ENGINE,
    MASTER,
    MEMORY,
    *SCORING,
)
def evaluate_command(
    gold: str,
    runs: tuple[str, ...],
    measures: tuple[str, ...],
    preset: str | None,
    by: tuple[str, ...],
    cluster: str | None,
    output: tuple[Path, ...],
    json: bool,
    per_query: bool,
    intervals: bool,
    median: bool,
    history: str | None,
    wide: bool,
    digits: int,
    caption: str | None,
    label: str | None,
    title: str | None,
    report_texts: int,
    full_paths: bool,
    engine: str,
    master: str | None,
    **scoring: Any,
) -> None:
    """Score runs against gold and print a table with one row per measure, one column per run."""
    from karat.evaluation.evaluator import Evaluator
    from karat.evaluation.history import check_folder, save, with_earlier
    from karat.format import to_json
    from karat.report import score_files
    from karat.report.documents.scores import scores_document
    from karat.report.renderers import terminal
    from karat.report.sheet import Sheet

    outputs = Outputs.of(output, score_files.check)
    settings = Scoring.of(scoring)
    start_engine(engine, master)
    report = report_options(settings, title, report_texts, full_paths=full_paths)
    if history is not None:
        check_folder(history)
    with settings.columns.checked():
        evaluator = Evaluator(
            settings.gold(gold),
            measures or None,
            preset=preset,
            cluster=cluster,
            engine=engine,
            **settings.keywords,
        )
        scores = evaluator.all([settings.run(run) for run in runs])
    sheets = [
        Sheet(
            score,
            by,
            per_query,
            intervals=intervals,
            show_medians=median,
            digits=digits,
            caption=caption,
            tex_label=label or "",
        )
        for score in scores
    ]
    if history is not None and outputs.pages:
        report = replace(report, history=with_earlier(scores, history))
    written = [file for path in outputs.files for file in score_files.write(sheets, path)]
    written += outputs.write_pages(scores, by=by, options=report)
    if history is not None:
        written.append(save(scores, history))
    if json:
        print(to_json(score_files.json_document(sheets)))
    else:
        terminal.show(scores_document(sheets), wide=wide)
    print_written(written)
    if not json:
        shared_flags = [*MEASURES.words(measures), *BY.words(by), *CLUSTER.words(cluster)]
        advise(after_eval(settings, gold, runs, preset, shared_flags, scores))
