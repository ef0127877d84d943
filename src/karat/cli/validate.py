"""`karat validate`: what is wrong with gold, before a number is trusted."""

from __future__ import annotations

from typing import Annotated

import typer

from karat.cli.options import (
    ColumnNames,
    Gold,
    GoldFormat,
    QueryTexts,
    RunFormat,
    table_file,
)


def validate_command(
    gold: Gold,
    corpus: Annotated[
        str | None,
        typer.Option(metavar="DIR|FILE", help="The documents: texts, JSONL, Parquet, BEIR, …"),
    ] = None,
    chunks: Annotated[
        str | None, typer.Option(metavar="FILE", help="The table of chunks: JSONL, Parquet, …")
    ] = None,
    runs: Annotated[
        list[str] | None, typer.Option("--run", metavar="RUN", help="What was found; repeat.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
    gold_format: GoldFormat = None,
    run_format: RunFormat = None,
    columns: ColumnNames = None,
    queries: QueryTexts = None,
) -> None:
    """Check gold: spans, ids, queries; against documents, chunks and runs.

    Ends with 1 if there are errors, and with 0 if there are only warnings or nothing at all.
    """
    from karat.data.columns import Columns
    from karat.data.files import Unopened
    from karat.evaluation import validate
    from karat.format import to_json

    mapping = Columns.of(columns or ())
    with mapping.checked():
        found = validate(
            Unopened(gold, gold_format, mapping, queries),
            corpus=table_file(corpus, mapping),
            chunks=table_file(chunks, mapping),
            runs=[Unopened(run, run_format, mapping) for run in runs or ()],
        )
    print(to_json(found.as_dict()) if json else found)
    if not found.ok:
        raise typer.Exit(1)
