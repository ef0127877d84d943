"""`karat schema`: the JSON Schema of the documents that karat writes."""

from __future__ import annotations

from karat.cli.parameters import Argument, command


@command(
    "schema",
    Argument("document", metavar="scores|comparison|verdict|run", text="The kind of document."),
)
def schema_command(document: str) -> None:
    """Print the JSON Schema of the documents that eval, compare, gate and run write."""
    from karat.format import to_json
    from karat.report.schemas import schema

    print(to_json(schema(document)))
