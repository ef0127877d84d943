"""The line that states which run is best, and whether its lead is significant."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import karat
from karat.report.headline import of_comparison, of_scores
from support.effort import examples

GOLD = {f"q{at:02}": ["a"] for at in range(12)}


def run(*ranks):
    """Return a run in which the relevant item has these ranks, repeated for all queries."""
    ranked = zip(GOLD, ranks * 12, strict=False)
    return {query: [*(f"x{i}" for i in range(1, rank)), "a"] for query, rank in ranked}


def headline(runs, measure="RR", **options):
    return of_comparison(karat.compare(GOLD, runs, measure, **options).sheet(moved=0))


def test_significant_lead_is_real_and_any_other_may_be_chance():
    assert headline({"old": run(2), "new": run(1)}) == (
        "new is best by RR: its lead on old, +0.5000, is real (p 0.0005)"
    )
    assert headline({"new": run(1), "old": run(2)}).startswith(
        "new is best by RR: its lead on old, +"
    )
    close = {"old": run(2), "new": run(1, *[2] * 11)}
    assert (
        headline(close) == "new is best by RR: its lead on old, +0.0417, may be chance (p 1.0000)"
    )


def test_best_run_is_compared_with_all_others():
    runs = {"bad": run(9), "old": run(2), "new": run(1)}
    assert headline(runs) == "new is best by RR: its lead is real on each of the 2 others"
    runs["close"] = run(*[1] * 11, 2)
    assert headline(runs) == (
        "new is best by RR: its lead on close, +0.0417, may be chance (p Holm 1.0000); it is real "
        "on 2 of 3 others"
    )


def test_best_run_is_compared_with_the_baseline_only():
    runs = {"old": run(2), "close": run(*[1] * 11, 2), "new": run(1)}
    assert headline(runs, baseline="old") == (
        "new is best by RR: its lead on old, +0.5000, is real (p Holm 0.0010)"
    )
    assert headline(runs, baseline="new") == (
        "new is best by RR: its lead on close, +0.0417, may be chance (p Holm 1.0000); it is real "
        "on 1 of 2 others"
    )


def test_equally_good_runs_are_all_named():
    assert (
        headline({"old": run(2), "new": run(2)})
        == "old and new are best by RR, with the same value"
    )
    many = {f"run{at}": run(2) for at in range(5)}
    assert headline(many) == "run0, run1, run2 and 2 more are best by RR, with the same value"


def test_lower_values_are_better_for_some_measures():
    assert headline({"old": run(2), "new": run(1)}, "FirstRelevant").startswith(
        "new is best by FirstRelevant: its lead on old, -1"
    )


@pytest.mark.filterwarnings("ignore::karat.errors.KaratWarning")  # about an id not in the run
def test_missing_values_and_tests_are_reported():
    nothing = {query: ["x"] for query in GOLD}
    runs = {"old": nothing, "new": nothing}
    assert headline(runs, "FirstRelevant") == "no query has a value of FirstRelevant"
    assert headline(runs | {"new": run(1)}, "FirstRelevant") == (
        "new is best by FirstRelevant: its lead on old was not tested"
    )


def test_lead_that_common_queries_do_not_confirm_is_reported():
    """Over all its queries b is better, but not over the queries of both runs."""
    b = {query: run(2)[query] for query in list(GOLD)[3::4]}
    a = run(9, 9, 9, 1)
    assert headline({"a": a, "b": b}, conventions={"missing": "skip"}) == (
        "b is best by RR: its lead on a does not hold on the queries that both have a value for"
    )


def test_scores_without_a_comparison_make_no_claim_of_significance():
    sheets = [karat.evaluate(GOLD, run(rank), "RR").sheet(intervals=False) for rank in (1, 2)]
    assert of_scores(sheets[:1]) == "run: RR 1.0000"
    named = karat.Evaluator(GOLD, "RR").all({"new": run(1), "old": run(2)})
    sheets = [score.sheet(intervals=False) for score in named]
    assert of_scores(sheets) == (
        "new is best by RR: 1.0000; karat compare tells whether that is real"
    )


@examples(15, 150)
@given(
    st.lists(
        st.lists(st.integers(1, 3), min_size=12, max_size=12).map(tuple), min_size=2, max_size=4
    ),
    st.sampled_from([None, "run0"]),
)
def test_headline_agrees_with_the_pairs(ranks, baseline):
    runs = {f"run{at}": run(*own) for at, own in enumerate(ranks)}
    comparison = karat.compare(GOLD, runs, "RR", baseline=baseline)
    line = of_comparison(comparison.sheet(moved=0))
    values = {score.name: score["RR"] for score in comparison.scores}
    leaders = [name for name, value in values.items() if value == max(values.values())]
    if len(leaders) > 1:
        assert line.startswith(leaders[0])
        assert line.endswith(" are best by RR, with the same value")
        return
    (leader,) = leaders
    assert line.startswith(f"{leader} is best by RR: its lead ")
    pairs = (
        combinations(runs, 2) if baseline is None else [("run0", b) for b in runs if b != "run0"]
    )
    compared = [pair for pair in pairs if leader in pair]
    rows = {(row["a"], row["b"]): row for row in comparison.pairs.to_dicts()}
    beaten = sum(rows[pair]["p_corrected"] < 0.05 for pair in compared)
    if beaten == len(compared):
        assert "is real" in line
        assert "chance" not in line
    else:
        assert "may be chance" in line
        assert len(compared) == 1 or f"real on {beaten or 'none'} of {len(compared)} others" in line


@pytest.mark.parametrize("options", [{}, {"baseline": "old"}])
def test_marks_show_what_is_better(options):
    timed = {
        name: [
            {"query_id": query, "results": ["a"], "latency_ms": {"total": ms + at}}
            for at, query in enumerate(GOLD)
        ]
        for name, ms in (("old", 5.0), ("slow", 50.0))
    }
    text = str(karat.compare(GOLD, timed, ["latency.mean", "RR"], **options))
    assert "▼ +45.00" in text
    assert "\n▲ better, ▼ worse: p < 0.05\n" in text
    same = str(karat.compare(GOLD, {"old": run(1), "new": run(1)}, "RR", **options))
    assert "▲" not in same
    assert "▼" not in same


def test_groups_are_marked_by_their_own_p():
    gold = [
        {"query_id": query, "kind": ["even", "odd"][at % 2], "relevant": ["a"]}
        for at, query in enumerate([f"q{at:02}" for at in range(24)])
    ]
    old = {f"q{at:02}": ["x", "a"] for at in range(24)}
    new = {f"q{at:02}": ["a"] if at % 2 else ["x", "a"] for at in range(24)}
    text = str(karat.compare(gold, {"old": old, "new": new}, "RR", by="kind"))
    table = text.split("new − old by kind\n")[1].split("\n\n")[0].splitlines()
    assert [" ▲ " in line for line in table] == [False, False, True]
    assert "▲ better, ▼ worse: p Holm < 0.05\n" in text
