"""`karat locate`: spans for the evidence of gold."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from karat.cli.options import COLUMNS, FILE, JSON, QUERIES, table_file
from karat.cli.parameters import Argument, Option, command


@command(
    "locate",
    Argument("gold", metavar="GOLD", text="What should be found, with evidence texts."),
    Option(
        "--corpus",
        panel="Input",
        metavar="DIR|FILE",
        required=True,
        help="Read the documents that the evidence texts come from.",
    ),
    COLUMNS,
    QUERIES,
    Option(
        "--threshold",
        panel="Text matching",
        metavar="RATIO",
        type=float,
        default=0.9,
        help="Set how similar a passage must be to an evidence text.",
    ),
    Option(
        "-o",
        "--output",
        panel="Output",
        metavar="FILE",
        type=FILE,
        help="Write gold with the spans to this file.",
    ),
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
    """Find the evidence texts of gold in the documents.

    The exit code is 1 if some were not found.
    """
    from karat.data.columns import Columns
    from karat.data.data_file import PathSource
    from karat.data.formats import native
    from karat.data.formats.registry import format_for_writing
    from karat.errors import InputError
    from karat.evaluation.location import locate
    from karat.files import check_writable
    from karat.format import to_json

    if output is not None:
        if format_for_writing(output) is not native.FORMAT:
            raise InputError("this format cannot hold spans", path=output, hint="write .jsonl")
        check_writable(output)
    mapping = Columns.of(columns)
    opened = PathSource(gold, columns=mapping, queries=queries)
    with mapping.checked():
        located = locate(opened, table_file(corpus, mapping), threshold)
    if output is not None:
        located.gold.write(output)
    if json:
        print(to_json(located.as_dict()))
    else:
        print(located)
    if output is not None:
        print(f"wrote {output}", file=sys.stderr)
    if located.incomplete:
        raise click.exceptions.Exit(1)
