"""JSON Schemas of the documents that karat writes."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import msgspec

from karat.errors import InputError

DOCUMENTS = ("scores", "comparison", "verdict", "run", "fusion", "history", "cache")
_DEFS = "#/$defs/"


def schema(document: str) -> dict[str, Any]:
    """Return the schema of a document, with all shared definitions that it refers to.

    >>> schema("verdict")["title"]
    'Verdicts of gates'
    """
    if document not in DOCUMENTS:
        raise InputError(f"unknown schema {document!r}", hint=f"use one of {', '.join(DOCUMENTS)}")
    content, shared = _read(document), _read("shared")["$defs"]
    pending, used = list(_references(content)), set()
    while pending:
        name = pending.pop()
        if name not in used:
            used.add(name)
            pending += _references(shared[name])
    return content | {"$defs": {name: shared[name] for name in shared if name in used}}


def _read(name: str) -> dict[str, Any]:
    content = files(__name__).joinpath(f"{name}.json").read_bytes()
    decoded: dict[str, Any] = msgspec.json.decode(content)
    return decoded


def _references(part: Any) -> Iterator[str]:
    """Yield the names of the shared definitions that a part of a schema refers to."""
    if isinstance(part, dict):
        if isinstance(reference := part.get("$ref"), str):
            yield reference.removeprefix(_DEFS)
        part = list(part.values())
    if isinstance(part, list):
        for item in part:
            yield from _references(item)
