"""Options of HTML reports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from karat.config import REPORT_TEXTS
from karat.errors import InputError

if TYPE_CHECKING:
    from karat.evaluation.history import History


@dataclass(frozen=True)
class ReportOptions:
    """The title of a report, how many queries it shows in detail, and how it was made."""

    texts: int = REPORT_TEXTS
    """Number of queries that are kept with texts and calculations: the most informative ones."""
    command: str | None = None
    """The command line that made the report."""
    settings: str | None = None
    """The path of the karat.toml that was used."""
    title: str | None = None
    """The title; None for one made from the names of gold and runs."""
    full_paths: bool = False
    """Whether full paths and the whole command line are shown, instead of base names."""
    history: History | None = None
    """The values of earlier scores and of these, for a chart."""

    def __post_init__(self) -> None:
        if self.texts < 0:
            raise InputError(
                f"the number of queries must be 0 or more, got {self.texts}", field="texts"
            )
        if self.title is not None and not self.title.strip():
            raise InputError(
                "the title is empty", field="title", hint="pass a text, or omit the title"
            )
