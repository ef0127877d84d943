"""`karat measures`: list the measures."""

from __future__ import annotations

import json as json_module

from karat.cli.options import JSON
from karat.cli.parameters import Argument, command

NAMES = Argument(
    "names",
    metavar="WORD",
    text="A word in the name, alias or title of the measures to list; refer to a custom measure as "
    "package.module:function.  [default: all]",
    nargs=-1,
    required=False,
)


@command("measures", NAMES, JSON)
def measures_command(names: tuple[str, ...], json: bool) -> None:
    """List the measures by family, with their aliases."""
    from karat.report.catalogue import catalogue, catalogue_document
    from karat.report.renderers import terminal

    if json:
        print(json_module.dumps(catalogue(names), ensure_ascii=False, indent=2))
    else:
        terminal.show(catalogue_document(names))
