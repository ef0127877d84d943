"""`karat explain`: what a measure means, and why a value is what it is."""

from __future__ import annotations

from typing import Annotated

import typer

from karat.cli.options import Scoring, scoring


@scoring
def explain_command(
    how: Scoring,
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
) -> None:
    """Explain a measure, or a value step by step.

    With --gold, --run and --query the calculation is shown for that query.
    """
    from karat.evaluation import explain
    from karat.format import to_json

    with how.columns.checked():
        explanation = explain(
            measure,
            gold=None if gold is None else how.gold(gold),
            run=None if run is None else how.run(run),
            query=query,
            other=None if other is None else how.run(other),
            **how.keywords,
        )
    print(to_json(explanation.as_dict()) if json else explanation)
