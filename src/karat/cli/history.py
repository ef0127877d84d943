"""`karat history`: show how a measure changed over saved scores."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from karat.cli.options import FILE, JSON, MEASURES
from karat.cli.parameters import Argument, Option
from karat.cli.project import CONFIG, project_command


@project_command(
    "history",
    Argument(
        "sources",
        metavar="SCORES",
        nargs=-1,
        required=True,
        text="Saved scores (.parquet or .json): files, or folders of them.",
        settings=("history",),
    ),
    Option(
        "measures",
        "-m",
        "--measure",
        panel="Measures",
        metavar="NAME",
        multiple=True,
        setting="",
        show_default="the main measure of the newest scores",
        help=str(MEASURES.help).replace("Compute", "Show"),
    ),
    Option(
        "--by",
        panel="Order",
        metavar="date|commit",
        default="date",
        help="Show all saved scores by the time of saving (date), or the newest scores of each "
        "commit in the order of the commits (commit).",
    ),
    Option(
        "runs",
        "--run",
        panel="Order",
        metavar="NAME",
        multiple=True,
        help="Show only this run. Repeat for more runs.",
    ),
    Option(
        "--last",
        panel="Order",
        metavar="N",
        type=click.IntRange(min=1),
        default=20,
        help="Show the last N saved scores of each run.",
    ),
    CONFIG,
    Option(
        "-o",
        "--output",
        panel="Output",
        metavar="FILE",
        type=FILE,
        multiple=True,
        help="Write the history as .json, .csv or .md. Repeat for more files.",
    ),
    JSON,
)
def history_command(
    sources: tuple[str, ...],
    measures: tuple[str, ...],
    by: str,
    runs: tuple[str, ...],
    last: int,
    output: tuple[Path, ...],
    json: bool,
) -> None:
    """Show how a measure changed over saved scores, and which changes are significant.

    `karat eval --history FOLDER` saves the scores. An .html report of that command shows the chart.
    """
    from karat.evaluation.history import history
    from karat.format import to_json
    from karat.report import document, history_files
    from karat.report.renderers import terminal

    history_files.check(output)
    result = history(sources, measures or None, by=by, runs=runs or None, last=last)
    written = [file for path in output for file in history_files.write(result, path)]
    if json:
        print(to_json(result.as_dict()))
    else:
        terminal.show(document(result))
    for path in written:
        print(f"wrote {path}", file=sys.stderr)
