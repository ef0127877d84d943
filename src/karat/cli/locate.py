"""`karat locate`: find the spans of evidence texts."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from karat.cli.options import COLUMNS, FILE, JSON, QUERIES, table_file
from karat.cli.parameters import Argument, Option
from karat.cli.project import CONFIG, project_command


@project_command(
    "locate",
    Argument(
        "gold",
        metavar="GOLD",
        text="What should be found: a file with evidence texts.",
        settings=("gold",),
    ),
    Option(
        "--corpus",
        panel="Input",
        metavar="DIR|FILE",
        is_path=True,
        required=True,
        help="Read the documents that the evidence texts come from.",
    ),
    COLUMNS,
    QUERIES,
    Option(
        "--threshold",
        panel="Text matching",
        metavar="RATIO",
        setting="",
        type=float,
        default=0.9,
        help="Set the minimum similarity of a passage to an evidence text.",
    ),
    Option(
        "-o",
        "--output",
        panel="Output",
        metavar="FILE",
        type=FILE,
        help="Write gold with the spans to this .jsonl file.",
    ),
    CONFIG,
    JSON,
)
def locate_command(
    gold: str,
    corpus: str,
    columns: tuple[str, ...],
    queries: str | None,
    threshold: float,
    output: Path | None,
    json: bool,
) -> None:
    """Find the evidence texts of gold in the documents, and add their spans to gold.

    The exit code is 1 if a text was not found, or was found at several positions.
    """
    from karat.data.columns import Columns
    from karat.data.data_file import PathSource
    from karat.data.formats import native
    from karat.data.formats.registry import format_for_writing
    from karat.errors import InputError
    from karat.evaluation.location import locate
    from karat.files import check_writable
    from karat.format import to_json
    from karat.report import document
    from karat.report.renderers import terminal

    if output is not None:
        if format_for_writing(output) is not native.FORMAT:
            raise InputError(
                "this format cannot store spans", path=output, hint="write a .jsonl file"
            )
        check_writable(output)
    mapping = Columns.of(columns)
    source = PathSource(gold, columns=mapping, queries=queries)
    with mapping.checked():
        location = locate(source, table_file(corpus, mapping), threshold)
    if output is not None:
        location.gold.write(output)
    if json:
        print(to_json(location.as_dict()))
    else:
        terminal.show(document(location))
    if output is not None:
        print(f"wrote {output}", file=sys.stderr)
    if location.incomplete:
        raise click.exceptions.Exit(1)
