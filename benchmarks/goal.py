"""Goals: what karat should reach, next to what was measured."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Goal:
    """A bound for a measured value, which is None if it could not be measured."""

    text: str
    bound: float
    measured: float | None
    unit: str = "×"
    at_least: bool = True

    @property
    def is_met(self) -> bool | None:
        """Whether the measured value is within the bound; None if there is no value."""
        if self.measured is None:
            return None
        return self.measured >= self.bound if self.at_least else self.measured <= self.bound
