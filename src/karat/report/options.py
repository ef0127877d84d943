"""Options of HTML reports."""

from __future__ import annotations

from dataclasses import dataclass

from karat.config import REPORT_TEXTS
from karat.errors import InputError


@dataclass(frozen=True)
class ReportOptions:
    """How many queries a report shows in detail, and what it states about its origin."""

    texts: int = REPORT_TEXTS
    """Number of queries that are kept with texts and calculations: the most informative ones."""
    command: str | None = None
    """The command line that made the report."""
    settings: str | None = None
    """The path of the karat.toml that was used."""

    def __post_init__(self) -> None:
        if self.texts < 0:
            raise InputError(
                f"the number of queries must be 0 or more, got {self.texts}", field="texts"
            )
