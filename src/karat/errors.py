"""What can go wrong, in words a person can act on."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import os


SWAPPED = "gold comes first, then the run; were they swapped?"


class KaratError(Exception):
    """Everything karat raises on purpose; the command line turns it into one message."""


class InputError(KaratError, ValueError):
    """Input that cannot be used: where it is, what is wrong and how to mend it."""

    def __init__(
        self,
        problem: str,
        *,
        path: str | os.PathLike[str] | None = None,
        line: int | None = None,
        field: str | None = None,
        hint: str | None = None,
    ) -> None:
        self.problem = problem
        self.path = None if path is None else str(path)
        self.line = line
        self.field = field
        self.hint = hint
        super().__init__(problem)

    def __str__(self) -> str:
        place = self.path or ""
        if self.line is not None:
            place = f"{place}:{self.line}" if place else f"line {self.line}"
        where = [part for part in (place, self.field) if part]
        message = ": ".join([*where, self.problem])
        return f"{message}\n  hint: {self.hint}" if self.hint else message


class MeasureError(InputError):
    """A measure that does not exist, or was given something it does not take."""


class ConventionError(InputError):
    """A convention that does not exist, or one that the data breaks."""


class KaratWarning(UserWarning):
    """Something a person should know before trusting a number."""
