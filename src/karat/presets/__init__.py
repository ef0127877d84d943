"""Presets: ready-made sets of measures and conventions, each with a small stable API.

Each module has the names that a common kind of evaluation script uses: `benchmark`, `chunks`,
`coverage`, `graded` and `spans`.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from karat.measures import presets

PRESETS = tuple(presets.PRESETS)


def __getattr__(name: str) -> Any:
    # Imported on first use: coverage imports all of karat.evaluation, the others do not need it.
    if name not in PRESETS:
        raise AttributeError(f"module 'karat.presets' has no attribute {name!r}")
    return import_module(f"karat.presets.{name}")


def __dir__() -> list[str]:
    return list(PRESETS)
