"""`karat explain`: what a measure means, and why a value is what it is."""

from __future__ import annotations

from typing import Any

from karat.cli.options import JSON, SCORING, Scoring
from karat.cli.parameters import Argument, Option, command


@command(
    "explain",
    Argument("measure", metavar="MEASURE", text="The measure, such as nDCG@10."),
    Option("--gold", panel="Calculation", metavar="FILE", help="Read gold: what should be found."),
    Option("--run", panel="Calculation", metavar="FILE", help="Read a run: what was found."),
    Option("--query", panel="Calculation", metavar="ID", help="Show the calculation of a query."),
    Option(
        "--other",
        panel="Calculation",
        metavar="FILE",
        help="Show a second run side by side with the first.",
    ),
    JSON,
    Option(
        "--preset",
        panel="Scoring",
        metavar="NAME",
        help="Use the names of measures and the conventions of a preset.",
    ),
    *SCORING,
)
def explain_command(
    measure: str,
    gold: str | None,
    run: str | None,
    query: str | None,
    other: str | None,
    json: bool,
    preset: str | None,
    **scoring: Any,
) -> None:
    """Explain a measure, or a value step by step.

    With --gold, --run and --query the calculation is shown for that query.
    """
    from karat.evaluation.explanation import explain
    from karat.format import to_json

    how = Scoring.of(scoring)
    with how.columns.checked():
        explanation = explain(
            measure,
            gold=None if gold is None else how.gold(gold),
            run=None if run is None else how.run(run),
            query=query,
            other=None if other is None else how.run(other),
            preset=preset,
            **how.keywords,
        )
    print(to_json(explanation.as_dict()) if json else explanation)
