"""`karat compare`: compare runs pair by pair, with significance tests."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from karat.cli.next_step import advise, after_compare
from karat.cli.options import (
    BY,
    CLUSTER,
    COUNT,
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
from karat.cli.parameters import Option, is_project_setting
from karat.cli.project import project_command
from karat.errors import InputError

if TYPE_CHECKING:
    from karat.config import Config


@project_command(
    "compare",
    GOLD,
    RUNS,
    MEASURES,
    PRESET,
    BY,
    CLUSTER,
    Option(
        "--baseline",
        panel="Statistics",
        metavar="RUN",
        setting="baseline",
        is_path=True,
        help="Compare all runs with this run (name or path) instead of every pair of runs.",
    ),
    Option(
        "--test",
        panel="Statistics",
        metavar="randomization|t|wilcoxon",
        default="randomization",
        setting="test",
        help="Choose the significance test.",
    ),
    Option(
        "--correction",
        panel="Statistics",
        metavar="holm|bh|bonferroni|tukey|none",
        default="holm",
        setting="correction",
        help="Choose how p-values are corrected for multiple comparisons.",
    ),
    Option(
        "--difference",
        panel="Statistics",
        metavar="X",
        type=float,
        help="Show how many queries are needed to detect a difference of X.",
    ),
    output_files(".html, .json, .csv, .md or .tex"),
    JSON,
    Option(
        "--moved",
        panel="Output",
        metavar="N",
        type=COUNT,
        show_default="3, or 0 for more than 10 pairs",
        help="Show the N queries that rose most and the N that fell most, by the main measure.",
    ),
    Option(
        "--all-pairs",
        panel="Output",
        is_flag=True,
        help="With three or more runs, show every pair, not only the best run against the others.",
    ),
    WIDE,
    *TEX,
    *REPORT,
    ENGINE,
    MASTER,
    MEMORY,
    *SCORING,
)
def compare_command(
    gold: str,
    runs: tuple[str, ...],
    measures: tuple[str, ...],
    preset: str | None,
    by: tuple[str, ...],
    cluster: str | None,
    baseline: str | None,
    test: str,
    correction: str,
    difference: float | None,
    output: tuple[Path, ...],
    json: bool,
    moved: int | None,
    all_pairs: bool,
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
    """Compare runs pair by pair, with significance tests and the queries that changed most."""
    from karat.evaluation.comparison import compare
    from karat.format import to_json
    from karat.report import comparison_files
    from karat.report.comparison import ComparisonSheet
    from karat.report.documents.comparison import comparison_document
    from karat.report.renderers import terminal

    outputs = Outputs.of(output, comparison_files.check)
    settings = Scoring.of(scoring)
    if is_project_setting("runs") and len(runs) < 2:
        raise _only_run(settings.config)
    start_engine(engine, master)
    report = report_options(settings, title, report_texts, full_paths=full_paths)
    with settings.columns.checked():
        comparison = compare(
            settings.gold(gold),
            [settings.run(run) for run in runs],
            measures or None,
            baseline=baseline,
            by=by or None,
            test=test,
            correction=correction,
            preset=preset,
            cluster=cluster,
            engine=engine,
            **settings.keywords,
        )
    sheet = ComparisonSheet(
        comparison,
        moved,
        difference,
        show_all_pairs=all_pairs,
        wide=wide,
        digits=digits,
        caption=caption,
        tex_label=label or "",
    )
    written = [file for path in outputs.files for file in comparison_files.write(sheet, path)]
    written += outputs.write_pages(comparison.scores, comparison=comparison, options=report)
    if json:
        print(to_json(sheet.as_dict()))
    else:
        terminal.show(comparison_document(sheet), wide=wide)
    print_written(written)
    if not json:
        advise(after_compare(settings, gold, runs, preset, comparison))


def _only_run(config: Config) -> InputError:
    """Return the error for a project with one run and without a baseline."""
    hint = "add a run to `runs`"
    if "baseline" in config.settings:
        hint += ", or write the baseline: karat gate --update-baseline"
    return InputError(
        "a comparison needs at least two runs", path=config.path, field="runs", hint=hint
    )
