"""`karat explain`: what a measure means, and why a value is what it is."""

from __future__ import annotations

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


def explain_command(
    measure: Annotated[str, typer.Argument(help="The measure, such as nDCG@10.")],
    gold: Annotated[
        str | None, typer.Option("--gold", metavar="FILE", help="What should be found.")
    ] = None,
    run: Annotated[
        str | None, typer.Option("--run", metavar="FILE", help="What was found.")
    ] = None,
    query: Annotated[
        str | None, typer.Option("--query", metavar="ID", help="The query to calculate.")
    ] = None,
    other: Annotated[
        str | None,
        typer.Option("--other", metavar="FILE", help="A second run, shown side by side."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
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
    """Explain a measure, or a value step by step.

    With --gold, --run and --query the calculation is shown for that query.
    """
    from karat.data.files import Unopened
    from karat.evaluation import explain
    from karat.match.texts import Matching
    from karat.report.document import encoded

    explanation = explain(
        measure,
        gold=None if gold is None else Unopened(gold, gold_format),
        run=None if run is None else Unopened(run, run_format),
        query=query,
        other=None if other is None else Unopened(other, run_format),
        conventions=conventions_of(missing, unknown, no_gold, duplicates, unjudged),
        level=level,
        chunks=chunks,
        corpus=corpus,
        matching=Matching(
            matcher, fuzzy_threshold, autojunk, direction, casefold, nfkc, zero_width
        ),
        top_k=top_k,
        score_threshold=score_threshold,
    )
    print(encoded(explanation.as_dict()).decode() if json else explanation)
