"""Gates: each kind of rule at its limit, groups, baselines, and what cannot be judged."""

import json
import math
import re
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path

import polars as pl
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

import karat
from karat.config import Config
from karat.data.formats.native_run import TIMINGS
from karat.errors import KaratWarning, MeasureError
from karat.evaluation.thresholds import Rule
from karat.measures import parse
from karat.stats.inference import infer
from karat.stats.intervals import Interval
from karat.stats.pairs import pair
from oracles import sign_flips
from support.effort import examples
from support.errors import refused
from support.paths import SHARED_DATA

N = 20
GOLD = {f"q{at:02}": ["a"] for at in range(N)}
FIRST = {query: ["a", "x"] for query in GOLD}  # RR 1
SECOND = {query: ["x", "a"] for query in GOLD}  # RR 0.5


def mixed(first):
    """Return a run whose first queries have RR 1 and the others 0.5."""
    return {query: ["a", "x"] if at < first else ["x", "a"] for at, query in enumerate(GOLD)}


def timed(milliseconds):
    """Return a run with these latencies, one per query."""
    rows = [(query, "total", float(ms)) for query, ms in zip(GOLD, milliseconds, strict=True)]
    return karat.Run(
        karat.Run.of(FIRST).results, timings=pl.DataFrame(rows, schema=TIMINGS, orient="row")
    )


def only(verdict):
    (check,) = verdict.checks
    return check


# min and max


@pytest.mark.parametrize(
    ("threshold", "passed"),
    [
        ("RR >= 0.75", True),
        ("RR > 0.75", False),
        ("RR <= 0.75", True),
        ("RR < 0.75", False),
        ("RR >= 0.7500000000000001", False),
        ("RR > 0.7499999999999999", True),
        ("RR <= 0.7499999999999999", False),
        ("RR < 0.7500000000000001", True),
    ],
)
def test_value_is_compared_with_the_exact_limit(threshold, passed):
    verdict = karat.gate(GOLD, mixed(10), threshold)
    assert verdict.passed == bool(verdict) == passed
    assert only(verdict).value == 0.75
    assert only(verdict).n == N


def test_a_verdict_fails_if_one_check_of_several_does():
    verdict = karat.gate(GOLD, mixed(10), ["RR >= 0.7", "RR >= 0.8", "P@1 >= 0.5"])
    assert not verdict
    assert [check.passed for check in verdict.checks] == [True, False, True]
    assert [str(check.rule) for check in verdict.failures] == ["RR >= 0.8"]


def test_miss_and_lowest_queries_are_reported():
    gold = {f"q{at}": ["a"] for at in range(9)}
    ranks = [1, 1, 4, 2, 3, 5, 6, 1, 2]
    run = {
        query: [*(f"x{i}" for i in range(rank - 1)), "a"]
        for query, rank in zip(gold, ranks, strict=True)
    }
    check = only(karat.gate(gold, run, "RR >= 0.9"))
    value = math.fsum(1 / rank for rank in ranks) / 9
    assert check.miss == pytest.approx(0.9 - value)
    assert check.to_blame == 6  # all that are below the limit
    assert [(blamed.query_id, blamed.value) for blamed in check.blamed] == [
        ("q6", 1 / 6),
        ("q5", 1 / 5),
        ("q2", 1 / 4),
        ("q4", 1 / 3),
        ("q3", 1 / 2),
    ]
    assert check.reason == f"RR is {value:.3f}, {0.9 - value:.3f} below 0.9"


def test_the_highest_queries_are_to_blame_for_a_max():
    check = only(karat.gate(GOLD, timed(range(N)), "latency.p90 <= 10 ms"))
    assert not check.passed
    assert check.value == pytest.approx(17.1)
    assert [blamed.query_id for blamed in check.blamed] == ["q19", "q18", "q17", "q16", "q15"]
    assert check.to_blame == 9
    assert check.reason == "latency.p90 is 17.10, 7.10 above 10"


def test_all_queries_are_to_blame_for_a_sum():
    calls = [
        {"query_id": q, "results": [], "calls": [{"model": "m", "price_per_call": 0.1 + at / 100}]}
        for at, q in enumerate(GOLD)
    ]
    check = only(karat.gate(GOLD, calls, "cost.sum <= 3.5 USD"))
    assert not check.passed
    assert check.to_blame == N
    assert check.blamed[0].query_id == "q19"


def test_limit_missed_by_one_bit_is_shown_as_missed():
    check = only(karat.gate(GOLD, mixed(10), "RR >= 0.7500000000000001"))
    assert check.reason == "RR is 0.750, 1e-16 below 0.7500000000000001"
    check = only(karat.gate(GOLD, mixed(10), "RR > 0.75"))
    assert check.reason == "RR is 0.750, equal to the limit"


# max_drop and max_rise


def test_drop_of_all_queries_fails_in_both_modes():
    for mode in ("", " strict"):
        check = only(karat.gate(GOLD, SECOND, f"RR max_drop 0.4{mode}", baseline=FIRST))
        assert not check.passed
        assert (check.value, check.baseline, check.difference) == (0.5, 1.0, -0.5)
        assert check.bound == -0.5
        assert check.miss == pytest.approx(0.1)
        assert check.to_blame == N
        assert [(b.query_id, b.value, b.baseline) for b in check.blamed] == [
            (f"q0{at}", 0.5, 1.0) for at in range(5)
        ]


def test_a_drop_that_is_allowed_passes():
    for mode in ("", " strict"):
        assert karat.gate(GOLD, SECOND, f"RR max_drop 0.6{mode}", baseline=FIRST)
    assert karat.gate(GOLD, SECOND, "RR max_drop 0.5", baseline=FIRST)  # not under −0.5
    assert not karat.gate(GOLD, SECOND, "RR max_drop 0.5 strict", baseline=FIRST)  # nor above


def test_the_same_run_passes_even_strictly():
    assert karat.gate(GOLD, FIRST, "RR max_drop 0.001 strict", baseline=FIRST)
    assert karat.gate(GOLD, FIRST, "RR max_drop 0", baseline=FIRST)


def test_bound_at_the_limit_is_described_as_the_limit():
    check = only(karat.gate(GOLD, SECOND, "RR max_drop 0.5 strict", baseline=FIRST))
    assert not check.passed
    assert (check.miss, math.copysign(1, check.miss)) == (0, 1)
    assert check.reason.endswith(", equal to the limit")
    assert "a drop of at most 0.500 (95% confidence, p " in check.reason


@pytest.mark.parametrize("before", range(1, 11))
@pytest.mark.filterwarnings("ignore::karat.errors.KaratWarning")
def test_rounding_neither_fails_nor_passes_a_gate_at_its_limit(before):
    gold = {query: [f"a{at}" for at in range(10)] for query in GOLD}

    def finding(n):
        return {query: [f"a{at}" if at < n else f"x{at}" for at in range(10)] for query in GOLD}

    for fall in range(1, before + 1):  # 0.3 − 0.2 is not quite 0.1
        runs = {"run": finding(before - fall), "baseline": finding(before)}
        check = only(karat.gate(gold, thresholds=f"P@10 max_drop {fall / 10}", **runs))
        strict = only(karat.gate(gold, thresholds=f"P@10 max_drop {fall / 10} strict", **runs))
        assert (check.passed, strict.passed) == (True, False)
        assert check.bound == strict.bound == -fall / 10
        assert check.p == strict.p == 0.5


def test_a_rise_of_percentiles_to_the_limit_passes():
    after, before = timed([30.3] * 15 + [20.2] * 5), timed([10.1] * 15 + [20.2] * 5)
    check = only(karat.gate(GOLD, after, "latency.p50 max_rise 20.2 ms", baseline=before))
    assert check.method == "percentile"
    assert check.passed


def test_a_strict_gate_passes_with_a_remark_if_no_query_differs():
    verdict = karat.gate(GOLD, FIRST, "RR max_drop 0 strict", baseline=FIRST)
    check = only(verdict)
    assert check.passed
    assert (check.miss, check.differing, check.p) == (0, 0, None)
    assert check.reason == "RR stayed at 1.000; no query differs from the baseline"
    assert check.reason in " ".join(str(verdict).split())


@pytest.mark.parametrize("mode", ["", " strict"])
def test_a_change_over_fewer_than_5_queries_cannot_be_judged(mode):
    gold = dict(list(GOLD.items())[:4])
    with refused():
        karat.gate(gold, SECOND, f"RR max_drop 0.1{mode}", baseline=FIRST)
    gold = dict(list(GOLD.items())[:5])
    assert not karat.gate(gold, SECOND, f"RR max_drop 0.1{mode}", baseline=FIRST)


def test_queries_that_differ_by_rounding_alone_are_not_blamed():
    before = karat.evaluate(GOLD, FIRST, "RR")
    blurred = before.per_query.with_columns(pl.col("RR") + 1e-15)
    before = replace(before, table=replace(before.table, frame=blurred))
    check = only(karat.gate(GOLD, mixed(10), "RR max_drop 0", baseline=before))
    assert not check.passed
    assert check.to_blame == 10


def test_noise_passes_by_default_and_fails_strictly():
    fell, rose = mixed(N - 2), {**FIRST, "q00": ["x", "a"]}  # two fell, one rose
    assert karat.gate(GOLD, fell, "RR max_drop 0.01", baseline=rose)
    verdict = karat.gate(GOLD, fell, "RR max_drop 0.01 strict", baseline=rose)
    assert not verdict
    assert verdict.failures[0].to_blame == 2
    assert [blamed.query_id for blamed in verdict.failures[0].blamed] == ["q18", "q19"]


def test_a_rise_of_latency_is_mirrored():
    slow, fast = timed([30.0] * N), timed([10.0] * N)
    for mode in ("", " strict"):
        check = only(karat.gate(GOLD, slow, f"latency.mean max_rise 15 ms{mode}", baseline=fast))
        assert not check.passed
        assert (check.difference, check.bound, check.miss) == (20.0, 20.0, 5.0)
        assert check.blamed[0].baseline == 10.0
        assert karat.gate(GOLD, slow, f"latency.mean max_rise 25 ms{mode}", baseline=fast)
        assert karat.gate(GOLD, fast, f"latency.mean max_rise 0.1 ms{mode}", baseline=slow)


ends = st.tuples(st.floats(-1, 1), st.floats(-1, 1)).map(sorted)


@examples(50, 500)
@given(ends=ends, limit=st.floats(0, 1), strict=st.booleans())
def test_bound_decides_as_documented(ends, limit, strict):
    low, high = ends
    interval = Interval(low, high, "t")
    drop = Rule("RR", "max_drop", limit, strict=strict)
    rise = Rule("latency.mean", "max_rise", limit, strict=strict)
    assert drop.holds_at(drop.bound(interval)) == (low > -limit if strict else not high < -limit)
    assert rise.holds_at(rise.bound(interval)) == (high < limit if strict else not low > limit)


@examples(30, 300)
@given(
    pairs=st.lists(st.tuples(st.integers(1, 4), st.integers(1, 4)), min_size=5, max_size=9),
    limit=st.sampled_from([0.0, 0.05, 0.2, 0.5]),
    confidence=st.sampled_from([0.8, 0.95]),
    strict=st.booleans(),
)
def test_the_decision_is_that_of_the_one_sided_test(pairs, limit, confidence, strict):
    queries = [f"q{at:02}" for at in range(len(pairs))]
    gold = {query: ["a"] for query in queries}
    runs = [
        {
            query: [*(f"x{i}" for i in range(ranks[at] - 1)), "a"]
            for query, ranks in zip(queries, pairs, strict=True)
        }
        for at in (0, 1)
    ]
    threshold = f"RR max_drop {limit} confidence {confidence}" + " strict" * strict
    check = only(karat.gate(gold, runs[1], threshold, baseline=runs[0]))
    apart = [Fraction(1, b) - Fraction(1, a) for a, b in pairs]
    rose, fell = (sum(d * sign > 0 for d in apart) for sign in (1, -1))
    assert check.differing == rose + fell
    if 0.5 ** (rose + fell) >= 1 - confidence:  # even if all of them fell, it could be chance
        count, sign = (fell, -1) if strict else (rose, 1)
        share = scipy.stats.beta.ppf(confidence, count + 1, len(pairs) - count)
        assert (check.method, check.p) == ("few", None)
        assert check.bound == pytest.approx(sign * (1 if count == len(pairs) else share))
        assert check.passed == (check.bound > -limit or rose + fell == 0)
    else:
        allowed = -Fraction(str(limit))
        two_sided = sign_flips.p_of(apart, [Fraction(1)] * len(apart), allowed)
        is_shown = (sum(apart) / len(apart) > allowed) == strict
        p = two_sided / 2 if is_shown else 1 - two_sided / 2
        assert check.p == pytest.approx(float(p))
        assert check.passed == ((p < 1 - Fraction(str(confidence))) == strict)
        # A one-sided bound of 95% is an end of a two-sided interval of 90%.
        before, after = (karat.evaluate(gold, run, "RR").table for run in runs)
        (found,) = infer([pair(before, after, parse("RR"))], confidence=2 * confidence - 1)
        end = found.interval.low if strict else found.interval.high
        assert check.bound == pytest.approx(end, abs=1e-11)
    fallen = sorted(
        (1 / b - 1 / a, query) for query, (a, b) in zip(queries, pairs, strict=True) if b > a
    )
    if not check.passed:
        assert check.to_blame == len(fallen)
        assert [blamed.query_id for blamed in check.blamed] == [query for _, query in fallen[:5]]


# groups


def of_groups(**fields):
    return karat.Gold.of(
        [
            {"query_id": query, "relevant": ["a"], **{k: v(at) for k, v in fields.items()}}
            for at, query in enumerate(GOLD)
        ]
    )


def test_a_group_is_judged_by_its_own_queries():
    gold = of_groups(category=lambda at: "billing" if at < 10 else "shipping")
    thresholds = {
        "RR": ">= 0.7",
        "by": {"category": {"billing": {"RR": ">= 1"}, "shipping": {"RR": ">= 0.9"}}},
    }
    verdict = karat.gate(gold, mixed(10), thresholds)
    assert [(c.passed, c.value, c.n) for c in verdict.checks] == [
        (True, 0.75, 20),
        (True, 1.0, 10),
        (False, 0.5, 10),
    ]
    assert verdict.failures[0].name == "RR >= 0.9 [category=shipping]"
    assert verdict.failures[0].blamed[0].query_id == "q10"


def test_a_group_is_compared_with_the_same_group_of_the_baseline():
    gold = of_groups(category=lambda at: "old" if at < 10 else "new")
    thresholds = {
        "by": {"category": {name: {"RR": "max_drop 0.1 strict"} for name in ("old", "new")}}
    }
    verdict = karat.gate(gold, mixed(10), thresholds, baseline=FIRST)
    assert [(c.passed, c.difference, c.n) for c in verdict.checks] == [
        (True, 0.0, 10),
        (False, -0.5, 10),
    ]
    assert [c.only_baseline for c in verdict.checks] == [0, 0]


def test_groups_of_numbers_and_booleans_are_named_as_text():
    gold = of_groups(level=lambda at: at % 2, hard=lambda at: at < 10)
    thresholds = {"by": {"level": {"1": {"RR": ">= 1"}}, "hard": {"true": {"RR": ">= 1"}}}}
    assert [check.n for check in karat.gate(gold, FIRST, thresholds).checks] == [10, 10]


def test_unknown_group_is_refused_with_a_suggestion():
    gold = of_groups(category=lambda at: "billing")
    config = Config("k.toml", gate={"by": {"category": {"biling": {"RR": ">= 1"}}}})
    with refused(path="k.toml", field='gate.by.category."biling"."RR"') as error:
        karat.gate(gold, FIRST, config=config)
    assert "'biling'" in error.value.problem
    assert "'billing'" in error.value.hint
    config = Config("k.toml", gate={"by": {"categry": {"billing": {"RR": ">= 1"}}}})
    with refused(path="k.toml", field='gate.by.categry."billing"."RR"') as error:
        karat.gate(gold, FIRST, config=config)
    assert "'categry'" in error.value.problem
    assert "'category'" in error.value.hint


# baselines


@pytest.mark.parametrize("ending", ["json", "parquet"])
def test_saved_scores_are_a_baseline(tmp_path, ending):
    path = tmp_path / f"base.{ending}"
    karat.evaluate(GOLD, FIRST, ["RR", "P@1"]).write(path)
    verdict = karat.gate(GOLD, SECOND, "RR max_drop 0.4", baseline=path)
    assert only(verdict).difference == -0.5
    scores = karat.Scores.read(path)
    assert karat.gate(GOLD, SECOND, "RR max_drop 0.4", baseline=scores).as_dict() == (
        verdict.as_dict()
    )


@pytest.mark.parametrize("ending", ["json", "parquet", "jsonl", "run"])
def test_a_file_that_contains_a_run_is_scored(tmp_path, ending):
    path = tmp_path / f"base.{ending}"
    run = {query: {"a": 1.0, "x": 0.5} for query in GOLD}
    if ending == "json":
        path.write_text(json.dumps(run))
    elif ending == "parquet":
        karat.Run.of(run).results.write_parquet(path)
    else:
        karat.Run.of(run).write(path)
    assert only(karat.gate(GOLD, SECOND, "RR max_drop 0.4", baseline=path)).difference == -0.5


@pytest.mark.parametrize(
    ("made", "asked", "pattern"),
    [
        ({"conventions": {"missing": "skip"}}, {}, "missing=skip.*missing=zero"),
        ({"top_k": 5}, {}, "top_k=5.*top_k=None"),
        ({}, {"top_k": 5}, "top_k=None.*top_k=5"),
        ({"measures": "P@1"}, {}, "RR"),
    ],
)
def test_saved_scores_with_other_settings_are_refused(tmp_path, made, asked, pattern):
    path = tmp_path / "base.json"
    karat.evaluate(GOLD, FIRST, **{"measures": "RR"} | made).write(path)
    with refused(path=path, field="baseline") as error:
        karat.gate(GOLD, SECOND, "RR max_drop 0.4", baseline=path, **asked)
    assert re.search(pattern, error.value.problem)


def test_saved_scores_with_another_score_threshold_are_refused():
    run = {query: {"a": 2.0, "x": 1.0} for query in GOLD}
    baseline = karat.evaluate(GOLD, run, "RR", score_threshold=1.5)
    with refused(field="baseline") as error:
        karat.gate(GOLD, run, "RR max_drop 0.4", baseline=baseline)
    assert re.search(r"score_threshold=1\.5.*score_threshold=None", error.value.problem)


def test_saved_scores_of_documents_or_of_another_matching_rule_are_refused():
    gold = [{"query_id": q, "relevant": ["a"], "evidence": ["one two three"]} for q in GOLD]
    run = [
        {"query_id": q, "results": [{"id": "a", "doc_id": "a", "text": "one two three"}]}
        for q in GOLD
    ]
    documents = karat.evaluate(gold, run, "RR", level="doc")
    fuzzy = karat.Matching(fuzzy_threshold=0.9)
    texts = karat.evaluate(gold, run, ["RR", "evidence.RR"], matching=fuzzy)
    ids_only = karat.evaluate(gold, run, "RR")
    for threshold, baseline, pattern in (
        ("RR max_drop 0", documents, r"\bdoc\b.*\bitem\b"),
        ("evidence.RR max_drop 0", texts, r"0\.9.*0\.7"),
        ("evidence.RR max_drop 0", ids_only, r"evidence\.RR"),
    ):
        with refused(field="baseline") as error:
            karat.gate(gold, run, threshold, baseline=baseline)
        assert re.search(pattern, error.value.problem)
    # The matching rule matters only if a measure of texts is compared.
    assert karat.gate(gold, run, ["RR max_drop 0", "evidence.RR >= 1"], baseline=texts)


@pytest.mark.parametrize(
    ("threshold", "reason"),
    [
        ("RR max_drop 0.1", "RR rose by 0.500, from 0.500 to 1.000; a rise of at most 0.500"),
        ("RR max_drop 0.1 strict", "from 0.500 to 1.000; a rise of at least 0.500"),
    ],
)
def test_bound_on_the_good_side_is_described_as_such(threshold, reason):
    assert reason in only(karat.gate(GOLD, FIRST, threshold, baseline=SECOND)).reason


def test_bound_of_no_change_is_described_as_a_drop():
    rose = {query: SECOND[query] if at < 6 else FIRST[query] for at, query in enumerate(GOLD)}
    fell = {query: SECOND[query] if at >= 14 else FIRST[query] for at, query in enumerate(GOLD)}
    for mode, words in (("", "a rise of at most"), (" strict", "a drop of at most")):
        check = only(karat.gate(GOLD, fell, f"RR max_drop 0.3{mode}", baseline=rose))
        assert check.differing == 12
        assert check.reason.startswith(f"RR stayed at 0.850; {words} 0.")


def test_queries_in_only_one_of_the_two_runs_are_reported():
    skip = {"conventions": {"missing": "skip"}}
    run = {query: items for query, items in SECOND.items() if query != "q00"}
    before = {query: items for query, items in FIRST.items() if query > "q02"}
    verdict = karat.gate(GOLD, run, "RR max_drop 0.4", baseline=before, **skip)
    check = only(verdict)
    assert (check.n, check.only_run, check.only_baseline) == (17, 2, 0)
    remark = (
        "RR is compared over 17 queries; 2 more have a value only in the run, "
        "0 only in the baseline"
    )
    assert remark in verdict.remarks
    verdict = karat.gate(GOLD, before, "RR max_drop 0.4", baseline=run, **skip)
    assert (only(verdict).only_run, only(verdict).only_baseline) == (0, 2)
    assert verdict.passed
    end = "0 more have a value only in the run, 2 only in the baseline"
    assert any(remark.endswith(end) for remark in verdict.remarks)


def test_baseline_needs_only_the_measures_compared():
    thresholds = ["RR max_drop 0.1", "latency.p90 <= 350 ms"]
    assert karat.gate(GOLD, timed(range(N)), thresholds, baseline=FIRST)


def test_unused_baseline_is_reported():
    verdict = karat.gate(GOLD, FIRST, "RR >= 1", baseline="nowhere.run")
    assert verdict.baseline is None
    assert any(remark.startswith("the baseline was not used") for remark in verdict.remarks)


# what cannot be judged


@pytest.mark.parametrize(
    ("gold", "run", "threshold", "field", "value"),
    [
        (GOLD, FIRST, "RR max_drop 0.1", "'RR max_drop 0.1'", "max_drop"),
        ({"q1": ["a"]}, {"q1": ["a"]}, "RR >= 0", "'RR >= 0'", "1 query"),
        (GOLD, FIRST, "FirstRelevant(rel=2) >= 0", "'FirstRelevant(rel=2) >= 0'", "0 queries"),
        (GOLD, {"z": ["a"]}, "RR >= 0", "query_id", "'z'"),
    ],
)
def test_threshold_that_cannot_be_judged_is_an_error(gold, run, threshold, field, value):
    with refused(field=field) as error:
        karat.gate(gold, run, threshold)
    assert value in error.value.problem


def test_a_comparison_over_one_query_cannot_be_judged():
    with refused(field="'RR max_drop 0.1'") as error:
        karat.gate(
            GOLD,
            {"q00": ["a"], "q01": ["a"]},
            "RR max_drop 0.1",
            baseline={"q01": ["a"], "q02": ["a"]},
            conventions={"missing": "skip"},
        )
    assert "1 query" in error.value.problem


def test_maximum_has_no_bound_and_cannot_be_compared():
    before, after = timed(range(1, N + 1)), timed(range(N))
    with refused(field="'latency.max max_rise 1 ms'") as error:
        karat.gate(GOLD, after, "latency.max max_rise 1 ms", baseline=before)
    assert "20 queries" in error.value.problem


def test_value_with_a_denominator_of_zero_cannot_be_judged():
    gold = [{"query_id": q, "evidence": [" "]} for q in ("q1", "q2")]
    run = [{"query_id": q, "results": [{"text": "x"}]} for q in ("q1", "q2")]
    with pytest.warns(KaratWarning), refused(field="'evidence.recall@3 >= 0'") as error:
        karat.gate(gold, run, "evidence.recall@3 >= 0", conventions={"no_gold": "zero"})
    assert "evidence.recall@3" in error.value.problem
    assert "0 queries" not in error.value.problem  # both have a value


def test_an_unknown_measure_is_an_error():
    with refused(MeasureError, field="'nDGC >= 0.6'") as error:
        karat.gate(GOLD, FIRST, "nDGC >= 0.6")
    assert "'nDGC'" in error.value.problem


# configuration files and remarks


def test_without_thresholds_the_nearest_file_is_read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with refused(field="gate"):
        karat.gate(GOLD, FIRST)
    Path("karat.toml").write_text('[conventions]\nmissing = "skip"\n[gate]\nRR = "> 0.9"\n')
    run = {query: FIRST[query] for query in list(GOLD)[:10]}
    assert only(karat.gate(GOLD, run)).value == 1.0
    # With thresholds given, a file is read only if it is named.
    assert only(karat.gate(GOLD, run, "RR >= 0.1")).value == 0.5
    verdict = karat.gate(GOLD, run, "P@1 >= 0.1", config="karat.toml")
    assert [str(check.rule) for check in verdict.checks] == ["RR > 0.9", "P@1 >= 0.1"]
    verdict = karat.gate(GOLD, run, conventions={"missing": "zero"})
    assert only(verdict).value == 0.5
    verdict = karat.gate(GOLD, run, conventions=karat.Conventions())
    assert only(verdict).value == 0.5


def test_unanswered_queries_are_reported_by_a_passing_verdict():
    run = [{"query_id": "q00", "results": [], "error": {"type": "Timeout", "message": "m"}}]
    run += [{"query_id": q, "results": [{"id": "a"}]} for q in list(GOLD)[1:-2]]
    verdict = karat.gate(GOLD, run, "RR >= 0.5", fail_on_error=0.1)
    assert verdict.passed
    assert (verdict.failed, verdict.missing) == (1, 2)
    assert verdict.summary == (
        "run passed 1 threshold; 1 query that the retriever failed on and 2 queries not in the run"
    )
    assert "run: 1 query that the retriever failed on: scored as if nothing was retrieved" in (
        verdict.remarks
    )
    assert karat.gate(GOLD, FIRST, "RR >= 0.5").unanswered is None


def test_missing_queries_are_counted_for_latency_too():
    rows = [(query, "total", 1.0) for query in list(GOLD)[:10]]
    part = karat.Run.of({query: FIRST[query] for query in list(GOLD)[:10]})
    run = karat.Run(part.results, timings=pl.DataFrame(rows, schema=TIMINGS, orient="row"))
    assert karat.gate(GOLD, run, "latency.mean <= 1 ms").missing == 10


def test_the_order_of_rows_changes_nothing():
    gold = of_groups(category=lambda at: "billing")
    thresholds = {"RR": {"min": 0.9, "max_drop": 0.01}}
    one = karat.gate(gold, mixed(10), thresholds, baseline=FIRST).as_dict()
    other = karat.gate(
        dict(reversed(GOLD.items())),
        dict(reversed(mixed(10).items())),
        thresholds,
        baseline=dict(reversed(FIRST.items())),
    ).as_dict()
    assert one == other


# real runs

TREC = SHARED_DATA / "trec-dl19-passage"


@cache
def values_of_trec(name):
    scores = karat.evaluate(TREC / "qrels.txt", TREC / "runs" / f"{name}.gz", "nDCG@10")
    return scores.per_query["nDCG@10"].to_numpy()


@pytest.mark.skipif(not TREC.is_dir(), reason=f"there are no runs in {TREC}")
@pytest.mark.parametrize(
    ("run", "baseline", "drop", "passed"),
    [
        ("bm25base_p", "p_bert", "0.05", False),  # a real loss
        ("p_bert", "bm25base_p", "0 strict", True),  # a real gain
        ("bm25tuned_p", "bm25base_p", "0.005", True),  # 0.008 lower, which 43 topics do not show
        ("bm25tuned_p", "bm25base_p", "0.005 strict", False),
    ],
)
def test_real_runs_are_judged_about_as_student_would(run, baseline, drop, passed):
    gold, runs = TREC / "qrels.txt", TREC / "runs"
    threshold = f"nDCG@10 max_drop {drop}"
    check = only(karat.gate(gold, runs / f"{run}.gz", threshold, baseline=runs / f"{baseline}.gz"))
    assert check.passed == passed
    test = scipy.stats.ttest_rel(values_of_trec(run), values_of_trec(baseline))
    ends = test.confidence_interval(0.9)
    assert check.bound == pytest.approx(ends.low if check.rule.strict else ends.high, abs=0.01)


def test_passed_gate_states_a_drop_that_may_be_chance():
    run = {query: SECOND[query] if at < 3 else FIRST[query] for at, query in enumerate(GOLD)}
    verdict = karat.gate(GOLD, run, "RR max_drop 0.02", baseline=FIRST)
    assert verdict.passed
    assert verdict.doubts == ["RR fell by 0.075, which may be chance"]
    assert verdict.doubts[0] in verdict.summary


@pytest.mark.parametrize(("run", "limit"), [(FIRST, 0.0), (mixed(17), 0.1)])
def test_passed_gate_has_no_doubts_if_the_drop_is_allowed(run, limit):
    assert karat.gate(GOLD, run, f"RR max_drop {limit}", baseline=FIRST).doubts == []
