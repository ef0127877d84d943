"""The section of a gate: thresholds in words, and what bullet charts show."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

import karat
from karat.evaluation.thresholds import Rule
from karat.report.options import ReportOptions
from karat.report.page.build import verdict_page
from karat.report.page.sections.thresholds_section import Bullet, gate_view, requirement
from support.pages import FAIR, GOLD, GOOD, POOR, scored


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (Rule("RR@10", "min", 0.9), "RR@10 must be at least 0.9"),
        (Rule("RR@10", "min", 0.9, inclusive=False), "RR@10 must be above 0.9"),
        (Rule("latency.p90", "max", 350.0), "latency.p90 must be at most 350 ms"),
        (Rule("latency.p90", "max", 350.0, inclusive=False), "latency.p90 must be below 350 ms"),
        (Rule("RR@10", "max_drop", 0.02), "RR@10 may drop at most 0.02"),
        (Rule("latency.p90", "max_rise", 10.0), "latency.p90 may rise at most 10 ms"),
        (
            Rule("RR", "min", 0.5, field="category", value="billing"),
            "RR must be at least 0.5 for queries with category = billing",
        ),
    ],
)
def test_threshold_is_a_sentence(rule: Rule, words: str) -> None:
    assert requirement(rule, rule.measure) == words


def axis(bullet: Bullet) -> tuple[float, float]:
    """Return value and place per unit of the axis."""
    first, last = bullet.ticks[0], bullet.ticks[-1]
    low, high = (float(tick.label.replace("−", "-")) for tick in (first, last))
    assert (first.x, last.x) == (0.0, 100.0)
    return low, 100 / (high - low)


def test_bullet_of_a_value_shows_value_limit_and_interval() -> None:
    verdict = karat.gate(GOLD, FAIR, ["P@2 >= 0.1", "RR >= 0.9"])
    page = replace(scored(), verdict=verdict)
    view = gate_view(page)
    assert [check.passed for check in view.checks] == [False, True]
    for check, result in zip(view.checks, reversed(verdict.checks), strict=True):
        low, scale = axis(check.bullet)
        assert check.bullet.value == pytest.approx(scale * (result.value - low), abs=0.02)
        assert check.bullet.limit.x == pytest.approx(scale * (result.rule.limit - low), abs=0.02)
        assert check.bullet.fail_start == 0
        assert check.bullet.fail_width == check.bullet.limit.x
        assert (check.bullet.value < check.bullet.limit.x) == (not result.passed)
    assert view.outcome == "1 of 2 thresholds not met"


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("run", [GOOD, POOR])
def test_bullet_of_a_change_ends_at_the_bound_that_decides(run, strict: bool) -> None:
    rule = "RR max_drop 0.2" + (" strict" if strict else "")
    verdict = karat.gate(GOLD, run, [rule], baseline=FAIR)
    (check,) = verdict.checks
    (shown,) = gate_view(replace(scored(), verdict=verdict)).checks
    bullet = shown.bullet
    low, scale = axis(bullet)
    assert check.difference is not None
    assert bullet.value == pytest.approx(scale * (check.difference - low), abs=0.02)
    assert bullet.limit.x == pytest.approx(scale * (-0.2 - low), abs=0.02)
    if bullet.bound is not None and check.bound is not None:
        assert bullet.bound == pytest.approx(scale * (check.bound - low), abs=0.02)
        assert (bullet.bound < bullet.limit.x) == (not check.passed)
    facts = {fact.label: fact.value for fact in shown.facts}
    assert facts["baseline"] == check.baseline
    assert facts["change"] == check.difference


def test_worst_queries_have_their_texts() -> None:
    gold = karat.Gold.of(
        judgments=GOLD, queries=[{"query_id": q, "text": f"What is {q}?"} for q in GOLD]
    )
    verdict = karat.gate(gold, POOR, ["RR >= 0.9"])
    (check,) = gate_view(replace(scored(), verdict=verdict)).checks
    assert [query.text for query in check.queries] == [
        f"What is {query.query_id}?" for query in verdict.checks[0].blamed
    ]
    assert check.queries_title == "Lowest queries (5 of 12)"


def test_baseline_is_a_run_of_the_page() -> None:
    verdict = karat.gate(GOLD, POOR, ["RR max_drop 0.1"], baseline=karat.Run.of(GOOD, name="old"))
    page = verdict_page(verdict, ReportOptions())
    assert [sheet.name for sheet in page.sheets] == ["old", "run"]
    assert page.baseline == 0
    assert json.dumps(gate_view(page).passed) == "false"
