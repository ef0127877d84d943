"""`karat measures`: what can be measured."""

from __future__ import annotations

import json as json_module
from typing import Annotated

import typer


def measures_command(
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """List all measures with one line each."""
    from karat.report.catalogue import catalogue, show_catalogue

    if json:
        print(json_module.dumps(catalogue(), ensure_ascii=False, indent=2))
    else:
        show_catalogue()
