"""How a report is made, beyond its numbers."""

from __future__ import annotations

from dataclasses import dataclass

from karat.config import REPORT_TEXTS
from karat.errors import InputError


@dataclass(frozen=True)
class ReportOptions:
    """For how many queries a report holds texts, and what it says of its own making."""

    texts: int = REPORT_TEXTS
    """The most telling queries, with the texts of their lists and their calculations."""
    command: str | None = None
    settings: str | None = None
    """The path of the karat.toml whose settings apply."""

    def __post_init__(self) -> None:
        if self.texts < 0:
            raise InputError(
                f"texts of {self.texts} queries cannot be kept", field="texts", hint="0 or more"
            )
