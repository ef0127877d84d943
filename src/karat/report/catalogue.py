"""What can be measured, from the declarations."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from karat.measures import REGISTRY, Declaration
from karat.measures.name_parser import declaration_named
from karat.measures.registry import Param


def catalogue(names: Iterable[str] = ()) -> list[dict[str, Any]]:
    """Return what is known of some measures, or of all that karat has."""
    return [
        {
            "name": declaration.name,
            "title": declaration.title,
            "formula": declaration.formula,
            "cutoff": declaration.cutoff,
            "parameters": {
                param.name: {"default": _default(param), "help": param.help}
                for param in declaration.params
            },
            "aliases": list(declaration.aliases),
            "cites": list(declaration.cites),
            "over_queries": declaration.combine,
            "higher_is_better": declaration.higher_is_better,
            "unit": declaration.unit,
        }
        for declaration in _declarations(names)
    ]


def show_catalogue(names: Iterable[str] = ()) -> None:
    """Print one line per measure, for some of them or for all that karat has."""
    shown = [(_signature(each), each.title) for each in _declarations(names)]
    width = max(len(signature) for signature, _ in shown)
    for signature, title in shown:
        print(f"{signature.ljust(width)}  {title}")


def _default(param: Param) -> Any:
    """Return a default as JSON can hold it."""
    plain = param.default is None or isinstance(param.default, (int, float, str, dict))
    return param.default if plain else str(param.default)


def _signature(declaration: Declaration) -> str:
    params = ", ".join(param.name for param in declaration.params)
    cutoff = {"none": "", "optional": "[@k]", "budget": "[@k|@nc]", "share": "@r"}[
        declaration.cutoff
    ]
    return f"{declaration.name}{f'({params})' if params else ''}{cutoff}"


def _declarations(names: Iterable[str]) -> list[Declaration]:
    named = [declaration_named(name) for name in names]
    own = [declaration for declaration in REGISTRY.values() if declaration.function is None]
    return named or sorted(own, key=lambda declaration: declaration.name.lower())
