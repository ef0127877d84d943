"""The checks of a gate: each compares one threshold with the numbers of a run."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import polars as pl

from karat.arrays import Flags, Floats
from karat.errors import InputError, counted
from karat.evaluation.scores import Scores
from karat.evaluation.thresholds import Rule, plain_number
from karat.format import not_as_zero, probability
from karat.measures import Measure, ScoreTable, parse
from karat.stats.groups import group_queries, select_queries
from karat.stats.inference import infer
from karat.stats.pairs import Pair, pair
from karat.stats.samples import Sample

_BLAMED_HEADINGS = {
    "min": "lowest queries",
    "max": "highest queries",
    "max_drop": "queries that fell most",
    "max_rise": "queries that rose most",
}


@dataclass(frozen=True)
class BlamedQuery:
    """A query that contributes to a failed check."""

    query_id: str
    value: float
    baseline: float | None = None


@dataclass(frozen=True)
class Check:
    """A threshold, the numbers it was compared with, and whether it is met."""

    rule: Rule
    passed: bool
    value: float
    """The value of the run. With a baseline: over the queries with a value in both."""
    n: int
    baseline: float | None = None
    difference: float | None = None
    """Run − baseline."""
    bound: float | None = None
    """The one-sided confidence bound of the difference that is compared with the limit."""
    method: str | None = None
    """How the bound was computed."""
    p: float | None = None
    """The one-sided p-value; None if too few queries differ."""
    draws: int | None = None
    """The number of random draws behind bound and p; None if they are exact."""
    differing: int = 0
    """The number of queries with different values in run and baseline."""
    clusters: int | None = None
    """The number of clusters that are compared; None if all queries are independent."""
    differing_clusters: int | None = None
    """The number of clusters with different values in run and baseline."""
    only_run: int = 0
    """The number of queries with a value in the run only."""
    only_baseline: int = 0
    """The number of queries with a value in the baseline only."""
    to_blame: int = 0
    """The number of queries that contribute to a failed check."""
    blamed: tuple[BlamedQuery, ...] = ()
    """The worst of these queries."""

    @property
    def name(self) -> str:
        """The threshold, and its group in brackets if it has one."""
        return str(self.rule) if self.rule.group is None else f"{self.rule} [{self.rule.group}]"

    @property
    def miss(self) -> float:
        """The amount by which the limit is missed; 0 if the check passed."""
        if self.passed:
            return 0.0
        if self.bound is None:
            return abs(self.value - self.rule.limit)
        return self._limited_change(self.bound) - self.rule.limit

    @property
    def reason(self) -> str:
        """The result of the check in a sentence."""
        return self._value_reason() if self.difference is None else self._change_reason()

    @property
    def doubt(self) -> str:
        """What a passed check does not rule out: a change above the limit that may be chance."""
        if not self.passed or self.difference is None:
            return ""
        amount = self._limited_change(self.difference)
        if amount <= max(self.rule.limit, 0.0):
            return ""
        verb = "fell" if self.rule.kind == "max_drop" else "rose"
        return f"{self.rule.measure} {verb} by {self.shown(amount)}, which may be chance"

    def _value_reason(self) -> str:
        statement = f"{self.rule.measure} is {self.shown(self.value)}"
        if self.passed:
            return statement
        if not self.miss:
            return f"{statement}, equal to the limit"
        side = "below" if self.rule.kind == "min" else "above"
        return f"{statement}, {self.shown(self.miss)} {side} {plain_number(self.rule.limit)}"

    def _change_reason(self) -> str:
        if self.bound is None or self.method == "few":
            return self._few_queries_reason()
        rule, limited = self.rule, self._limited_change(self.bound)
        change, opposite = ("drop", "rise") if rule.kind == "max_drop" else ("rise", "drop")
        at_most = rule.strict
        if limited < 0:  # a drop of at least -0.1 is a rise of at most 0.1
            change, at_most = opposite, not at_most
        p = "" if self.p is None else f", p {probability(self.p)}"
        statement = (
            f"{self._movement}; a {change} of {'at most' if at_most else 'at least'} "
            f"{self.shown(abs(limited))} ({100 * rule.confidence:.15g}% confidence{p})"
        )
        if self.passed:
            return statement
        if not self.miss:
            return f"{statement}, equal to the limit"
        return f"{statement}, {self.shown(self.miss)} more than {plain_number(rule.limit)}"

    def _few_queries_reason(self) -> str:
        """Return the reason if too few queries differ for a test."""
        if not self.differing:
            return f"{self._movement}; no query differs from the baseline"
        if self.clusters is None:
            units = f"{self.differing:,} of {counted(self.n, 'query')}"
        else:
            units = f"{self.differing_clusters:,} of {counted(self.clusters, 'cluster')}"
        statement = f"{self._movement}; only {units} differ"
        if self.bound is None:
            return f"{statement}, too few for a test"
        change = "drop" if self.rule.kind == "max_drop" else "rise"
        if self.passed:
            return f"{statement}, too few to show a {change}"
        amount = self.shown(self._limited_change(self.bound))
        return f"{statement}, too few to rule out a {change} of {amount}"

    @property
    def _movement(self) -> str:
        if not self.difference:
            return f"{self.rule.measure} stayed at {self.shown(self.value)}"
        return (
            f"{self.rule.measure} {'rose' if self.difference > 0 else 'fell'} by "
            f"{self.shown(abs(self.difference))}, from "
            f"{self.shown(self.baseline)} to {self.shown(self.value)}"
        )

    def _limited_change(self, difference: float) -> float:
        """Return a difference as a drop or as a rise, whichever the rule limits."""
        return 0.0 - difference if self.rule.kind == "max_drop" else difference  # never −0

    def shown(self, value: float | None) -> str:
        """Format a number of this measure; a tiny one is not rounded to zero."""
        formatted = parse(self.rule.measure).format(value)
        return formatted if value is None else not_as_zero(value, formatted)

    @property
    def guilt(self) -> str:
        """A heading for the queries in `blamed`."""
        return _BLAMED_HEADINGS[self.rule.kind]

    def as_dict(self) -> dict[str, Any]:
        """Return the check as plain data; a key is absent if it does not apply."""
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
                "draws": self.draws,
                "differing": self.differing,
                "only_run": self.only_run,
                "only_baseline": self.only_baseline,
            }
        if self.clusters is not None:
            plain |= {"clusters": self.clusters, "differing_clusters": self.differing_clusters}
        if not self.passed:
            plain |= {
                "miss": self.miss,
                "to_blame": self.to_blame,
                "blamed": [
                    {name: value for name, value in asdict(query).items() if value is not None}
                    for query in self.blamed
                ],
            }
        return plain


MOST_BLAMED = 5
LEAST_QUERIES = 2
LEAST_COMPARED = 5
"""With fewer queries, no one-sided test can show a drop at 95% confidence."""


def check_rule(rule: Rule, scores: Scores, baseline: Scores | None) -> Check:
    """Check one rule; raise an error that names the rule if it cannot be checked.

    `baseline` is required if the rule compares with a baseline.
    """
    measure, table = parse(rule.measure), scores.table
    members = None if rule.field is None else _group_members(scores.queries, rule)
    if members is not None:
        table = select_queries(table, members)
    if not rule.compares:
        return _check_value(rule, table, measure)
    assert baseline is not None
    baseline_table = baseline.table
    if members is not None:
        baseline_table = select_queries(baseline_table, members)
    return _check_change(rule, pair(baseline_table, table, measure), table)


def _group_members(queries: pl.DataFrame, rule: Rule) -> pl.Series:
    """Return the ids of the queries in the group of a rule; labels are compared as text."""
    assert rule.field is not None
    try:
        query_groups = list(group_queries(queries, [rule.field]))
    except InputError as error:
        error.path, error.field = rule.path, rule.key
        raise
    by_label: dict[str | None, pl.Series] = {
        pl.select(labels[0].cast(pl.String)).item(): members for labels, members in query_groups
    }
    if rule.value not in by_label:
        values = ", ".join(repr(label) for label in by_label if label is not None)
        raise rule.error(
            f"no query of gold has {rule.field} {rule.value!r}",
            f"the values are {values}" if values else f"no query has a value of {rule.field}",
        )
    return by_label[rule.value]


def _check_value(rule: Rule, table: ScoreTable, measure: Measure) -> Check:
    sample = Sample.of(table, measure)
    value = _require_value(rule, sample.n, sample.value)
    passed = rule.holds(value)
    if passed:
        return Check(rule, passed, value, sample.n)
    rows = table.frame.filter(pl.col(measure.name).is_not_null())
    if measure.declaration.combine == "sum":  # every query adds to a sum that is too large
        contributes = np.ones(sample.values.size, np.bool_)
    else:
        contributes = np.array([not rule.holds(one) for one in sample.values.tolist()])
    worst = _worst(sample.values if rule.kind == "min" else -sample.values, contributes)
    return Check(
        rule,
        passed,
        value,
        sample.n,
        to_blame=int(np.count_nonzero(contributes)),
        blamed=tuple(
            BlamedQuery(rows["query_id"][row], float(sample.values[row])) for row in worst
        ),
    )


def _check_change(rule: Rule, both: Pair, table: ScoreTable) -> Check:
    if both.clusters is not None and both.units < LEAST_COMPARED:
        raise rule.error(
            f"the queries with a value for {rule.measure} are only "
            f"{counted(both.units, 'cluster')}",
            f"this threshold needs at least {LEAST_COMPARED} clusters",
        )
    value = _require_value(rule, both.n, both.b.value, LEAST_COMPARED)
    baseline = _require_value(rule, both.n, both.a.value, LEAST_COMPARED)
    (inference,) = infer([both], confidence=rule.two_sided)
    interval = inference.interval
    bound = rule.bound(interval)
    is_same = not both.n_differing
    if bound is None and (interval.method != "few" or (rule.strict and not is_same)):
        raise rule.error(
            f"the difference of {rule.measure} over {counted(both.n, 'query')} "
            "has no confidence bound",
            "use another measure, or more queries",
        )
    passed = is_same or bound is None or rule.holds_at(bound)
    only_run = table.frame[rule.measure].count() - both.n
    gains = both.value_differences if rule.kind == "max_drop" else -both.value_differences
    worst = [] if passed else _worst(gains, gains < 0)
    return Check(
        rule,
        passed,
        value,
        both.n,
        baseline=baseline,
        difference=value - baseline,
        bound=bound,
        method=interval.method,
        p=rule.p(inference),
        draws=inference.draws,
        differing=both.n_differing,
        clusters=None if both.clusters is None else both.units,
        differing_clusters=None if both.clusters is None else both.n_units_differing,
        only_run=only_run,
        only_baseline=both.left_out - only_run,
        to_blame=0 if passed else int(np.count_nonzero(gains < 0)),
        blamed=tuple(
            BlamedQuery(both.query_ids[row], float(both.b.values[row]), float(both.a.values[row]))
            for row in worst
        ),
    )


def _require_value(rule: Rule, n: int, value: float | None, least: int = LEAST_QUERIES) -> float:
    if n < least:
        raise rule.error(
            f"only {counted(n, 'query')} {'has' if n == 1 else 'have'} a value for {rule.measure}",
            f"this threshold needs at least {least} queries with a value",
        )
    if value is None:
        raise rule.error(
            f"{rule.measure} has no value", "its denominator is 0; check that gold is not empty"
        )
    return value


def _worst(order: Floats, contributes: Flags) -> list[int]:
    """Return the rows with the lowest values among those that contribute; ties keep their order."""
    rows = np.flatnonzero(contributes)
    worst: list[int] = rows[np.argsort(order[rows], kind="stable")][:MOST_BLAMED].tolist()
    return worst
