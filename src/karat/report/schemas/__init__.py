"""JSON Schemas of the documents that karat writes."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import msgspec

from karat.errors import InputError

DOCUMENTS = ("scores", "comparison", "verdict", "run")
_DEFS = "#/$defs/"


def schema(document: str) -> dict[str, Any]:
    """Return the schema of a document, whole in itself.

    >>> schema("verdict")["title"]
    'Verdicts of gates'
    """
    if document not in DOCUMENTS:
        raise InputError(
            f"there is no schema of {document!r}", hint=f"choose one of {', '.join(DOCUMENTS)}"
        )
    own, shared = _read(document), _read("shared")["$defs"]
    wanted, used = list(_references(own)), set()
    while wanted:
        name = wanted.pop()
        if name not in used:
            used.add(name)
            wanted += _references(shared[name])
    return own | {"$defs": {name: shared[name] for name in shared if name in used}}


def _read(name: str) -> dict[str, Any]:
    content = files(__name__).joinpath(f"{name}.json").read_bytes()
    read: dict[str, Any] = msgspec.json.decode(content)
    return read


def _references(part: Any) -> Iterator[str]:
    """Yield the shared definitions that a part of a schema names."""
    if isinstance(part, dict):
        if isinstance(named := part.get("$ref"), str):
            yield named.removeprefix(_DEFS)
        part = list(part.values())
    if isinstance(part, list):
        for each in part:
            yield from _references(each)
