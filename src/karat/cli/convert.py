"""`karat convert`: write gold or a run in another format."""

from __future__ import annotations

import json as json_module
import sys
from typing import TYPE_CHECKING

from karat.cli.options import COLUMNS, QUERIES, table_file
from karat.cli.parameters import Argument, Option, command

if TYPE_CHECKING:
    from karat.data.gold import Gold


@command(
    "convert",
    Argument("source", metavar="A", text="The file to read (gold or a run)."),
    Argument("target", metavar="B", text="The file to write."),
    Option(
        "--kind",
        panel="Formats",
        metavar="gold|run",
        help="Read A as gold or as a run instead of detecting it.",
    ),
    Option(
        "source_format",
        "--from",
        panel="Formats",
        metavar="NAME",
        help="Read A in this format instead of detecting it.",
    ),
    Option(
        "target_format",
        "--to",
        panel="Formats",
        metavar="NAME",
        help="Write B in this format instead of the format of its extension.",
    ),
    Option(
        "--corpus",
        panel="Spans of gold",
        metavar="DIR|FILE",
        help="Read the documents, to convert the offsets of the spans to code points.",
    ),
    Option(
        "--offsets",
        panel="Spans of gold",
        metavar="codepoint|utf16|utf8",
        show_default="as stated in A, or codepoint",
        help="Set the unit of the offsets in A. Add --corpus to convert them.",
    ),
    Option(
        "--shift-start",
        panel="Spans of gold",
        metavar="N",
        type=int,
        default=0,
        help="Add N to the start of every span.",
    ),
    Option(
        "--shift-end",
        panel="Spans of gold",
        metavar="N",
        type=int,
        default=0,
        help="Add N to the end of every span. Use 1 if the ends are inclusive.",
    ),
    Option(
        "--chunks",
        panel="Judgments from spans",
        metavar="FILE",
        help="Make judgments for the chunks of this table from the spans of gold.",
    ),
    Option(
        "--min-overlap",
        panel="Judgments from spans",
        metavar="N|SHARE",
        show_default="1",
        help="Treat a chunk as relevant if it contains at least N characters of a span, or at "
        "least this share of the span, such as 0.5.",
    ),
    Option(
        "--shares",
        panel="Judgments from spans",
        metavar="LIST",
        help="Grade each relevant chunk by the share of a span that it contains. With the LIST "
        "0.5,1.0, the grade is 1 for a share below 0.5, 2 from 0.5 on, and 3 for the whole span.",
    ),
    COLUMNS,
    QUERIES,
    Option("--json", panel="Output", is_flag=True, help="Print a summary as JSON."),
)
def convert_command(
    source: str,
    target: str,
    kind: str | None,
    source_format: str | None,
    target_format: str | None,
    corpus: str | None,
    offsets: str | None,
    shift_start: int,
    shift_end: int,
    chunks: str | None,
    min_overlap: str | None,
    shares: str | None,
    columns: tuple[str, ...],
    queries: str | None,
    json: bool,
) -> None:
    """Write gold or a run in another format, and report what that format cannot hold."""
    from karat.data.columns import Columns
    from karat.data.convert import convert
    from karat.errors import InputError, counted
    from karat.match.to_judgments import to_judgments

    for flag, value in (("--min-overlap", min_overlap), ("--shares", shares)):
        if value is not None and chunks is None:
            raise InputError(
                f"{flag} requires --chunks", hint="add the table of chunks: --chunks FILE"
            )

    mapping = Columns.of(columns)

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
        return to_judgments(
            gold,
            table_file(chunks, mapping),
            min_overlap=1 if min_overlap is None else min_overlap,
            shares=[] if shares is None else shares.split(","),
        )

    changes_gold = corpus or chunks or offsets or queries or shift_start or shift_end
    result = convert(
        source,
        target,
        kind=kind,
        source_format=source_format,
        target_format=target_format,
        change=change if changes_gold else None,
        columns=mapping,
    )
    written = result.written
    if json:
        summary = {
            "kind": result.kind,
            "from": result.source_format,
            "to": result.target_format,
            "queries": written.queries,
            "rows": written.rows,
            "lost": written.lost,
        }
        print(json_module.dumps(summary, ensure_ascii=False, indent=2))
    row = "judgment" if result.kind == "gold" else "result"
    print(
        f"wrote {target}: {result.kind} as {result.target_format}, "
        f"{counted(written.queries, 'query')}, {counted(written.rows, row)}",
        file=sys.stderr,
    )
