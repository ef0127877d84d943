"""The catalogue of measures, from their declarations."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from karat.measures import REGISTRY, Declaration
from karat.measures.name_parser import declaration_named
from karat.measures.registry import Param


def catalogue(names: Iterable[str] = ()) -> list[dict[str, Any]]:
    """Return the declarations of some measures, or of all built-in ones, as plain data."""
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
    """Print one line per measure: some measures, or all built-in ones."""
    lines = [(_signature(declaration), declaration.title) for declaration in _declarations(names)]
    width = max(len(signature) for signature, _ in lines)
    for signature, title in lines:
        print(f"{signature.ljust(width)}  {title}")


def _default(param: Param) -> Any:
    """Return a default value as JSON-compatible data."""
    is_json = param.default is None or isinstance(param.default, (int, float, str, dict))
    return param.default if is_json else str(param.default)


def _signature(declaration: Declaration) -> str:
    params = ", ".join(param.name for param in declaration.params)
    cutoff = {"none": "", "optional": "[@k]", "budget": "[@k|@nc]", "share": "@r"}[
        declaration.cutoff
    ]
    arguments = f"({params})" if params else ""
    return f"{declaration.name}{arguments}{cutoff}"


def _declarations(names: Iterable[str]) -> list[Declaration]:
    declarations = [declaration_named(name) for name in names]
    if declarations:
        return declarations
    built_in = [declaration for declaration in REGISTRY.values() if declaration.function is None]
    return sorted(built_in, key=lambda declaration: declaration.name.lower())
