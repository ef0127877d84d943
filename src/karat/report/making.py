"""How a report is made, beyond its numbers."""

from __future__ import annotations

from dataclasses import dataclass

from karat.errors import InputError

TEXTS = 500


@dataclass(frozen=True)
class Making:
    """For how many queries a report holds texts, and what it says of its own making."""

    texts: int = TEXTS
    """The most telling queries, with the texts of their lists and their calculations."""
    command: str | None = None
    settings: str | None = None
    """The path of the karat.toml that was heeded."""

    def __post_init__(self) -> None:
        if self.texts < 0:
            raise InputError(
                f"texts of {self.texts} queries cannot be kept", field="texts", hint="0 or more"
            )
