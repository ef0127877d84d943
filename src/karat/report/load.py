"""Under which load a retriever answered: latency means little without it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def load(settings: Mapping[str, Any]) -> str | None:
    """Say how many questions were under way at a time, None where a run does not tell.

    A run that was finished later may have been asked at several paces.

    >>> load({"jobs": 8}), load({"jobs": [32, 1], "rate": 2.5}), load({})
    ('asked 8 at a time', 'asked 32, then 1 at a time, at most 2.5 begun a second', None)
    """
    jobs = _told(settings.get("jobs"))
    if not jobs:
        return None
    rates = _told(settings.get("rate"))
    rate = f", at most {_in_turn(rates)} begun a second" if rates else ""
    return f"asked {_in_turn(jobs)} at a time{rate}"


def loaded(settings: Mapping[str, Any]) -> str | None:
    """Say the load where questions had to share the retriever, else nothing."""
    return load(settings) if any(jobs > 1 for jobs in _told(settings.get("jobs"))) else None


def _told(given: Any) -> list[float]:
    """Return the numbers of a setting; whoever wrote the file may have written anything."""
    every = given if isinstance(given, list) else [given]
    return [each for each in every if isinstance(each, (int, float)) and not isinstance(each, bool)]


def _in_turn(numbers: list[float]) -> str:
    return ", then ".join(f"{number:g}" for number in numbers)
