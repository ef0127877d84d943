"""Ready-made sets of measures and conventions, each with a small fixed API."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from karat.measures import presets

PRESETS = tuple(presets.PRESETS)


def __getattr__(name: str) -> Any:
    # One at a time: coverage imports all of evaluation, which the others do without.
    if name not in PRESETS:
        raise AttributeError(f"module 'karat.presets' has no attribute {name!r}")
    return import_module(f"karat.presets.{name}")


def __dir__() -> list[str]:
    return list(PRESETS)
