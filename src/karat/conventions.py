"""How edge cases are scored, where tools silently differ: explicit, frozen, printed."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any

from karat.checks import did_you_mean
from karat.errors import ConventionError

CHOICES = {
    "missing": ("zero", "skip", "error"),
    "unknown": ("ignore", "error"),
    "no_gold": ("family", "zero", "one", "recall", "skip"),
    "duplicates": ("first", "count", "set", "error"),
    "unjudged": ("irrelevant", "skip"),
}

HELP = {
    "missing": "a query in gold that is not in the run",
    "unknown": "a query in the run that is not in gold",
    "no_gold": "a query without any relevant item in gold",
    "duplicates": "an item that appears twice in one list",
    "unjudged": "a retrieved item without a judgment",
}


@dataclass(frozen=True)
class Conventions:
    """How corner cases are scored; the same words are flags of the command line.

    >>> Conventions(missing="skip").as_dict()["missing"]
    'skip'
    """

    missing: str = "zero"
    unknown: str = "ignore"
    no_gold: str = "family"
    duplicates: str = "first"
    unjudged: str = "irrelevant"

    def __post_init__(self) -> None:
        for field in fields(self):
            word, choices = getattr(self, field.name), CHOICES[field.name]
            if word not in choices:
                raise ConventionError(
                    f"{word!r} is not a convention",
                    field=field.name,
                    hint=f"choose one of {', '.join(choices)}",
                )

    @classmethod
    def of(cls, given: Conventions | dict[str, Any] | None) -> Conventions:
        """Take conventions as they are, as a dict of words, or as the defaults."""
        if given is None:
            return cls()
        if isinstance(given, Conventions):
            return given
        for name in given:
            if name not in CHOICES:
                raise ConventionError(
                    f"there is no convention {name!r}",
                    hint=did_you_mean(name, CHOICES) or f"known: {', '.join(CHOICES)}",
                )
        return cls(**given)

    def as_dict(self) -> dict[str, str]:
        """Return the words, for printing and saving."""
        return asdict(self)

    def departures(self) -> dict[str, str]:
        """Return only the words that differ from the defaults."""
        default = Conventions()
        return {k: v for k, v in self.as_dict().items() if v != getattr(default, k)}
