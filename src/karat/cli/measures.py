"""`karat measures`: what can be measured."""

from __future__ import annotations

import json as json_module

from karat.cli.options import JSON
from karat.cli.parameters import command


@command("measures", JSON)
def measures_command(json: bool) -> None:
    """List all measures with one line each."""
    from karat.report.catalogue import catalogue, show_catalogue

    if json:
        print(json_module.dumps(catalogue(), ensure_ascii=False, indent=2))
    else:
        show_catalogue()
