"""How texts are compared: the rule as a value, and in words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from karat import checks
from karat.errors import InputError
from karat.match.text.normalize import normalize

Judge = Callable[[str, str], bool | float]
"""Takes evidence and chunk, both normalised; returns the decision, or a number to compare."""

MATCHERS = ("ratio", "partial", "tokens")
DIRECTIONS = ("evidence", "either")

_RULES = {
    "ratio": "SequenceMatcher's ratio",
    "partial": "the ratio with the best window of the chunk",
    "tokens": "the share of its tokens that the chunk has in the same order",
}


@dataclass(frozen=True)
class Matching:
    """When a chunk covers an evidence; checked when it is made.

    A chunk covers an evidence that is a substring of it (with `direction="either"`, also one that
    it is a substring of), or that is close enough: the matcher's number is at least
    `fuzzy_threshold`. Both are normalised first. A function in place of the matcher's name decides
    alone, substrings included. An empty chunk covers nothing.

    `autojunk=True` is Python's default for SequenceMatcher. It ignores every character that makes
    up more than 1% of a chunk of 200 characters or more, and so loses most near matches: of
    scientific prose with a fifth of its words changed, 70% at 200 characters and 97% at 1,000.

    >>> str(Matching(fuzzy_threshold=0.8, casefold=True))
    "a substring of the chunk, or SequenceMatcher's ratio ≥ 0.8; case folded"
    """

    matcher: str | Judge = "ratio"
    fuzzy_threshold: float = 0.7
    autojunk: bool = False
    direction: str = "evidence"
    casefold: bool = False
    nfkc: bool = False
    zero_width: bool = False

    def __post_init__(self) -> None:
        threshold = checks.positive(
            self.fuzzy_threshold,
            "fuzzy_threshold",
            most=1,
            hint="0.7 is the default; 1 accepts only equal texts and substrings",
        )
        object.__setattr__(self, "fuzzy_threshold", float(threshold))  # NumPy's print otherwise
        if not callable(self.matcher) and self.matcher not in MATCHERS:
            raise InputError(
                f"there is no matcher {self.matcher!r}",
                field="matcher",
                hint=f"choose one of {', '.join(MATCHERS)}, or a function (evidence, chunk) → bool",
            )
        if self.direction not in DIRECTIONS:
            raise InputError(
                f"{self.direction!r} is not a direction",
                field="direction",
                hint="'evidence': in the chunk; 'either': or the chunk in the evidence",
            )
        if self.autojunk and self.matcher != "ratio":
            raise InputError(
                "autojunk belongs to the matcher 'ratio'",
                field="autojunk",
                hint="leave it out, or choose the matcher 'ratio'",
            )
        if callable(self.matcher) and self.direction != "evidence":
            raise InputError(
                "a function decides alone, so a direction has no effect",
                field="direction",
                hint="leave it out, and let the function look both ways",
            )

    @property
    def judge(self) -> Judge | None:
        """The function that decides, if one does."""
        return None if isinstance(self.matcher, str) else self.matcher

    @property
    def either(self) -> bool:
        """Whether a chunk within the evidence covers it too."""
        return self.direction == "either"

    def normalize(self, text: str) -> str:
        """Return a text as it is compared."""
        return normalize(text, casefold=self.casefold, nfkc=self.nfkc, zero_width=self.zero_width)

    def __str__(self) -> str:
        notes = ["case folded" if self.casefold else "lower case"]
        if self.nfkc:
            notes.append("NFKC")
        if self.zero_width:
            notes.append("without zero-width characters")
        return f"{self._rule()}; {', '.join(notes)}"

    def _rule(self) -> str:
        least = f"≥ {self.fuzzy_threshold!r}"
        if not isinstance(self.matcher, str):
            return f"{getattr(self.matcher, '__name__', 'a function')} says so, or {least}"
        inside = "a substring of the chunk" + (" or the other way round" if self.either else "")
        junk = " with autojunk" if self.autojunk else ""
        return f"{inside}, or {_RULES[self.matcher]}{junk} {least}"
