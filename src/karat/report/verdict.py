"""A verdict: whether a run keeps to its thresholds, and what must be known beside that."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any, Protocol

from karat.errors import InputError, counted
from karat.report import verdict_files, verdict_text
from karat.report.checks import Check
from karat.report.making import TEXTS, Making


class Basis(Protocol):
    """The scores that a verdict rests on, which can show themselves beside it."""

    def report(self, verdict: Verdict, path: str | os.PathLike[str], making: Making) -> None:
        """Write a page that opens with the verdict."""


@dataclass(frozen=True)
class Verdict:
    """What a gate found; it is true if every check passed."""

    run: str
    baseline: str | None
    checks: tuple[Check, ...]
    failed: int = 0
    """How many queries the retriever failed on."""
    missing: int = 0
    """How many queries of gold are not in the run."""
    remarks: tuple[str, ...] = ()
    """What was left out or counted, and how it was scored, in sentences."""
    scored: dict[str, Any] = field(default_factory=dict)
    """By which conventions, level, matching rule and settings."""
    basis: Basis | None = field(default=None, repr=False, compare=False)
    """What it rests on, for a report of it."""

    @property
    def passed(self) -> bool:
        """Whether every check passed."""
        return all(check.passed for check in self.checks)

    def __bool__(self) -> bool:
        return self.passed

    @property
    def failures(self) -> tuple[Check, ...]:
        """The checks that failed."""
        return tuple(check for check in self.checks if not check.passed)

    @property
    def unanswered(self) -> str | None:
        """Which queries have no answer in the run, in words, where there are any."""
        parts = [
            f"{counted(self.failed, 'query')} that the retriever failed on" if self.failed else "",
            f"{counted(self.missing, 'query')} not in the run" if self.missing else "",
        ]
        return " and ".join(filter(None, parts)) or None

    @property
    def summary(self) -> str:
        """Everything in one line; queries without an answer are never passed over."""
        total = counted(len(self.checks), "threshold")
        told = (
            f"{self.run} passed {total}"
            if self.passed
            else f"{self.run} failed {len(self.failures)} of {total}"
        )
        if self.baseline is not None:
            told += f" (baseline {self.baseline})"
        return told if self.unanswered is None else f"{told}; with {self.unanswered}"

    def as_dict(self) -> dict[str, Any]:
        """Return the verdict as plain data."""
        told: dict[str, Any] = {
            "run": self.run,
            "passed": self.passed,
            "unanswered": {"failed": self.failed, "missing": self.missing},
            **self.scored,
            "checks": [check.as_dict() for check in self.checks],
            "remarks": list(self.remarks),
        }
        return told | ({} if self.baseline is None else {"baseline": self.baseline})

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the verdict; the ending says how: .xml for JUnit, .md, .json."""
        verdict_files.write([Entry(self.run, self)], path)

    def report(self, path: str | os.PathLike[str], *, texts: int = TEXTS) -> None:
        """Write an HTML page: the verdict, and the scores it rests on.

        For `texts` queries, the most telling ones, it holds texts and calculations.
        """
        if self.basis is None:
            raise InputError("the scores of this verdict are not at hand", hint="judge again")
        self.basis.report(self, path, Making(texts))

    def __str__(self) -> str:
        return verdict_text.text(self)


@dataclass(frozen=True)
class Entry:
    """One gate of a report: its verdict, or why there is none."""

    title: str
    verdict: Verdict | None
    error: str | None = None

    @property
    def passed(self) -> bool | None:
        """Whether it passed; None where it could not be judged."""
        return None if self.verdict is None else self.verdict.passed

    def as_dict(self) -> dict[str, Any]:
        """Return the entry as plain data."""
        if self.verdict is None:
            return {"title": self.title, "passed": None, "error": self.error}
        return {"title": self.title, **self.verdict.as_dict()}
