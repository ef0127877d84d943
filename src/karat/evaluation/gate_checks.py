"""Checks of a gate: one threshold each, the numbers that decide, and the outcome."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import polars as pl

from karat.arrays import Flags, Floats
from karat.errors import InputError, counted
from karat.evaluation.scores import Scores
from karat.evaluation.thresholds import Rule, plain_number
from karat.format import probability
from karat.measures import Measure, ScoreTable, parse
from karat.stats.groups import group_queries, select_queries
from karat.stats.inference import infer
from karat.stats.pairs import Pair, pair
from karat.stats.samples import Sample

_GUILT = {
    "min": "lowest queries",
    "max": "highest queries",
    "max_drop": "queries that fell most",
    "max_rise": "queries that rose most",
}


@dataclass(frozen=True)
class BlamedQuery:
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
    blamed: tuple[BlamedQuery, ...] = ()
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
        told, limit = (
            f"{self.rule.measure} is {self.shown(self.value)}",
            plain_number(self.rule.limit),
        )
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
        return f"{said}, {self.shown(self.miss)} more than {plain_number(rule.limit)}"

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
        formatted = parse(self.rule.measure).format(value)
        return f"{value:.1g}" if value and not formatted.strip("-0.,") else formatted

    @property
    def guilt(self) -> str:
        """What the queries to blame have in common, in words."""
        return _GUILT[self.rule.kind]

    def as_dict(self) -> dict[str, Any]:
        """Return the check as plain data; absent: it does not apply."""
        rule = self.rule
        plain: dict[str, Any] = {
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
            plain["by"] = {rule.field: rule.value}
        if rule.compares:
            plain |= {
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
            plain |= {
                "miss": self.miss,
                "to_blame": self.to_blame,
                "blamed": [
                    {k: v for k, v in asdict(each).items() if v is not None} for each in self.blamed
                ],
            }
        return plain


MOST_BLAMED = 5
LEAST_QUERIES = 2
LEAST_COMPARED = 5
"""No one-sided test at 95% can show a drop on fewer queries."""


def check_rule(rule: Rule, scores: Scores, baseline: Scores | None) -> Check:
    """Check one rule; if it cannot be checked, raise an error that names the place of the rule.

    The scores of the baseline are needed if the rule compares.
    """
    measure, table = parse(rule.measure), scores.table
    members = None if rule.field is None else _members(scores.queries, rule)
    if members is not None:
        table = select_queries(table, members)
    if not rule.compares:
        return _of_value(rule, table, measure)
    assert baseline is not None
    before = baseline.table
    if members is not None:
        before = select_queries(before, members)
    return _of_change(rule, pair(before, table, measure), table)


def _members(queries: pl.DataFrame, rule: Rule) -> pl.Series:
    """Return the queries of the rule's group; labels are compared as they are written."""
    assert rule.field is not None
    try:
        found = list(group_queries(queries, [rule.field]))
    except InputError as error:
        error.path, error.field = rule.path, rule.key
        raise
    by_label: dict[str | None, pl.Series] = {
        pl.select(labels[0].cast(pl.String)).item(): members for labels, members in found
    }
    if rule.value not in by_label:
        known = ", ".join(repr(label) for label in by_label if label is not None)
        raise rule.error(
            f"no query of gold has {rule.field} {rule.value!r}", f"there are {known or 'none'}"
        )
    return by_label[rule.value]


def _of_value(rule: Rule, table: ScoreTable, measure: Measure) -> Check:
    sample = Sample.of(table, measure)
    value = _need(rule, sample.n, sample.value)
    passed = rule.holds(value)
    if passed:
        return Check(rule, passed, value, sample.n)
    known = table.frame.filter(pl.col(measure.name).is_not_null())
    # A sum is over its limit by all queries, not by those that are over it alone.
    alone = measure.declaration.combine != "sum"
    wrong = np.array([not (alone and rule.holds(each)) for each in sample.values.tolist()])
    worst = _worst(sample.values if rule.kind == "min" else -sample.values, wrong)
    blamed = tuple(BlamedQuery(known["query_id"][at], float(sample.values[at])) for at in worst)
    return Check(
        rule, passed, value, sample.n, to_blame=int(np.count_nonzero(wrong)), blamed=blamed
    )


def _of_change(rule: Rule, both: Pair, table: ScoreTable) -> Check:
    value = _need(rule, both.n, both.b.value, LEAST_COMPARED)
    baseline = _need(rule, both.n, both.a.value, LEAST_COMPARED)
    (inference,) = infer([both], confidence=rule.two_sided)
    ends = inference.interval
    bound = rule.bound(ends)
    is_same = not both.n_differing
    if bound is None and (ends.method != "few" or (rule.strict and not is_same)):
        raise rule.error(
            f"nothing bounds the difference of {rule.measure} over {counted(both.n, 'query')}",
            "use another measure, or more queries",
        )
    passed = is_same or bound is None or rule.holds_at(bound)
    only_run = table.frame[rule.measure].count() - both.n
    gains = both.value_differences if rule.kind == "max_drop" else -both.value_differences
    worst = () if passed else _worst(gains, gains < 0)
    return Check(
        rule,
        passed,
        value,
        both.n,
        baseline,
        value - baseline,
        bound,
        ends.method,
        rule.p(inference),
        both.n_differing,
        only_run,
        both.left_out - only_run,
        0 if passed else int(np.count_nonzero(gains < 0)),
        tuple(
            BlamedQuery(both.query_ids[at], float(both.b.values[at]), float(both.a.values[at]))
            for at in worst
        ),
    )


def _need(rule: Rule, n: int, value: float | None, least: int = LEAST_QUERIES) -> float:
    if n < least:
        raise rule.error(
            f"only {counted(n, 'query')} {'has' if n == 1 else 'have'} a value of {rule.measure}",
            f"{rule.kind} needs {least} queries or more",
        )
    if value is None:
        raise rule.error(f"{rule.measure} has no value", "nothing is there to divide by")
    return value


def _worst(order: Floats, wrong: Flags) -> list[int]:
    """Return the positions of the lowest of the wrong ones; of equal ones, the first."""
    places = np.flatnonzero(wrong)
    worst: list[int] = places[np.argsort(order[places], kind="stable")][:MOST_BLAMED].tolist()
    return worst
