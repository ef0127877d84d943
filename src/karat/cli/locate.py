"""`karat locate`: spans for the evidence of gold."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from karat.cli.options import ColumnNames, QueryTexts, table_file


def locate_command(
    gold: Annotated[
        str, typer.Argument(metavar="GOLD", help="What should be found, with evidence texts.")
    ],
    corpus: Annotated[
        str, typer.Option(metavar="DIR|FILE", help="The documents that the texts are from.")
    ],
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="Write gold with the spans."),
    ] = None,
    threshold: Annotated[
        float, typer.Option(metavar="RATIO", help="How similar is similar enough.")
    ] = 0.9,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
    columns: ColumnNames = None,
    queries: QueryTexts = None,
) -> None:
    """Find where evidence texts stand in the documents; exit 1 if some are not placed."""
    from karat.data import native
    from karat.data.columns import Columns
    from karat.data.files import Unopened
    from karat.data.formats import for_writing
    from karat.errors import InputError
    from karat.evaluation.location import locate
    from karat.files import check_writable
    from karat.format import to_json

    if output is not None:
        if for_writing(output) is not native.FORMAT:
            raise InputError("this format cannot hold spans", path=output, hint="write .jsonl")
        check_writable(output)
    mapping = Columns.of(columns or ())
    opened = Unopened(gold, columns=mapping, queries=queries)
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
        raise typer.Exit(1)
