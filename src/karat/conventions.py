"""Conventions: how edge cases are scored.

Other tools handle these cases differently and silently, so karat makes the rules explicit and
prints them with the scores.
"""

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
    """How edge cases are scored. The command line has an option for each convention.

    Parameters
    ----------
    missing : {"zero", "skip", "error"}, default "zero"
        A query in gold that is not in the run: score it as if nothing was retrieved, exclude it,
        or raise an error.
    unknown : {"ignore", "error"}, default "ignore"
        A query in the run that is not in gold: ignore it, or raise an error.
    no_gold : {"family", "zero", "one", "recall", "skip"}, default "family"
        A query without any relevant item in gold. "family" follows the rule of each family: 0 for
        rank measures, a recall of 1 for spans, excluded for evidence. "zero" scores 0, "one"
        scores 1, "recall" scores 1 for measures of recall and 0 for others, and "skip" excludes
        the query.
    duplicates : {"first", "count", "set", "error"}, default "first"
        An item that appears twice in one list. With "first", the repeated item keeps its rank but
        is not counted again. "count" counts it again in P, Hits and evidence.P. "set" removes it
        before scoring, so that later items move up. "error" raises an error.
    unjudged : {"irrelevant", "skip"}, default "irrelevant"
        A retrieved item without a judgment: treat it as irrelevant, or remove it from the list.

    Raises
    ------
    ConventionError
        If a value is not one of the choices.

    Examples
    --------
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
            value, choices = getattr(self, field.name), CHOICES[field.name]
            if value not in choices:
                raise ConventionError(
                    f"unknown value {value!r}",
                    field=field.name,
                    hint=f"choose one of {', '.join(choices)}",
                )

    @classmethod
    def of(cls, given: Conventions | dict[str, Any] | None) -> Conventions:
        """Return conventions from a dict, or the defaults.

        Parameters
        ----------
        given : Conventions, dict or None
            Conventions, a dict such as `{"missing": "skip"}`, or None for the defaults.

        Returns
        -------
        Conventions
            The checked conventions.

        Raises
        ------
        ConventionError
            If a name or a value is unknown.

        Examples
        --------
        >>> Conventions.of({"missing": "skip"}).missing
        'skip'
        """
        if given is None:
            return cls()
        if isinstance(given, Conventions):
            return given
        for name in given:
            if name not in CHOICES:
                raise ConventionError(
                    f"unknown convention {name!r}",
                    hint=did_you_mean(name, CHOICES) or f"choose one of {', '.join(CHOICES)}",
                )
        return cls(**given)

    def as_dict(self) -> dict[str, str]:
        """Return the conventions as a dict, for printing and saving.

        Returns
        -------
        dict
            The value of each convention by its name.

        Examples
        --------
        >>> Conventions().as_dict()["unknown"]
        'ignore'
        """
        return asdict(self)

    def departures(self) -> dict[str, str]:
        """Return the conventions that differ from the defaults.

        Returns
        -------
        dict
            The value of each such convention by its name.

        Examples
        --------
        >>> Conventions(missing="skip").departures()
        {'missing': 'skip'}
        """
        default = Conventions()
        return {
            name: value for name, value in self.as_dict().items() if value != getattr(default, name)
        }
