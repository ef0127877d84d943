"""`karat validate`: check gold, and the documents, chunks and runs that belong to it."""

from __future__ import annotations

import click

from karat.cli.options import COLUMNS, GOLD, GOLD_FORMAT, JSON, QUERIES, RUN_FORMAT, table_file
from karat.cli.parameters import Option
from karat.cli.project import CONFIG, project_command


@project_command(
    "validate",
    GOLD,
    Option(
        "--corpus",
        panel="Input",
        metavar="DIR|FILE",
        is_path=True,
        help="Check spans and ids against these documents (text files, JSONL, Parquet, BEIR, …).",
    ),
    Option(
        "--chunks",
        panel="Input",
        metavar="FILE",
        is_path=True,
        help="Check ids against this table of chunks (JSONL, Parquet, …).",
    ),
    Option(
        "runs",
        "--run",
        panel="Input",
        metavar="RUN",
        setting="runs",
        is_path=True,
        multiple=True,
        help="Check ids and queries against this run. Repeat for more runs.",
    ),
    GOLD_FORMAT,
    RUN_FORMAT,
    COLUMNS,
    QUERIES,
    CONFIG,
    JSON,
)
def validate_command(
    gold: str,
    corpus: str | None,
    chunks: str | None,
    runs: tuple[str, ...],
    gold_format: str | None,
    run_format: str | None,
    columns: tuple[str, ...],
    queries: str | None,
    json: bool,
) -> None:
    """Check gold for errors, on its own and against documents, chunks and runs.

    The exit code is 1 if there are errors, and 0 if there are only warnings or nothing to report.
    """
    from karat.data.columns import Columns
    from karat.data.data_file import PathSource
    from karat.evaluation.validation import validate
    from karat.format import to_json
    from karat.report import document
    from karat.report.renderers import terminal

    mapping = Columns.of(columns)
    with mapping.checked():
        validation = validate(
            PathSource(gold, gold_format, mapping, queries),
            corpus=table_file(corpus, mapping),
            chunks=table_file(chunks, mapping),
            runs=[PathSource(run, run_format, mapping) for run in runs],
        )
    if json:
        print(to_json(validation.as_dict()))
    else:
        terminal.show(document(validation))
    if not validation.ok:
        raise click.exceptions.Exit(1)
