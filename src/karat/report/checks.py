"""A check: one threshold, the numbers it was held against, and what came of it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from karat.errors import counted
from karat.format import probability
from karat.report.tables import number
from karat.stats.rules import Rule, plain

_GUILT = {
    "min": "lowest queries",
    "max": "highest queries",
    "max_drop": "queries that fell most",
    "max_rise": "queries that rose most",
}


@dataclass(frozen=True)
class Blamed:
    """A query that pulls a value to the wrong side of its limit."""

    query_id: str
    value: float
    baseline: float | None = None


@dataclass(frozen=True)
class Check:
    """One rule, and whether the numbers keep to it."""

    rule: Rule
    passed: bool
    value: float
    """Of the run; compared with a baseline, over the queries that both have a value for."""
    n: int
    baseline: float | None = None
    difference: float | None = None
    """Run − baseline."""
    bound: float | None = None
    """The one-sided bound of the difference that decides."""
    method: str | None = None
    """How the bound was computed."""
    p: float | None = None
    """The one-sided p that decides; None where too few queries differ."""
    differing: int = 0
    """On how many queries run and baseline differ."""
    only_run: int = 0
    """How many queries have a value in the run and none in the baseline."""
    only_baseline: int = 0
    to_blame: int = 0
    """How many queries pull the value to the wrong side, where the check failed."""
    blamed: tuple[Blamed, ...] = ()
    """The worst of them."""

    @property
    def name(self) -> str:
        """The rule, and the group that it speaks of."""
        return str(self.rule) if self.rule.group is None else f"{self.rule} [{self.rule.group}]"

    @property
    def miss(self) -> float:
        """By how much what decides lies on the wrong side of the limit; 0 if it does not."""
        if self.passed:
            return 0.0
        if self.bound is None:
            return abs(self.value - self.rule.limit)
        return self._change(self.bound) - self.rule.limit

    @property
    def reason(self) -> str:
        """What was found, in a sentence."""
        return self._of_value() if self.difference is None else self._of_change()

    def _of_value(self) -> str:
        told, limit = f"{self.rule.measure} is {self.shown(self.value)}", plain(self.rule.limit)
        if self.passed:
            return told
        if not self.miss:
            return f"{told}, which is the limit itself"
        return f"{told}, {self.shown(self.miss)} {self._wrong_side} {limit}"

    def _of_change(self) -> str:
        assert self.difference is not None
        if self.bound is None or self.method == "few":
            return self._of_few()
        rule, limited = self.rule, self._change(self.bound)
        change, other = ("drop", "rise") if rule.kind == "max_drop" else ("rise", "drop")
        most = rule.strict
        if limited < 0:  # a drop of at least -0.1 is a rise of at most 0.1
            change, most = other, not most
        p = "" if self.p is None else f", p {probability(self.p)}"
        said = (
            f"{self._moved}; a {change} of {'at most' if most else 'at least'} "
            f"{self.shown(abs(limited))} ({100 * rule.confidence:.15g}% confidence{p})"
        )
        if self.passed:
            return said
        if not self.miss:
            return f"{said}, which is the limit itself"
        return f"{said}, {self.shown(self.miss)} more than {plain(rule.limit)}"

    def _of_few(self) -> str:
        """Return the reason where too few queries differ for any test."""
        assert self.difference is not None
        if not self.differing:
            return f"{self._moved}; no query differs from the baseline"
        said = f"{self._moved}; only {self.differing:,} of {counted(self.n, 'query')} differ"
        if self.bound is None:
            return f"{said}, too few for a test"
        change = "drop" if self.rule.kind == "max_drop" else "rise"
        if self.passed:
            return f"{said}, too few to show a {change}"
        return f"{said}, too few to rule out a {change} of {self.shown(self._change(self.bound))}"

    @property
    def _moved(self) -> str:
        if not self.difference:
            return f"{self.rule.measure} stayed at {self.shown(self.value)}"
        return (
            f"{self.rule.measure} {'rose' if self.difference > 0 else 'fell'} by "
            f"{self.shown(abs(self.difference))}, from "
            f"{self.shown(self.baseline)} to {self.shown(self.value)}"
        )

    @property
    def _wrong_side(self) -> str:
        return "below" if self.rule.kind == "min" else "above"

    def _change(self, difference: float) -> float:
        """Return a difference as a drop or a rise, whichever the rule limits."""
        return 0.0 - difference if self.rule.kind == "max_drop" else difference  # never −0

    def shown(self, value: float | None) -> str:
        """Show a number of this measure; one that would look like nothing in short form."""
        told = number(value, self.rule.measure)
        return f"{value:.1g}" if value and not told.strip("-0.,") else told

    @property
    def guilt(self) -> str:
        """What the queries to blame have in common, in words."""
        return _GUILT[self.rule.kind]

    def as_dict(self) -> dict[str, Any]:
        """Return the check as plain data; absent: it does not apply."""
        rule = self.rule
        told: dict[str, Any] = {
            "measure": rule.measure,
            "threshold": str(rule),
            "kind": rule.kind,
            "limit": rule.limit,
            "passed": self.passed,
            "value": self.value,
            "n": self.n,
            "reason": self.reason,
        }
        if rule.field is not None:
            told["by"] = {rule.field: rule.value}
        if rule.compares:
            told |= {
                "confidence": rule.confidence,
                "strict": rule.strict,
                "baseline": self.baseline,
                "difference": self.difference,
                "bound": self.bound,
                "method": self.method,
                "p": self.p,
                "differing": self.differing,
                "only_run": self.only_run,
                "only_baseline": self.only_baseline,
            }
        if not self.passed:
            told |= {
                "miss": self.miss,
                "to_blame": self.to_blame,
                "blamed": [
                    {k: v for k, v in asdict(each).items() if v is not None} for each in self.blamed
                ],
            }
        return told
