"""`karat.Matching`: the rule that decides whether a chunk covers an evidence text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from karat import checks
from karat.errors import InputError
from karat.match.text.normalize import normalize

Judge = Callable[[str, str], bool | float]
"""Takes a normalised evidence text and chunk; returns a decision, or a similarity."""

MATCHERS = ("ratio", "partial", "tokens")
DIRECTIONS = ("evidence", "either")

_DESCRIPTIONS = {
    "ratio": "SequenceMatcher's ratio",
    "partial": "the ratio with the best window of the chunk",
    "tokens": "the share of its tokens that the chunk has in the same order",
}


@dataclass(frozen=True)
class Matching:
    """The rule that decides whether a chunk covers an evidence text.

    Both texts are normalised first: in lower case, with white space collapsed. A chunk covers an
    evidence text if it contains the text, or if their similarity is at least `fuzzy_threshold`.
    An empty chunk covers nothing.

    Parameters
    ----------
    matcher : "ratio", "partial", "tokens" or function, default "ratio"
        How similarity is computed. "ratio" is `difflib.SequenceMatcher.ratio` of both texts;
        "partial" is the ratio with the most similar window of the chunk; "tokens" is the share of
        the words of the evidence text that the chunk contains in the same order. A function gets
        the normalised evidence text and chunk, and returns True or False, or a similarity. It
        decides alone: a chunk that contains the text is not covered if the function rejects it.
    fuzzy_threshold : float, default 0.7
        The lowest similarity at which a chunk covers an evidence text, above 0 and at most 1. With
        1.0, only equal texts and substrings match ("ratio").
    autojunk : bool, default False
        Use SequenceMatcher's own default, for the matcher "ratio". It ignores each character that
        makes up more than 1% of a chunk of 200 characters or more, and so loses most near matches:
        in scientific prose with a fifth of the words changed, 70% at 200 characters and 97% at
        1,000.
    direction : "evidence" or "either", default "evidence"
        Which text may be a substring of the other. "evidence": the evidence text in the chunk;
        "either": the chunk in the evidence text as well.
    casefold : bool, default False
        Use `str.casefold` instead of `str.lower`: "Straße" equals "STRASSE".
    nfkc : bool, default False
        Apply the Unicode normalisation NFKC, so that, for example, the ligature "ﬁ" equals "fi".
    zero_width : bool, default False
        Remove zero-width characters.

    Raises
    ------
    InputError
        If a parameter is out of range, or has no effect with the chosen matcher.

    Examples
    --------
    >>> import karat
    >>> matching = karat.Matching(fuzzy_threshold=0.8, casefold=True)
    >>> str(matching)
    "a substring of the chunk, or SequenceMatcher's ratio ≥ 0.8; case folded"
    >>> gold = karat.Gold.of(evidence={"q1": ["paid within 14 days"]})
    >>> run = [{"query_id": "q1", "results": [{"id": "a", "text": "Paid within 40 days."}]}]
    >>> karat.evaluate(gold, run, "evidence.recall", matching=matching)["evidence.recall"]
    1.0
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
        # A NumPy float would be printed as np.float64(…) by __str__.
        object.__setattr__(self, "fuzzy_threshold", float(threshold))
        if not callable(self.matcher) and self.matcher not in MATCHERS:
            raise InputError(
                f"unknown matcher {self.matcher!r}",
                field="matcher",
                hint=f"use one of {', '.join(MATCHERS)}, or a function (evidence, chunk) → bool",
            )
        if self.direction not in DIRECTIONS:
            raise InputError(
                f"unknown direction {self.direction!r}",
                field="direction",
                hint="use 'evidence' (the chunk must contain the evidence text) or 'either' (one "
                "of the two texts must contain the other)",
            )
        if self.autojunk and self.matcher != "ratio":
            raise InputError(
                "requires the matcher 'ratio'",
                field="autojunk",
                hint="remove autojunk, or use the matcher 'ratio'",
            )
        if callable(self.matcher) and self.direction != "evidence":
            raise InputError(
                "has no effect if the matcher is a function",
                field="direction",
                hint="remove direction, and let the function compare both ways",
            )

    @property
    def judge(self) -> Judge | None:
        """The function that decides, or None if the matcher is a name."""
        return None if isinstance(self.matcher, str) else self.matcher

    @property
    def either(self) -> bool:
        """Whether a chunk that is a substring of the evidence text covers it too."""
        return self.direction == "either"

    def normalize(self, text: str) -> str:
        """Return the text in the form in which it is compared."""
        return normalize(text, casefold=self.casefold, nfkc=self.nfkc, zero_width=self.zero_width)

    def __str__(self) -> str:
        notes = ["case folded" if self.casefold else "lower case"]
        if self.nfkc:
            notes.append("NFKC")
        if self.zero_width:
            notes.append("without zero-width characters")
        return f"{self._rule()}; {', '.join(notes)}"

    def _rule(self) -> str:
        at_least = f"≥ {self.fuzzy_threshold!r}"
        if not isinstance(self.matcher, str):
            name = getattr(self.matcher, "__name__", "a function")
            return f"{name} returns True, or a number {at_least}"
        substring = "a substring of the chunk" + (" or vice versa" if self.either else "")
        autojunk = " with autojunk" if self.autojunk else ""
        return f"{substring}, or {_DESCRIPTIONS[self.matcher]}{autojunk} {at_least}"
