"""Latency, cost and failures of a run, compared with plain loops."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import karat
from karat.data import Run
from karat.evaluation.usage import load, load_note, usage
from oracles import usage as usage_oracle
from support.effort import examples

STAGES = ["total", "rerank", "ж"]
times = st.dictionaries(st.sampled_from(STAGES), st.sampled_from([0.0, 0.1, 0.2, 3.7, 1e9]))
calls = st.fixed_dictionaries(
    {},
    optional={
        "stage": st.sampled_from(STAGES),
        "model": st.sampled_from(["m", "n"]),
        "prompt_tokens": st.sampled_from([0, 7, 10**9]),
        "completion_tokens": st.sampled_from([0, 3]),
        "price_in": st.sampled_from([0.0, 0.1, 0.7]),
        "price_per_call": st.sampled_from([0.1, 0.0000003]),
    },
)
lines = st.fixed_dictionaries(
    {"latency_ms": times, "calls": st.lists(calls, max_size=4)},
    optional={
        "error": st.fixed_dictionaries(
            {"type": st.sampled_from(["Timeout", "HTTP 500"]), "attempts": st.integers(1, 3)}
        ),
        "attempts": st.integers(1, 3),
        "varied": st.booleans(),
    },
)
runs = st.lists(lines, min_size=1, max_size=6).map(
    lambda run: [{"query_id": f"q{at}", "results": [], **line} for at, line in enumerate(run)]
)


def answered(run):
    """Return the queries that did not fail; the others are neither fast nor cheap."""
    return [line for line in run if "error" not in line]


@examples(50, 500)
@given(run=runs, chance=st.randoms(use_true_random=False))
def test_times_are_those_of_plain_loops(run, chance):
    chance.shuffle(run)
    summaries = usage(Run.of(run)).times
    ms_by_stage = {}
    for line in answered(run):
        for stage, ms in line["latency_ms"].items():
            ms_by_stage.setdefault(stage, []).append(ms)
    order = sorted(ms_by_stage, key=lambda stage: (stage != "total", stage.encode()))
    assert [summary.stage for summary in summaries] == order
    for summary in summaries:
        ms = ms_by_stage[summary.stage]
        assert summary.n == len(ms)
        assert (summary.mean, summary.max) == (math.fsum(ms) / len(ms), max(ms))
        for share in (50, 90, 99):
            expected = float(np.percentile(ms, share))
            assert math.isclose(getattr(summary, f"p{share}"), expected, rel_tol=1e-12)


def totals_of(calls):
    prices = [usage_oracle.price(call) for call in calls]
    known = [price for price in prices if price is not None]

    def tokens(name):
        counts = [call[name] for call in calls if name in call]
        return sum(counts) if counts else None

    return {
        "calls": len(calls),
        "prompt_tokens": tokens("prompt_tokens"),
        "completion_tokens": tokens("completion_tokens"),
        "usd": math.fsum(known) if known else None,
        "unpriced": prices.count(None),
    }


@examples(50, 500)
@given(run=runs, chance=st.randoms(use_true_random=False))
def test_costs_are_those_of_plain_loops(run, chance):
    every = [call for line in answered(run) for call in line["calls"]]
    chance.shuffle(run)
    cost = usage(Run.of(run)).as_dict().get("cost")
    if not every:
        assert cost is None
        return
    for plural, name in (("stages", "stage"), ("models", "model")):
        names = sorted({call.get(name) for call in every} - {None}, key=str.encode)
        names += [None] * any(name not in call for call in every)
        expected = [
            {name: value} | totals_of([call for call in every if call.get(name) == value])
            for value in names
        ]
        assert cost[plural] == expected
    whole = totals_of(every)
    usd = whole.pop("usd")
    assert {name: cost[name] for name in whole} == whole
    assert (cost["usd"] is None) == (usd is None)
    assert usd is None or math.isclose(cost["usd"], usd, rel_tol=1e-12)
    costs = [usage_oracle.cost(line["calls"], None, None) for line in answered(run)]
    known = [usd for usd in costs if usd is not None]
    assert cost["n"] == len(known)
    assert cost["per_query"] == (math.fsum(known) / len(known) if known else None)


@examples(30, 300)
@given(run=runs)
def test_failed_retried_and_varied_queries_are_counted(run):
    counts = usage(Run.of(run)).as_dict()["run"]
    failed = Counter(line["error"]["type"] for line in run if "error" in line)
    retried = [
        line
        for line in run
        if line.get("attempts", 1) > 1 or line.get("error", {}).get("attempts", 1) > 1
    ]
    assert counts == {
        "queries": len(run),
        "answered": len(run) - failed.total(),
        "failed": failed,
        "retried": len(retried),
        "varied": sum(line.get("varied", False) for line in run),
    }


@examples(40, 300)
@given(run=runs)
def test_measures_over_the_same_queries_are_equal_to_the_bit(run):
    spent, gold = usage(Run.of(run)), {line["query_id"]: ["a"] for line in run}
    expected = {
        karat.measures.parse(f'latency.{how}(stage="{summary.stage}")').name: getattr(summary, how)
        for summary in spent.times
        for how in ("mean", "p50", "p90", "p99", "max")
    }
    if spent.costs is not None:
        expected["cost.mean"] = spent.costs.per_query
        if not spent.costs.whole.unpriced:
            expected["cost.sum"] = spent.costs.whole.usd
    if expected:
        assert dict(karat.evaluate(gold, run, list(expected), fail_on_error=1)) == expected


def timed(n, **more):
    return [
        {"query_id": f"q{at}", "results": [], "latency_ms": {"total": float(at)}} | more
        for at in range(n)
    ]


@pytest.mark.parametrize(("n", "marked"), [(99, True), (100, False)])
def test_99th_percentile_of_few_samples_is_marked(n, marked):
    spent = usage(Run.of(timed(n)))
    (row,) = [line for line in str(spent).splitlines() if line.startswith("total")]
    assert row.split()[-2].endswith("*") == marked
    assert ("* p99 of fewer than 100 samples" in str(spent)) == marked
    assert ("note" in spent.as_dict()["latency"]["stages"]["total"]) == marked


def test_report_shows_latency_and_cost():
    call = {"stage": "embed", "model": "e", "prompt_tokens": 1000, "price_in": 0.002}
    run = Run.of(
        [
            {"query_id": "1", "results": [], "latency_ms": {"total": 8.0, "embed": 2.0}}
            | {"calls": [call, call]},
            {"query_id": "2", "results": [], "calls": [{"stage": "rerank"}], "attempts": 2},
            {"query_id": "3", "results": [], "error": {"type": "Timeout", "attempts": 3}},
        ],
        name="hybrid",
    )
    run.settings.update(jobs=[8, 2], rate=5, prices="a list 1.0")
    assert str(usage(run)).splitlines() == [
        "hybrid: 3 queries, 1 failed (1 Timeout), 2 retried",
        "",
        "latency [ms]  n  mean   p50   p90    p99   max",
        "total         1  8.00  8.00  8.00  8.00*  8.00",
        "embed         1  2.00  2.00  2.00  2.00*  2.00",
        "* p99 of fewer than 100 samples",
        "",
        "stage   model  calls  tokens in  tokens out      USD",
        "embed   e          2      2,000           –  0.00400",
        "rerank  –          1          –           –        –",
        "all                3      2,000           –  0.00400",
        "",
        "8 queries at a time, then 2, at most 5 started per second",
        "cost: $4,000.00 per 1M queries (of the 1 query whose cost is known)",
        "1 call without a price or token counts, not in any sum",
        "prices of calls that did not state one: a list 1.0",
    ]


def test_lines_fit_a_terminal_and_have_no_control_characters():
    name = "a\x1b[2J very long name " * 9
    call = {"stage": name, "model": name, "prompt_tokens": 2**53 - 1, "price_in": 9.0}
    run = Run.of(timed(3, calls=[call], error={"type": name}), name=name)
    run.settings.update(prices=name, jobs=3)
    shown = str(usage(run))
    assert "\x1b" not in shown
    assert max(map(len, shown.splitlines())) <= 80


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({}, None),
        ({"jobs": 1}, "1 query at a time"),
        ({"jobs": 8, "rate": 2.5}, "8 queries at a time, at most 2.5 started per second"),
        (
            {"jobs": [32, 4], "rate": [9, 1]},
            "32 queries at a time, then 4, at most 9, then 1",
        ),
        ({"jobs": "many"}, None),
        ({"jobs": True, "rate": {}}, None),
    ],
)
def test_load_is_described_in_words(settings, sentence):
    description = load(settings)
    assert description == sentence or description.startswith(sentence)
    several = settings.get("jobs") in (8, [32, 4])
    assert load_note(settings) == (description if several else None)


def test_source_of_prices_is_named_only_where_prices_may_have_been_looked_up():
    def is_named(**call):
        run = Run.of([{"query_id": "q", "results": [], "calls": [{"model": "m"} | call]}])
        run.settings["prices"] = "a list 1.0"
        return "prices" in usage(run).as_dict()["cost"]

    assert is_named(prompt_tokens=5, price_in=0.1, price_out=0.2)
    assert is_named(prompt_tokens=5)
    assert not is_named(prompt_tokens=5, price_per_1k=0.1)
    assert not is_named(price_per_call=0.1)


@pytest.mark.parametrize(
    ("settings", "call", "shown"),
    [
        ({"jobs": 8}, {"model": "m"}, True),
        ({"jobs": 8, "prices": "a list 1.0"}, {"model": "m"}, False),
        ({}, {"model": "m"}, False),  # not run by karat
        ({"jobs": 8}, {"stage": "rerank"}, False),
        ({"jobs": 8}, {"model": "m", "price_per_call": 1.0}, False),
    ],
)
def test_installing_prices_is_suggested_where_it_may_help(settings, call, shown):
    run = Run.of([{"query_id": "q", "results": [], "calls": [call]}])
    run.settings.update(settings)
    assert ("pip install 'karat[live]'" in str(usage(run))) == shown
