"""`karat eval`: score runs against gold."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from karat.cli.options import (
    Autojunk,
    Casefold,
    Chunks,
    Corpus,
    Direction,
    Duplicates,
    FuzzyThreshold,
    GoldFormat,
    Level,
    Matcher,
    Missing,
    Nfkc,
    NoGold,
    RunFormat,
    ScoreThreshold,
    TopK,
    Unjudged,
    Unknown,
    ZeroWidth,
    conventions_of,
)


def evaluate_command(
    gold: Annotated[str, typer.Argument(help="What should be found: qrels, JSONL, CSV, …")],
    runs: Annotated[list[str], typer.Argument(metavar="RUN…", help="What was found.")],
    measures: Annotated[
        list[str] | None,
        typer.Option("-m", "--measure", metavar="NAME", help="Measures; repeat, or use commas."),
    ] = None,
    by: Annotated[
        list[str] | None,
        typer.Option("--by", metavar="FIELD", help="Also for each value of a query's field."),
    ] = None,
    per_query: Annotated[bool, typer.Option("--per-query", help="Also for each query.")] = False,
    output: Annotated[
        list[Path] | None,
        typer.Option("-o", "--output", metavar="FILE", help="Write .json, .csv, .parquet or .md."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
    preset: Annotated[
        str | None, typer.Option(metavar="NAME", help="Measures and conventions.")
    ] = None,
    level: Level = "item",
    chunks: Chunks = None,
    corpus: Corpus = None,
    top_k: TopK = None,
    score_threshold: ScoreThreshold = None,
    fuzzy_threshold: FuzzyThreshold = 0.7,
    matcher: Matcher = "ratio",
    direction: Direction = "evidence",
    autojunk: Autojunk = False,
    casefold: Casefold = False,
    nfkc: Nfkc = False,
    zero_width: ZeroWidth = False,
    gold_format: GoldFormat = None,
    run_format: RunFormat = None,
    missing: Missing = None,
    unknown: Unknown = None,
    no_gold: NoGold = None,
    duplicates: Duplicates = None,
    unjudged: Unjudged = None,
) -> None:
    """Score runs against gold: measures as rows, runs as columns."""
    from karat.data.files import Unopened
    from karat.evaluation import Evaluator
    from karat.match.texts import Matching
    from karat.report import files, terminal
    from karat.report.document import print_document

    for path in output or ():
        files.check(path)
    evaluator = Evaluator(
        Unopened(gold, gold_format),
        measures,
        conventions=conventions_of(missing, unknown, no_gold, duplicates, unjudged),
        preset=preset,
        level=level,
        chunks=chunks,
        corpus=corpus,
        matching=Matching(
            matcher, fuzzy_threshold, autojunk, direction, casefold, nfkc, zero_width
        ),
        top_k=top_k,
        score_threshold=score_threshold,
    )
    scores = evaluator.all([Unopened(run, run_format) for run in runs])
    sheets = [score.sheet(by=tuple(by or ()), per_query=per_query) for score in scores]
    for path in output or ():
        files.write(sheets, path)
    if json:
        print_document(sheets)
    else:
        terminal.show(sheets)
    for path in output or ():
        print(f"wrote {path}", file=sys.stderr)
