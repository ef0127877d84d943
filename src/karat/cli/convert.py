"""`karat convert`: gold or a run in another format."""

from __future__ import annotations

import json as json_module
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from karat.cli.options import ColumnNames, QueryTexts, table_file

if TYPE_CHECKING:
    from karat.data.gold import Gold


def convert_command(
    source: Annotated[str, typer.Argument(metavar="A", help="What is read: gold or a run.")],
    target: Annotated[str, typer.Argument(metavar="B", help="What is written.")],
    kind: Annotated[
        str | None, typer.Option(metavar="gold|run", help="What A holds, if it is not told.")
    ] = None,
    source_format: Annotated[
        str | None, typer.Option("--from", metavar="NAME", help="The format of A, likewise.")
    ] = None,
    target_format: Annotated[
        str | None,
        typer.Option("--to", metavar="NAME", help="The format of B, if its ending names none."),
    ] = None,
    corpus: Annotated[
        str | None,
        typer.Option(metavar="DIR|FILE", help="The documents: gold's spans become code points."),
    ] = None,
    offsets: Annotated[
        str | None,
        typer.Option(
            metavar="codepoint|utf16|utf8",
            help="Read the offsets of gold's spans in this unit; --corpus converts them.",
        ),
    ] = None,
    shift_start: Annotated[
        int, typer.Option(metavar="N", help="Add N to the start of every span of gold.")
    ] = 0,
    shift_end: Annotated[
        int,
        typer.Option(metavar="N", help="Add N to the end of every span of gold: 1 if inclusive."),
    ] = 0,
    chunks: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Make judgments of these chunks from gold's spans."),
    ] = None,
    min_overlap: Annotated[
        str | None,
        typer.Option(
            metavar="N|SHARE", help="What a chunk must hold of a span: characters (1) or 0.5, 1.0."
        ),
    ] = None,
    shares: Annotated[
        str | None,
        typer.Option(
            metavar="LIST", help="Raise a grade at each of these shares of a span, such as 0.5,1.0."
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print what was done as JSON.")] = False,
    columns: ColumnNames = None,
    queries: QueryTexts = None,
) -> None:
    """Write gold or a run in another format, and say what that cannot hold."""
    from karat.data.columns import Columns
    from karat.data.convert import convert
    from karat.errors import InputError, counted
    from karat.match.judging import to_judgments

    for flag, given in (("--min-overlap", min_overlap), ("--shares", shares)):
        if given is not None and chunks is None:
            raise InputError(
                f"{flag} says how chunks are judged, and there are none",
                hint="name the table of chunks: --chunks FILE",
            )

    mapping = Columns.of(columns or ())

    def change(gold: Gold) -> Gold:
        if queries is not None:
            gold = gold.with_query_texts(queries, columns=mapping)
        if offsets is not None:
            gold = gold.counted_in(offsets)
        if shift_start or shift_end:
            gold = gold.shifted(start=shift_start, end=shift_end)
        if corpus is not None:
            gold = gold.in_code_points(table_file(corpus, mapping))
        if chunks is None:
            return gold
        least = 1 if min_overlap is None else min_overlap
        rising = [] if shares is None else shares.split(",")
        return to_judgments(gold, table_file(chunks, mapping), min_overlap=least, shares=rising)

    done = convert(
        source,
        target,
        kind=kind,
        source_format=source_format,
        target_format=target_format,
        change=change
        if corpus or chunks or offsets or queries or shift_start or shift_end
        else None,
        columns=mapping,
    )
    written = done.written
    if json:
        told = {
            "kind": done.kind,
            "from": done.source_format,
            "to": done.target_format,
            "queries": written.queries,
            "rows": written.rows,
            "lost": written.lost,
        }
        print(json_module.dumps(told, ensure_ascii=False, indent=2))
    row = "judgment" if done.kind == "gold" else "result"
    print(
        f"wrote {target}: {done.kind} as {done.target_format}, "
        f"{counted(written.queries, 'query')}, {counted(written.rows, row)}",
        file=sys.stderr,
    )
