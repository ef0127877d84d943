"""`karat measures`: what can be measured."""

from __future__ import annotations

import json as json_module
from typing import Annotated

import typer


def measures_command(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME",
            help="List only these measures; your own as package.module:function.",
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """List measures with one line each."""
    from karat.report.catalogue import catalogue, show_catalogue

    if json:
        print(json_module.dumps(catalogue(names or ()), ensure_ascii=False, indent=2))
    else:
        show_catalogue(names or ())
