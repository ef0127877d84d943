"""The options of scoring as one frozen object, passed on behind `karat.evaluate` and others."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from karat.conventions import Conventions
from karat.data.list_cut import ListCut
from karat.live.failures import MAX_FAILED
from karat.match.text import Matching
from karat.measures.presets import preset_named

_KINDS: dict[str, Callable[[str], Any]] = {"top_k": int, "score_threshold": float}


@dataclass(frozen=True)
class ScoringOptions:
    """How runs are scored; `karat.evaluate` documents each option."""

    conventions: Conventions | dict[str, Any] | None = None
    preset: str | None = None
    level: str = "item"
    chunks: Any = None
    corpus: Any = None
    matching: Matching | None = None
    top_k: int | None = None
    score_threshold: float | None = None
    fail_on_error: float = MAX_FAILED

    def check(self) -> None:
        """Raise an error for a wrong word or number, before anything is read."""
        self.effective_conventions()
        self.list_settings()

    def effective_conventions(self) -> Conventions:
        """Return the conventions of the preset, overridden by those that are given."""
        if self.preset is None or isinstance(self.conventions, Conventions):
            return Conventions.of(self.conventions)
        defaults = preset_named(self.preset).conventions.as_dict()
        return Conventions.of(defaults | (self.conventions or {}))

    def list_settings(self) -> ListCut:
        """Return what shapes the lists: as given, else from the preset's environment variables.

        A variable that is set to nothing is not set.
        """
        values: dict[str, Any] = {"top_k": self.top_k, "score_threshold": self.score_threshold}
        origin = {}
        for name, variable in preset_named(self.preset).environment.items():
            text = os.environ.get(variable, "").strip()
            if values[name] is None and text:
                values[name], origin[name] = _number(_KINDS[name], text), variable
        return ListCut(**values, origin=origin)


def _number(kind: Callable[[str], Any], text: str) -> Any:
    """Return a number, or a text that is not one unchanged: `Settings` refuses it."""
    try:
        return kind(text)
    except ValueError:
        return text
