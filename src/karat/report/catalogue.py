"""What can be measured, from the declarations."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from karat.measures import REGISTRY, Declaration
from karat.measures.families import CONTEXT, COST, EVIDENCE, LATENCY, RANK, SPAN
from karat.measures.name_parser import declaration_named
from karat.measures.registry import Param
from karat.report.document_model import Cell, Column, Document, Section, Table

HEADINGS: dict[str, str] = {
    RANK.name: "Ranked lists of items",
    SPAN.name: "Character spans",
    EVIDENCE.name: "Evidence texts",
    LATENCY.name: "Latency",
    COST.name: "Cost",
    CONTEXT.name: "Context",
}


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


def catalogue_document(words: Iterable[str] = ()) -> Document:
    """Return the measures as tables, one per family; with words, only those that match one."""
    by_family: dict[str, list[Declaration]] = {}
    for declaration in _declarations(words):
        by_family.setdefault(declaration.family, []).append(declaration)
    columns = [
        Column("measure", "left"),
        Column("title", "left", is_flexible=True),
        Column("also called", "left", priority=1, is_flexible=True),
    ]
    sections = []
    for family, declarations in by_family.items():
        rows = [
            [Cell(_signature(one)), Cell(one.title), Cell(", ".join(one.aliases))]
            for one in declarations
        ]
        sections.append(Section([Table(columns, rows)], HEADINGS[family]))
    notes = ["karat explain NAME shows the formula and the parameters of a measure"]
    return Document("Measures", sections=sections, notes=notes)


def _default(param: Param) -> Any:
    """Return a default as JSON can hold it."""
    plain = param.default is None or isinstance(param.default, (int, float, str, dict))
    return param.default if plain else str(param.default)


def _signature(declaration: Declaration) -> str:
    cutoffs = {"none": "", "optional": "[@k]", "budget": "[@k|@nc]", "share": "@r"}
    return declaration.name + cutoffs[declaration.cutoff]


def _declarations(words: Iterable[str]) -> list[Declaration]:
    """Return the measures that words name or describe; all built-in ones without words."""
    built_in = [declaration for declaration in REGISTRY.values() if declaration.function is None]
    ordered = sorted(built_in, key=lambda one: (list(HEADINGS).index(one.family), one.name.lower()))
    found: dict[str, Declaration] = {}
    for word in words:
        matching = [declaration for declaration in ordered if _matches(declaration, word)]
        if not matching:  # a measure of the user's own, or an error that suggests similar names
            matching = [declaration_named(word)]
        found |= {declaration.name: declaration for declaration in matching}
    return list(found.values()) or ordered


def _matches(declaration: Declaration, word: str) -> bool:
    names = (declaration.name, declaration.title, *declaration.aliases)
    return any(_folded(word) in _folded(name) for name in names)


def _folded(text: str) -> str:
    """Return a text for comparison: "Hit rate" and "hit_rate" are the same."""
    return text.lower().replace("_", " ").replace("-", " ")
