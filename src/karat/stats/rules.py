"""What a number must keep to, and whether it does."""

from __future__ import annotations

from dataclasses import dataclass
from dataclasses import field as field_of
from typing import Literal

from karat.errors import InputError
from karat.measures.names import parse
from karat.stats.inference import Inference
from karat.stats.intervals import CONFIDENCE, Interval

Kind = Literal["min", "max", "max_drop", "max_rise"]
SIGNS: dict[str, tuple[Kind, bool]] = {
    ">=": ("min", True),
    ">": ("min", False),
    "<=": ("max", True),
    "<": ("max", False),
}
"""What a sign means, and whether the limit itself will do."""
CHANGES: tuple[Kind, ...] = ("max_drop", "max_rise")
"""The kinds that are about the difference from a baseline."""


def plain(number: float) -> str:
    """Return a number as a person writes it; it reads back as the same.

    >>> plain(350.0), plain(0.02)
    ('350', '0.02')
    """
    return str(number).removesuffix(".0")


@dataclass(frozen=True)
class Rule:
    """One threshold of one measure, over all queries or over one group of them.

    >>> str(Rule("R@10", "max_drop", 0.02, strict=True))
    'R@10 max_drop 0.02 strict'
    """

    measure: str
    """The canonical name."""
    kind: Kind
    limit: float
    inclusive: bool = True
    """Whether the limit itself will do, of min and max."""
    confidence: float = CONFIDENCE
    """How sure a drop or a rise must be."""
    strict: bool = False
    """Whether it must be shown that there is none, rather than that there is one."""
    field: str | None = None
    """The field of queries that makes the group, where there is one; `value` says which."""
    value: str | None = None
    path: str | None = field_of(default=None, compare=False)
    """The file it is written in, if it is."""
    key: str | None = field_of(default=None, compare=False)
    """Where it is written there."""

    def error(self, problem: str, hint: str) -> InputError:
        """Make the error that says this rule cannot be judged."""
        return InputError(problem, path=self.path, field=self.key, hint=hint)

    @property
    def compares(self) -> bool:
        """Whether it is about the difference from a baseline."""
        return self.kind in CHANGES

    @property
    def two_sided(self) -> float:
        """The confidence of the two-sided interval whose ends are this rule's one-sided bounds."""
        return 2 * self.confidence - 1

    def holds(self, value: float) -> bool:
        """Tell whether a value keeps to a min or a max."""
        if value == self.limit:
            return self.inclusive
        return value > self.limit if self.kind == "min" else value < self.limit

    def bound(self, ends: Interval) -> float | None:
        """Return the end of an interval of run − baseline that decides.

        A drop is shown by the most that the difference may be, and its absence by the least; a
        rise the other way round. An end that only rounding keeps from the limit is the limit.
        """
        end = ends.high if (self.kind == "max_drop") != self.strict else ends.low
        is_limit = end is not None and abs(end - self._allowed) <= ends.rounding
        return self._allowed if is_limit else end

    def p(self, inference: Inference) -> float | None:
        """Return the one-sided p that decides: of no drop beyond the limit, or of one if strict."""
        is_above = (self.kind == "max_drop") == self.strict
        p = inference.p_above if is_above else inference.p_below
        return p(self._allowed)

    @property
    def _allowed(self) -> float:
        """The furthest that run − baseline may be."""
        return -self.limit if self.kind == "max_drop" else self.limit

    def holds_at(self, bound: float) -> bool:
        """Tell whether the bound that decides keeps to a max_drop or a max_rise."""
        change = -bound if self.kind == "max_drop" else bound
        return change < self.limit if self.strict else change <= self.limit

    @property
    def group(self) -> str | None:
        """The group as it is shown."""
        return None if self.field is None else f"{self.field}={self.value}"

    def __str__(self) -> str:
        unit = parse(self.measure).declaration.unit
        words = [self.measure, self._word, plain(self.limit), *([unit] if unit else [])]
        if self.compares and self.confidence != CONFIDENCE:
            words += ["confidence", plain(self.confidence)]
        return " ".join([*words, *(["strict"] if self.strict else [])])

    @property
    def _word(self) -> str:
        if self.compares:
            return self.kind
        return next(sign for sign, way in SIGNS.items() if way == (self.kind, self.inclusive))
