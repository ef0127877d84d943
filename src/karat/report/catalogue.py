"""What can be measured, from the declarations."""

from __future__ import annotations

from typing import Any

from karat.measures import REGISTRY, Declaration
from karat.measures.declare import Param


def catalogue() -> list[dict[str, Any]]:
    """Return every measure with what is known of it."""
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
        for declaration in _sorted()
    ]


def show_catalogue() -> None:
    """Print one line a measure."""
    shown = [(_signature(declaration), declaration.title) for declaration in _sorted()]
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


def _sorted() -> list[Declaration]:
    return sorted(REGISTRY.values(), key=lambda declaration: declaration.name.lower())
