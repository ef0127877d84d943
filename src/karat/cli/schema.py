"""`karat schema`: the JSON Schema of the JSON output of karat."""

from __future__ import annotations

from karat.cli.parameters import Argument, command


@command(
    "schema",
    Argument(
        "document",
        metavar="scores|comparison|verdict|run|fusion|history|cache",
        text="The kind of output.",
    ),
)
def schema_command(document: str) -> None:
    """Print the JSON Schema of what a command prints with --json."""
    from karat.format import to_json
    from karat.report.schemas import schema

    print(to_json(schema(document)))
