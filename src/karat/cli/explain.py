"""`karat explain`: what a measure means, and how a value is calculated."""

from __future__ import annotations

from typing import Any

from karat.cli.options import JSON, SCORING, Scoring
from karat.cli.parameters import Argument, Option
from karat.cli.project import project_command


@project_command(
    "explain",
    Argument("measure", metavar="MEASURE", text="The measure, such as nDCG@10."),
    Option(
        "--gold",
        panel="Calculation",
        metavar="FILE",
        setting="gold",
        is_path=True,
        help="Read gold from this file.",
    ),
    Option(
        "--run",
        panel="Calculation",
        metavar="FILE",
        setting="runs",
        is_path=True,
        help="Read the run from this file.",
    ),
    Option(
        "--query",
        panel="Calculation",
        metavar="ID",
        help="Show the calculation for the query with this id, or with this text.",
    ),
    Option(
        "--other",
        panel="Calculation",
        metavar="FILE",
        help="Show the calculation for a second run next to the first.",
    ),
    JSON,
    Option(
        "--preset",
        panel="Scoring",
        metavar="NAME",
        help="Use the measure names and conventions of a preset, such as coverage.",
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
    """Explain a measure, or show how its value for one query is calculated.

    The calculation for a query requires --gold, --run and --query.
    """
    from karat.evaluation.explanation import explain
    from karat.format import to_json
    from karat.report import document
    from karat.report.renderers import terminal

    settings = Scoring.of(scoring)
    with settings.columns.checked():
        explanation = explain(
            measure,
            gold=None if gold is None else settings.gold(gold),
            run=None if run is None else settings.run(run),
            query=query,
            other=None if other is None else settings.run(other),
            preset=preset,
            **settings.keywords,
        )
    if json:
        print(to_json(explanation.as_dict()))
    else:
        terminal.show(document(explanation))
