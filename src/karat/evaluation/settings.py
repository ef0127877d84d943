"""What shapes the lists: as it was given, and else as the environment says."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from karat.data.shaping import Settings

_KINDS: dict[str, Callable[[str], Any]] = {"top_k": int, "score_threshold": float}


def settings_of(
    top_k: int | None, score_threshold: float | None, variables: Mapping[str, str]
) -> Settings:
    """Take what is given; what is not, from the environment variable that is named for it.

    A variable that is set to nothing is not set.
    """
    given: dict[str, Any] = {"top_k": top_k, "score_threshold": score_threshold}
    origin = {}
    for name, variable in variables.items():
        told = os.environ.get(variable, "").strip()
        if given[name] is None and told:
            given[name], origin[name] = _number(_KINDS[name], told), variable
    return Settings(**given, origin=origin)


def _number(kind: Callable[[str], Any], told: str) -> Any:
    """Return a number, or what is none as it stands: settings refuse it and name its origin."""
    try:
        return kind(told)
    except ValueError:
        return told
