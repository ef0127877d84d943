"""Telling what library an object is of, without importing that library."""

from __future__ import annotations

from typing import Any


def is_a(given: Any, package: str, *names: str) -> bool:
    """Tell whether a class of this name, of a package that begins so, is above an object."""
    return owner(given, lambda kind: kind.__name__ in names, package) is not None


def owner(given: Any, wanted: Any, package: str = "") -> type | None:
    """Return the first class of an object that is wanted and is of the package."""
    for kind in type(given).__mro__:
        if kind.__module__.partition(".")[0].startswith(package) and wanted(kind):
            return kind
    return None
