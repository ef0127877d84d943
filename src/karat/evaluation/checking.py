"""Hold scores against one rule after the other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from karat.arrays import Floats
from karat.errors import InputError, counted
from karat.evaluation.scores import Scores
from karat.measures import Measure, ScoreTable, parse
from karat.report.checks import Blamed, Check
from karat.stats.groups import groups, of_queries
from karat.stats.inference import infer
from karat.stats.pairs import Pair, pair
from karat.stats.rules import Rule
from karat.stats.samples import Sample

MOST_BLAMED = 5
LEAST_QUERIES = 2
LEAST_COMPARED = 5
"""No one-sided test at 95% can show a drop on fewer queries."""


@dataclass(frozen=True, eq=False)
class Checking:
    """The scores of a run, and those of its baseline where a rule needs them."""

    scores: Scores
    baseline: Scores | None

    def check(self, rule: Rule) -> Check:
        """Judge one rule; what cannot be judged is an error that says where the rule stands."""
        measure, table = parse(rule.measure), self.scores.table
        members = None if rule.field is None else _members(self.scores.queries, rule)
        if members is not None:
            table = of_queries(table, members)
        if not rule.compares:
            return _of_value(rule, table, measure)
        assert self.baseline is not None
        before = self.baseline.table
        if members is not None:
            before = of_queries(before, members)
        return _of_change(rule, pair(before, table, measure), table)


def _members(queries: pl.DataFrame, rule: Rule) -> pl.Series:
    """Return the queries of the rule's group; labels are compared as they are written."""
    assert rule.field is not None
    try:
        found = list(groups(queries, [rule.field]))
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
    blamed = tuple(Blamed(known["query_id"][at], float(sample.values[at])) for at in worst)
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
    gains = both.apart if rule.kind == "max_drop" else -both.apart
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
            Blamed(both.query_ids[at], float(both.b.values[at]), float(both.a.values[at]))
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


def _worst(order: Floats, wrong: NDArray[np.bool_]) -> list[int]:
    """Return where the lowest of the wrong ones stand; of equal ones, the first."""
    places = np.flatnonzero(wrong)
    worst: list[int] = places[np.argsort(order[places], kind="stable")][:MOST_BLAMED].tolist()
    return worst
