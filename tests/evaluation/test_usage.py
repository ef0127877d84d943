"""What a run took: the figures of latency and cost, beside what plain loops say."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import karat
from karat.data import Run
from karat.evaluation.spending import spending
from karat.report.load import load, loaded
from oracles import usage as usage_oracle

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
    lambda held: [{"query_id": f"q{at}", "results": [], **line} for at, line in enumerate(held)]
)


@given(run=runs, chance=st.randoms(use_true_random=False))
@settings(max_examples=200, deadline=None)
def test_times_are_those_of_plain_loops(run, chance):
    chance.shuffle(run)
    told = spending(Run.of(run)).times
    held = {}
    for line in run:
        for stage, ms in line["latency_ms"].items():
            held.setdefault(stage, []).append(ms)
    order = sorted(held, key=lambda stage: (stage != "total", stage.encode()))
    assert [each.stage for each in told] == order
    for each in told:
        ms = held[each.stage]
        assert each.n == len(ms)
        assert (each.mean, each.max) == (math.fsum(ms) / len(ms), max(ms))
        for share in (50, 90, 99):
            wanted = float(np.percentile(ms, share))
            assert math.isclose(getattr(each, f"p{share}"), wanted, rel_tol=1e-12)


def taken(calls):
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


@given(run=runs, chance=st.randoms(use_true_random=False))
@settings(max_examples=200, deadline=None)
def test_costs_are_those_of_plain_loops(run, chance):
    every = [call for line in run for call in line["calls"]]
    chance.shuffle(run)
    told = spending(Run.of(run)).as_dict().get("cost")
    if not every:
        assert told is None
        return
    for plural, name in (("stages", "stage"), ("models", "model")):
        names = sorted({call.get(name) for call in every} - {None}, key=str.encode)
        names += [None] * any(name not in call for call in every)
        wanted = [
            {name: each} | taken([call for call in every if call.get(name) == each])
            for each in names
        ]
        assert told[plural] == wanted
    whole = taken(every)
    usd = whole.pop("usd")
    assert {name: told[name] for name in whole} == whole
    assert (told["usd"] is None) == (usd is None)
    assert usd is None or math.isclose(told["usd"], usd, rel_tol=1e-12)
    costs = [usage_oracle.cost(line["calls"], None, None) for line in run]
    known = [usd for usd in costs if usd is not None]
    assert told["n"] == len(known)
    assert told["per_query"] == (math.fsum(known) / len(known) if known else None)


@given(run=runs)
@settings(deadline=None)
def test_the_outcome_of_queries_is_counted(run):
    told = spending(Run.of(run)).as_dict()["run"]
    failed = Counter(line["error"]["type"] for line in run if "error" in line)
    again = [
        line
        for line in run
        if line.get("attempts", 1) > 1 or line.get("error", {}).get("attempts", 1) > 1
    ]
    assert told == {
        "queries": len(run),
        "answered": len(run) - failed.total(),
        "failed": failed,
        "retried": len(again),
        "varied": sum(line.get("varied", False) for line in run),
    }


@given(run=runs)
@settings(deadline=None)
def test_measures_over_the_same_queries_say_the_same_to_the_bit(run):
    spent, gold = spending(Run.of(run)), {line["query_id"]: ["a"] for line in run}
    for each in spent.times:
        for how in ("mean", "p50", "p90", "p99", "max"):
            name = karat.measures.parse(f'latency.{how}(stage="{each.stage}")').name
            assert karat.evaluate(gold, run, name)[name] == getattr(each, how)
    if spent.costs is not None:
        scores = karat.evaluate(gold, run, ["cost.mean", "cost.sum"])
        assert scores["cost.mean"] == spent.costs.per_query
        if not spent.costs.whole.unpriced:
            assert scores["cost.sum"] == spent.costs.whole.usd


def timed(n, **more):
    return [
        {"query_id": f"q{at}", "results": [], "latency_ms": {"total": float(at)}} | more
        for at in range(n)
    ]


@pytest.mark.parametrize(("n", "marked"), [(99, True), (100, False)])
def test_a_99th_percentile_of_few_is_marked(n, marked):
    spent = spending(Run.of(timed(n)))
    (row,) = [line for line in str(spent).splitlines() if line.startswith("total")]
    assert row.split()[-2].endswith("*") == marked
    assert ("* p99 of fewer than 100 samples" in str(spent)) == marked
    assert ("note" in spent.as_dict()["latency"]["stages"]["total"]) == marked


def test_what_is_shown_reads_as_one_page():
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
    assert str(spending(run)).splitlines() == [
        "hybrid: 3 queries, 1 failed (1 Timeout), 2 asked again",
        "",
        "latency [ms]  n  mean   p50   p90    p99   max",
        "total         1  8.00  8.00  8.00  8.00*  8.00",
        "embed         1  2.00  2.00  2.00  2.00*  2.00",
        "* p99 of fewer than 100 samples",
        "asked 8, then 2 at a time, at most 5 begun a second",
        "",
        "stage   model  calls  tokens in  out      USD",
        "embed   e          2      2,000    –  0.00400",
        "rerank  –          1          –    –        –",
        "all                3      2,000    –  0.00400",
        "0.00200 USD a query (of the 2 that are known)",
        "1 call without a price or its tokens, in no sum",
        "prices that calls did not bring: a list 1.0",
    ]


def test_no_line_is_wider_than_a_terminal_and_none_moves_its_cursor():
    name = "a\x1b[2J very long name " * 9
    call = {"stage": name, "model": name, "prompt_tokens": 2**53 - 1, "price_in": 9.0}
    run = Run.of(timed(3, calls=[call], error={"type": name}), name=name)
    run.settings.update(prices=name, jobs=3)
    shown = str(spending(run))
    assert "\x1b" not in shown
    assert max(map(len, shown.splitlines())) <= 80


@pytest.mark.parametrize(
    ("told", "sentence"),
    [
        ({}, None),
        ({"jobs": 1}, "asked 1 at a time"),
        ({"jobs": 8, "rate": 2.5}, "asked 8 at a time, at most 2.5 begun a second"),
        ({"jobs": [32, 4], "rate": [9, 1]}, "asked 32, then 4 at a time, at most 9, then 1 begun"),
        ({"jobs": "many"}, None),
        ({"jobs": True, "rate": {}}, None),
    ],
)
def test_the_load_is_said_in_words(told, sentence):
    said = load(told)
    assert said == sentence or said.startswith(sentence)
    several = told.get("jobs") in (8, [32, 4])
    assert loaded(told) == (said if several else None)


def test_where_prices_come_from_is_said_only_where_they_may_have_been_looked_up():
    def told(**call):
        run = Run.of([{"query_id": "q", "results": [], "calls": [{"model": "m"} | call]}])
        run.settings["prices"] = "a list 1.0"
        return "prices" in spending(run).as_dict()["cost"]

    assert told(prompt_tokens=5, price_in=0.1, price_out=0.2)
    assert told(prompt_tokens=5)
    assert not told(prompt_tokens=5, price_per_1k=0.1)
    assert not told(price_per_call=0.1)


@pytest.mark.parametrize(
    ("asked", "call", "said"),
    [
        ({"jobs": 8}, {"model": "m"}, True),
        ({"jobs": 8, "prices": "a list 1.0"}, {"model": "m"}, False),
        ({}, {"model": "m"}, False),  # somebody else asked
        ({"jobs": 8}, {"stage": "rerank"}, False),
        ({"jobs": 8}, {"model": "m", "price_per_call": 1.0}, False),
    ],
)
def test_how_to_get_prices_is_said_where_that_may_help(asked, call, said):
    run = Run.of([{"query_id": "q", "results": [], "calls": [call]}])
    run.settings.update(asked)
    assert ("pip install 'karat[live]'" in str(spending(run))) == said
