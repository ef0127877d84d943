"""`karat schema`: what the JSON that karat writes holds."""

from __future__ import annotations

from typing import Annotated

import typer


def schema_command(
    document: Annotated[str, typer.Argument(metavar="scores|comparison|verdict|run")],
) -> None:
    """Print the JSON Schema of what eval, compare, gate or run write as JSON."""
    from karat.format import to_json
    from karat.report.schemas import schema

    print(to_json(schema(document)))
