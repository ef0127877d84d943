"""The verdict of a gate: each threshold as a bullet chart, and the reasons for failures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from karat.evaluation.gate_checks import Check
from karat.evaluation.thresholds import Rule, plain_number
from karat.evaluation.verdict import Verdict
from karat.format import probability
from karat.report.cells import declaration_of
from karat.report.documents.verdict import query_texts
from karat.report.page.model import Page
from karat.report.page.sections.interval_plot import axis_labels, axis_ticks
from karat.report.sheet import Sheet

_KINDS = {
    ("min", True): "must be at least",
    ("min", False): "must be above",
    ("max", True): "must be at most",
    ("max", False): "must be below",
    ("max_drop", True): "may drop at most",
    ("max_rise", True): "may rise at most",
}


@dataclass(frozen=True)
class BulletTick:
    """A tick of the axis, in percent of the width."""

    x: float
    label: str
    anchor: str
    """start, middle or end: a label near an edge does not leave the picture."""


@dataclass(frozen=True)
class Bullet:
    """A value, its limit, and the side of the limit that fails; in percent of the width."""

    value: float
    low: float | None
    high: float | None
    """The interval of the value, or the range from the change to its confidence bound."""
    bound: float | None
    limit: BulletTick
    fail_start: float
    fail_width: float
    ticks: list[BulletTick]
    description: str


@dataclass(frozen=True)
class Fact:
    """A number with its name."""

    label: str
    text: str
    value: float | None = None
    """All digits."""


@dataclass(frozen=True)
class WorstQuery:
    """A query that contributes to a failure."""

    query_id: str
    text: str
    change: str


@dataclass(frozen=True)
class CheckView:
    """One threshold and its outcome."""

    passed: bool
    requirement: str
    facts: list[Fact]
    decided: str
    reason: str
    bullet: Bullet
    queries_title: str
    queries: list[WorstQuery]


@dataclass(frozen=True)
class GateView:
    """What the section shows; failed thresholds come first."""

    passed: bool
    outcome: str
    checks: list[CheckView]
    notes: Sequence[str]


def gate_view(page: Page) -> GateView:
    """Return what the section of a page with a verdict shows."""
    verdict = page.verdict
    assert verdict is not None
    sheet = page.sheets[-1]
    texts = query_texts(verdict)
    checks = sorted(verdict.checks, key=lambda check: check.passed)
    return GateView(
        passed=verdict.passed,
        outcome=_outcome(verdict),
        checks=[_check_view(check, sheet, texts) for check in checks],
        notes=verdict.remarks,
    )


def _outcome(verdict: Verdict) -> str:
    n = len(verdict.checks)
    if not verdict.passed:
        return f"{len(verdict.failures):,} of {n:,} threshold{'' if n == 1 else 's'} not met"
    if n == 1:
        return "the threshold is met"
    return "both thresholds are met" if n == 2 else f"all {n:,} thresholds are met"


def _check_view(check: Check, sheet: Sheet, texts: dict[str, str]) -> CheckView:
    queries = [
        WorstQuery(
            query.query_id,
            texts.get(query.query_id, ""),
            ("" if query.baseline is None else f"{check.shown(query.baseline)} → ")
            + check.shown(query.value),
        )
        for query in check.blamed
    ]
    title = check.guilt.capitalize()
    if check.to_blame > len(check.blamed):
        title += f" ({len(check.blamed):,} of {check.to_blame:,})"
    return CheckView(
        passed=check.passed,
        requirement=requirement(check.rule, sheet.label(check.rule.measure)),
        facts=_facts(check),
        decided=_decided(check.rule),
        reason=f"{check.reason}.",
        bullet=_bullet(check, sheet),
        queries_title=title,
        queries=queries,
    )


def requirement(rule: Rule, label: str) -> str:
    """Return a threshold as a sentence.

    >>> requirement(Rule("RR@10", "max_drop", 0.02), "RR@10")
    'RR@10 may drop at most 0.02'
    """
    words = [label, _KINDS[rule.kind, rule.inclusive], plain_number(rule.limit)]
    if unit := declaration_of(rule.measure).unit:
        words.append(unit)
    if rule.field is not None:
        words.append(f"for queries with {rule.field} = {rule.value}")
    return " ".join(words)


def _decided(rule: Rule) -> str:
    """Return which number is compared with the limit."""
    if not rule.compares:
        return "The value alone is compared with the limit, not its interval."
    change = "drop" if rule.kind == "max_drop" else "rise"
    confidence = f"{100 * rule.confidence:.15g}% confidence"
    if rule.strict:
        return f"Passes only if a larger {change} is ruled out with {confidence} (strict)."
    return f"Fails only if a larger {change} is shown with {confidence}."


def _facts(check: Check) -> list[Fact]:
    facts = [Fact("value", check.shown(check.value), check.value)]
    if check.difference is not None:
        facts.append(Fact("baseline", check.shown(check.baseline), check.baseline))
        facts.append(Fact("change", _signed(check, check.difference), check.difference))
        if check.bound is not None:
            side = "upper" if _is_upper(check.rule) else "lower"
            label = f"{side} bound of the change"
            facts.append(Fact(label, _signed(check, check.bound), check.bound))
        if check.p is not None:
            facts.append(Fact("p", probability(check.p), check.p))
    return [*facts, Fact("queries", f"{check.n:,}")]


def _is_upper(rule: Rule) -> bool:
    """Return whether the upper end of the interval of the change is compared with the limit."""
    return (rule.kind == "max_drop") != rule.strict


def _signed(check: Check, number: float) -> str:
    sign = "+" if number > 0 else "−" if number < 0 else ""
    return sign + check.shown(abs(number))


def _bullet(check: Check, sheet: Sheet) -> Bullet:
    rule = check.rule
    fails_below = rule.kind in ("min", "max_drop")
    if check.difference is None:
        value, limit = check.value, rule.limit
        low, high = _interval(check, sheet)
        extra = []
    else:
        value = check.difference
        limit = -rule.limit if fails_below else rule.limit
        ends = [value, value if check.bound is None else check.bound]
        low, high = min(ends), max(ends)
        extra = [0.0]
    shown = [value, limit, *extra, *(end for end in (low, high) if end is not None)]
    span = max(shown) - min(shown) or abs(limit) or 1.0
    side = span if fails_below else -span
    shown += [limit - 0.3 * side, limit + 0.1 * side]  # both sides of the limit are visible
    if check.difference is None and declaration_of(rule.measure).bounded:
        shown = [min(max(end, 0.0), 1.0) for end in shown]
    ticks = axis_ticks(shown)

    def place(number: float) -> float:
        share = (number - ticks[0]) / (ticks[-1] - ticks[0])
        return round(min(max(100 * share, 0.0), 100.0), 2)

    has_range = low is not None and high is not None and low != high
    at_limit = place(limit)
    changes = check.difference is not None
    return Bullet(
        value=place(value),
        low=place(low) if has_range and low is not None else None,
        high=place(high) if has_range and high is not None else None,
        bound=place(check.bound) if changes and has_range and check.bound is not None else None,
        limit=_tick(at_limit, f"limit {_limit_text(check, limit)}"),
        fail_start=0.0 if fails_below else at_limit,
        fail_width=at_limit if fails_below else round(100 - at_limit, 2),
        ticks=[_tick(place(tick), text) for tick, text in axis_labels(ticks)],
        description=_description(check, value, limit, fails_below=fails_below),
    )


def _interval(check: Check, sheet: Sheet) -> tuple[float | None, float | None]:
    """Return the interval of a value over all queries, if it was computed."""
    if check.rule.field is not None or "low" not in sheet.summary.columns:
        return None, None
    for row in sheet.summary.iter_rows(named=True):
        if row["measure"] == check.rule.measure:
            return row["low"], row["high"]
    return None, None


def _limit_text(check: Check, limit: float) -> str:
    text = plain_number(abs(limit) if check.difference is not None else limit)
    if check.difference is None or not limit:
        return text
    return f"{'−' if limit < 0 else '+'}{text}"


def _tick(x: float, label: str) -> BulletTick:
    anchor = "start" if x < 12 else "end" if x > 88 else "middle"
    return BulletTick(x, label, anchor)


def _description(check: Check, value: float, limit: float, *, fails_below: bool) -> str:
    is_change = check.difference is not None
    number = _signed(check, value) if is_change else check.shown(value)
    noun = "change" if is_change else "value"
    side = "below" if fails_below else "above"
    return (
        f"{noun} {number}, limit {_limit_text(check, limit)}, fails {side} the limit: "
        f"{'passed' if check.passed else 'failed'}"
    )
