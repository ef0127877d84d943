"""The line that states which run is best, and whether its lead is significant."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import karat
from karat.report.comparison import ComparisonSheet
from karat.report.conclusion import comparison_conclusion, scores_conclusion
from karat.report.sheet import Sheet
from support.effort import examples

NEAR = {"old": (1, 2, 2), "close": (1, 2), "new": (2, 1, 1)}
"""Ranks that make the last run the best, but not by much."""
GOLD = {f"q{at:02}": ["a"] for at in range(12)}


def run(*ranks):
    """Return a run in which the relevant item has these ranks, repeated for all queries."""
    ranked = zip(GOLD, ranks * 12, strict=False)
    return {query: [*(f"x{i}" for i in range(1, rank)), "a"] for query, rank in ranked}


def conclusion(runs, measure="RR", **options):
    return comparison_conclusion(
        ComparisonSheet(karat.compare(GOLD, runs, measure, **options), n_moved=0)
    )


def headline(runs, measure="RR", **options):
    return conclusion(runs, measure, **options).text


def test_lead_over_one_run_is_significant_or_not():
    better = "new is significantly better than old: 0.500 RR ahead (p < 0.001)"
    assert headline({"old": run(2), "new": run(1)}) == better
    assert headline({"new": run(1), "old": run(2)}) == better
    assert headline({"old": run(1, 2), "new": run(2, 1, 1)}) == (
        "new leads old by 0.083 RR, but the gap is not significant (p = 0.688; with 12 queries, "
        "differences below 0.319 are easily missed)"
    )


def test_tone_follows_significance():
    assert conclusion({"old": run(2), "new": run(1)}).tone == "good"
    assert conclusion({"old": run(1, 2), "new": run(2, 1, 1)}).tone == "caution"
    assert conclusion({"old": run(2), "new": run(2)}).tone == "caution"


def test_few_differing_queries_are_counted():
    assert headline({"old": run(2), "new": run(1, *[2] * 11)}) == (
        "new leads old by 0.042 RR, but the gap is not significant "
        "(only 1 of 12 queries differs; p = 1.000)"
    )


def test_best_run_is_compared_with_all_others():
    runs = {"bad": run(9), "old": run(2), "new": run(1)}
    assert headline(runs) == "new has the best RR: significantly better than both others"
    runs["worse"] = run(9)
    assert headline(runs) == "new has the best RR: significantly better than all 3 others"
    runs["close"] = run(*[1] * 11, 2)
    assert headline(runs) == (
        "new has the best RR: significantly better than 3 of 4 others, but not than close "
        "(only 1 of 12 queries differs)"
    )
    runs = {name: run(*ranks) for name, ranks in NEAR.items()}
    assert headline(runs) == (
        "new has the best RR, but is not significantly better than either other "
        "(nearest: close, 0.083 ahead, corrected p = 1.000)"
    )


def test_lead_that_only_the_correction_makes_insignificant_is_stated():
    runs = {"old": run(*[1] * 6, *[2] * 6), "close": run(*[1] * 6, *[2] * 6), "new": run(1)}
    assert headline(runs) == (
        "new has the best RR, but is not significantly better than either other "
        "(nearest: old, 0.250 ahead, significant on its own (p 0.031), but not after Holm "
        "correction over 3 pairs (p 0.094))"
    )


def test_best_run_is_compared_with_the_baseline_only():
    runs = {"old": run(2), "close": run(*[1] * 11, 2), "new": run(1)}
    assert headline(runs, baseline="old") == (
        "new is significantly better than old: 0.500 RR ahead (p < 0.001)"
    )
    assert headline(runs, baseline="new") == (
        "new has the best RR: significantly better than 1 of 2 others, but not than close "
        "(only 1 of 12 queries differs)"
    )


def test_equally_good_runs_are_all_named():
    assert headline({"old": run(2), "new": run(2)}) == "old and new share the best RR"
    many = {f"run{at}": run(2) for at in range(5)}
    assert headline(many) == "run0, run1, run2 and 2 more share the best RR"


def test_lower_values_are_better_for_some_measures():
    assert headline({"old": run(2), "new": run(1)}, "FirstRelevant").startswith(
        "new is significantly better than old: 1 FirstRelevant ahead "
    )


@pytest.mark.filterwarnings("ignore::karat.errors.KaratWarning")  # about an id not in the run
def test_missing_values_and_tests_are_reported():
    nothing = {query: ["x"] for query in GOLD}
    runs = {"old": nothing, "new": nothing}
    assert headline(runs, "FirstRelevant") == "no query has a value of FirstRelevant"
    assert headline(runs | {"new": run(1)}, "FirstRelevant") == (
        "new has the best FirstRelevant; its difference from old was not tested"
    )


def test_lead_that_common_queries_do_not_confirm_is_reported():
    """Over all its queries b is better, but not over the queries of both runs."""
    b = {query: run(2)[query] for query in list(GOLD)[3::4]}
    a = run(9, 9, 9, 1)
    assert headline({"a": a, "b": b}, conventions={"missing": "skip"}) == (
        "b has the best RR, but not on the queries for which both it and a have a value"
    )


def test_scores_without_a_comparison_make_no_claim_of_significance():
    sheets = [Sheet(karat.evaluate(GOLD, run(rank), "RR"), intervals=False) for rank in (1, 2)]
    assert scores_conclusion(sheets[:1]).text == "run: RR 1.000 over 12 queries"
    named = karat.Evaluator(GOLD, "RR").all({"new": run(1), "old": run(2)})
    sheets = [Sheet(score, intervals=False) for score in named]
    assert scores_conclusion(sheets).text == (
        "new has the best RR: 1.000; karat compare shows whether the difference is significant"
    )


def test_run_without_an_interval_is_named_with_its_value_alone():
    one = Sheet(karat.evaluate({"q00": ["a"]}, run(2), "RR"))
    assert scores_conclusion([one]).text == "run: RR 0.500 over 1 query"


def test_numbers_of_queries_that_end_in_1_are_plural():
    gold = {f"q{at}": ["a"] for at in range(21)}
    text = scores_conclusion([Sheet(karat.evaluate(gold, gold, "RR"))]).text
    assert text.endswith(" over 21 queries")


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
    line = comparison_conclusion(ComparisonSheet(comparison, n_moved=0)).text
    values = {score.name: score["RR"] for score in comparison.scores}
    leaders = [name for name, value in values.items() if value == max(values.values())]
    if len(leaders) > 1:
        assert line.startswith(leaders[0])
        assert line.endswith(" share the best RR")
        return
    (leader,) = leaders
    pairs = (
        combinations(runs, 2) if baseline is None else [("run0", b) for b in runs if b != "run0"]
    )
    compared = [pair for pair in pairs if leader in pair]
    rows = {(row["a"], row["b"]): row for row in comparison.pairs.to_dicts()}
    beaten = sum(rows[pair]["p_corrected"] < 0.05 for pair in compared)
    if len(compared) == 1:
        (rival,) = set(compared[0]) - {leader}
        told = f"is significantly better than {rival}: " if beaten else f"leads {rival} by "
        assert line.startswith(f"{leader} {told}")
        denied = "the gap is not significant" in line or ", but not after " in line
        assert denied == (not beaten)
        return
    assert line.startswith(f"{leader} has the best RR")
    if beaten == len(compared):
        others = "both" if beaten == 2 else f"all {beaten}"
        assert line.endswith(f": significantly better than {others} others")
    elif beaten:
        assert (
            f": significantly better than {beaten} of {len(compared)} others, but not than " in line
        )
    else:
        assert (
            "not significantly better than either other" in line
            or f"not significantly better than any of the {len(compared)} others" in line
        )


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
    assert "+45.00 ▼" in text
    assert "\n▲ significantly better, ▼ significantly worse (p < 0.05)\n" in text
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
    assert [" ▲ " in line for line in table[:3]] == [False, False, True]
    assert table[3] == "▲ significantly better, ▼ significantly worse (p < 0.05)"
    assert "p of groups: corrected by Holm over 2 pairs and groups\n" in text
