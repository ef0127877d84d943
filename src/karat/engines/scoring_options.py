"""The options of `evaluate`, `compare`, `gate` and `explain` as one frozen object."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from karat import checks
from karat.conventions import Conventions
from karat.data.list_cut import ListCut
from karat.errors import InputError
from karat.files import parse_byte_count
from karat.live.failures import MAX_FAILED
from karat.match.text import Matching
from karat.measures.presets import preset_named
from karat.memory_limit import LEAST_MEMORY, default_memory

ENGINES = ("local", "spark")
_LIBRARY_BYTES = 128 << 20
"""The memory that Python, karat and its libraries use before any data is read."""
_PARSERS: dict[str, Callable[[str], Any]] = {"top_k": int, "score_threshold": float}


@dataclass(frozen=True)
class ScoringOptions:
    """How runs are scored. `karat.evaluate` documents each option."""

    conventions: Conventions | dict[str, Any] | None = None
    preset: str | None = None
    level: str = "item"
    chunks: Any = None
    corpus: Any = None
    matching: Matching | None = None
    top_k: int | None = None
    score_threshold: float | None = None
    fail_on_error: float = MAX_FAILED
    cluster: str | None = None
    """The field of the queries whose values are clusters, for intervals and tests."""
    engine: str = "local"
    memory: str | int | None = None

    def check(self) -> None:
        """Raise an error for an invalid option, before any file is read."""
        self.effective_conventions()
        self.list_settings()
        self._check_engine()
        self._memory_limit()

    def _check_engine(self) -> None:
        if self.engine not in ENGINES:
            raise InputError(
                f"unknown engine {self.engine!r}",
                field="engine",
                hint=f"use {' or '.join(ENGINES)}",
            )

    def data_memory(self) -> int:
        """Return how many bytes gold and runs may take: the limit minus what libraries use."""
        return max(self._memory_limit() - _LIBRARY_BYTES, 1)

    def _memory_limit(self) -> int:
        """Return the memory limit in bytes."""
        if self.memory is None:
            return default_memory()
        if isinstance(self.memory, str):
            limit = parse_byte_count(self.memory, "memory", "for example 500M or 2G")
        else:
            limit = checks.integer(
                self.memory, "memory", least=1, hint='for example 2_000_000_000 or "2G"'
            )
        if limit < LEAST_MEMORY:
            raise InputError(
                f"must be at least {LEAST_MEMORY >> 20}M, got {self.memory}",
                field="memory",
                hint=f"Python and the libraries need about {_LIBRARY_BYTES >> 20}M of it",
            )
        return limit

    def effective_conventions(self) -> Conventions:
        """Return the conventions of the preset, overridden by `conventions`."""
        if self.preset is None or isinstance(self.conventions, Conventions):
            return Conventions.of(self.conventions)
        defaults = preset_named(self.preset).conventions.as_dict()
        return Conventions.of(defaults | (self.conventions or {}))

    def list_settings(self) -> ListCut:
        """Return `top_k` and `score_threshold`, with defaults from the environment variables.

        The preset determines which variables are read. An empty variable is ignored.
        """
        values: dict[str, Any] = {"top_k": self.top_k, "score_threshold": self.score_threshold}
        origin = {}
        for name, variable in preset_named(self.preset).environment.items():
            text = os.environ.get(variable, "").strip()
            if values[name] is None and text:
                values[name], origin[name] = _parse_number(_PARSERS[name], text), variable
        return ListCut(**values, origin=origin)


def _parse_number(parser: Callable[[str], Any], text: str) -> Any:
    """Return a number. Other text is returned unchanged; `ListCut` raises an error for it."""
    try:
        return parser(text)
    except ValueError:
        return text
