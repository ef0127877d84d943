"""Pairs of runs, joined by query: every number of a row against oracles/stats.py."""

import enum
import math
import os
import random
import re
import statistics
import subprocess
import sys
import tracemalloc
from contextlib import contextmanager
from fractions import Fraction
from unittest.mock import patch

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import karat
from karat.measures import parse
from karat.stats import groups, resampling
from karat.stats.inference import infer, swap_test
from karat.stats.pairs import pair
from karat.stats.pairwise import ComparisonOptions, compare_groups, compare_pairs, queries_needed
from karat.stats.summary import summary
from oracles import sign_flips as flips_oracle
from oracles import stats as oracle
from support.effort import FULL, examples
from support.errors import refused
from support.paths import TESTS
from support.score_tables import MICRO, random_tables, table_of

COMBINED_BY = {
    "nDCG@10": "mean",
    "GMAP": "geometric",
    "cost.sum": "sum",
    "latency.p50": "p50",
    "latency.p90": "p90",
    "latency.max": "max",
    MICRO: "micro",
}
SUMMED = ("mean", "geometric", "sum", "micro")


def row_of(columns_a, columns_b, choices=None):
    rows = compare_pairs({"a": table_of(columns_a), "b": table_of(columns_b)}, choices)
    assert rows.height == 1
    return rows.row(0, named=True)


def joined(a, b):
    """Return the ids of the queries that have a value in both, and these values."""
    common = sorted(q for q in a.keys() & b.keys() if a[q] is not None and b[q] is not None)
    return common, [a[q] for q in common], [b[q] for q in common]


QUERY = st.sampled_from(["q1", "q10", "q2", "Q1", "é", "z", "0"])
VALUE = st.one_of(st.none(), st.integers(0, 6))
RUN = st.dictionaries(QUERY, VALUE, max_size=7)
OF_NO_QUERIES = (
    *("value_a", "value_b", "difference", "low", "high", "method", "relative", "effect"),
    *("p", "p_corrected", "p_randomization", "p_t", "p_wilcoxon", "detectable"),
)


@examples(60, 600)
@given(RUN, RUN, st.sampled_from((6, 1e9, 1e-6)))
def test_every_number_of_a_row(run_a, run_b, whole):
    with few_resamples():  # intervals are tested below
        tables = {}
        for label, run in (("a", run_a), ("b", run_b)):
            columns = {
                name: [
                    None if count is None else count / (6 if name == MICRO else whole)
                    for count in run.values()
                ]
                for name in COMBINED_BY
            }
            tables[label] = table_of(columns, run, [6] * len(run))
        rows = compare_pairs(tables).rows(named=True)
    assert [row["measure"] for row in rows] == list(COMBINED_BY)
    for row in rows:
        check_row(row, run_a, run_b, 6 if row["measure"] == MICRO else whole)


def check_row(row, run_a, run_b, whole):
    how = COMBINED_BY[row["measure"]]
    queries, counts_a, counts_b = joined(run_a, run_b)
    known = {q for run in (run_a, run_b) for q, value in run.items() if value is not None}
    n = len(queries)
    assert (row["n"], row["left_out"]) == (n, len(known) - n)
    apart = [y - x for x, y in zip(counts_a, counts_b, strict=True)]
    rises, falls = sum(x > 0 for x in apart), sum(x < 0 for x in apart)
    is_lower_better = row["measure"].startswith(("latency", "cost"))
    wins, losses = (falls, rises) if is_lower_better else (rises, falls)
    assert (row["wins"], row["ties"], row["losses"]) == (wins, apart.count(0), losses)
    if not n:
        assert {row[key] for key in OF_NO_QUERIES} == {None}
        return

    a, b = ([count / whole for count in counts] for counts in (counts_a, counts_b))
    weights = [6] * n
    value_a, value_b = oracle.value(how, a, weights), oracle.value(how, b, weights)
    size = max(map(abs, [*a, *b, 1e-300])) * (n if how == "sum" else 1)
    near = {"rel": 1e-9, "abs": 1e-12 * size}
    assert row["value_a"] == pytest.approx(value_a, **near)
    assert row["value_b"] == pytest.approx(value_b, **near)
    assert row["difference"] == pytest.approx(value_b - value_a, **near)
    if value_a:
        assert row["relative"] == pytest.approx((value_b - value_a) / value_a, rel=1e-6, abs=1e-9)
    else:
        assert row["relative"] is None

    if how in oracle.SHARES:
        expected = p_of_quantiles(how, a, b)
    else:  # a swap changes the geometric mean by logarithms, which tie where products do
        expected = oracle.swaps(how, a, b, weights, weights)
    assert row["p_randomization"] == pytest.approx(expected, abs=1e-12)
    assert row["p"] == row["p_corrected"] == row["p_randomization"]
    if how not in SUMMED:
        assert row["p_t"] is row["p_wilcoxon"] is row["effect"] is row["detectable"] is None
        return
    if how == "geometric":
        logs = [[math.log(max(v, oracle.LEAST)) for v in values] for values in (a, b)]
        steps = [y - x for x, y in zip(*logs, strict=True)]
        rounded = [round(step, 9) for step in steps]
    else:
        steps = [float(x) for x in apart]
        rounded = apart
    assert row["p_wilcoxon"] == pytest.approx(float(oracle.wilcoxon(rounded)), rel=1e-9)
    spread = statistics.stdev(steps) if n > 1 else 0.0
    if n > 1 and spread > 1e-9:
        dz = statistics.fmean(steps) / spread
        assert row["effect"] == pytest.approx(dz, rel=1e-6, abs=1e-9)
        p_t = oracle.stats.ttest_1samp(steps, 0).pvalue
        if oracle.is_few(apart):
            p_t = max(p_t, min(1.0, 2 / 2 ** (n - apart.count(0))))
        assert row["p_t"] == pytest.approx(p_t, rel=1e-6)
    elif n > 1 and not any(rounded):
        assert (row["effect"], row["p_t"]) == (0.0, 1.0)
    else:
        assert row["effect"] is row["p_t"] is None
    if how == "mean" and n > 1 and spread > 0:
        assert row["detectable"] == pytest.approx(oracle.detectable(spread / whole, n), rel=1e-6)


def p_of_quantiles(how, a, b):
    """Return the p of the resamples that karat draws."""
    with few_resamples():
        drawn = np.concatenate(list(resampling.resamples(len(a)))).tolist()
    differences = [
        oracle.value(how, [b[i] for i in row]) - oracle.value(how, [a[i] for i in row])
        for row in drawn
    ]
    return 1.0 if a == b else oracle.p_of_resamples(differences)


@contextmanager
def few_resamples():
    """Let the bootstrap draw 300 resamples, which the oracle can follow one by one."""
    with patch.object(resampling, "RESAMPLES", 300):
        resampling.draw_counts.cache_clear()
        yield
    resampling.draw_counts.cache_clear()


@examples(15, 200)
@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=2, max_size=6),
    st.sampled_from((0.8, 0.9, 0.95)),
)
def test_interval_of_a_difference_inverts_the_sign_flip_test(rows, confidence):
    a, b = ([row[side] / 9 for row in rows] for side in (0, 1))
    n, names = len(rows), [name for name, how in COMBINED_BY.items() if how in SUMMED]
    tables = [table_of(dict.fromkeys(names, values), weights=[9] * n) for values in (a, b)]
    found = infer([pair(*tables, parse(name)) for name in names], confidence=confidence)
    intervals = {COMBINED_BY[name]: one.interval for name, one in zip(names, found, strict=True)}
    steps = [y - x for x, y in rows]
    if oracle.is_few(steps, confidence):
        assert {one.method for one in intervals.values()} == {"few"}
        low, high = oracle.few_interval(steps, confidence)
        assert (intervals["mean"].low, intervals["mean"].high) == pytest.approx((low, high))
        for how in ("sum", "geometric", "micro"):  # the largest difference is not known
            assert intervals[how].low is intervals[how].high is None
        return
    ones, alpha = [Fraction(1)] * n, 1 - Fraction(str(confidence))
    low, high = flips_oracle.interval_of([Fraction(x, 9) for x in steps], ones, alpha)
    logs = [[math.log(max(x, oracle.LEAST)) for x in values] for values in (a, b)]
    apart = [Fraction(y) - Fraction(x) for x, y in zip(*logs, strict=True)]
    before = oracle.value("geometric", a)
    expected = {
        "mean": (low, high),
        "micro": (low, high),
        "sum": (n * low, n * high),
        "geometric": [
            before * (math.exp(end) - 1) for end in flips_oracle.interval_of(apart, ones, alpha)
        ],
    }
    for how, ends in expected.items():
        got = intervals[how]
        assert got.method in ("flips", "equal")
        wanted = tuple(map(float, ends))
        assert (got.low, got.high) == pytest.approx(wanted, rel=1e-9, abs=1e-10), how


@pytest.mark.parametrize("name", ["latency.p50", "latency.p90", "evidence.RankOfFullCoverage"])
def test_interval_of_a_difference_of_quantiles_is_that_of_resampled_pairs(name):
    chance = np.random.default_rng(4)
    a = chance.lognormal(0, 1, 15)
    b = a * chance.lognormal(0.2, 0.3, 15)
    measure = parse(name)
    share = oracle.SHARES[measure.declaration.combine]
    drawn = np.concatenate(list(resampling.resamples(15))).tolist()
    differences = [
        oracle.quantile([b[i] for i in row], share) - oracle.quantile([a[i] for i in row], share)
        for row in drawn
    ]
    for confidence in (0.8, 0.95):
        both = pair(table_of({name: a}), table_of({name: b}), measure)
        (found,) = infer([both], confidence=confidence)
        ends = found.interval
        assert ends.method == "percentile"
        expected = oracle.percentile_interval(differences, confidence)
        assert (ends.low, ends.high) == pytest.approx(expected, rel=1e-9)
        assert found.p["randomization"] == oracle.p_of_resamples(differences)


def test_differences_of_zeros_and_ones_are_not_a_share():
    row = row_of({"Success@5": [0, 0, 0, 1, 1]}, {"Success@5": [1, 1, 0, 1, 1]})
    assert row["method"] == "few"
    assert row["p"] == 0.5
    row = row_of({"Success@5": [0] * 8 + [1] * 4}, {"Success@5": [1] * 7 + [0] + [1] * 4})
    assert (row["method"], row["p"]) == ("flips", 2 / 2**7)


def test_tests_of_many_queries_are_scipy_s():
    chance = np.random.default_rng(1)
    a = chance.beta(0.6, 0.9, 2_500)
    b = np.clip(a + chance.normal(0.01, 0.1, 2_500), 0, 1)
    row = row_of({"nDCG@10": a}, {"nDCG@10": b}, ComparisonOptions(test="t"))
    expected = oracle.stats.ttest_rel(b, a)
    ends = expected.confidence_interval(0.95)
    assert row["method"] == "t"
    assert (row["low"], row["high"]) == pytest.approx((ends.low, ends.high), rel=1e-9)
    assert row["p"] == row["p_t"] == pytest.approx(expected.pvalue, rel=1e-9)
    wilcoxon = oracle.stats.wilcoxon(b - a, method="approx").pvalue
    assert row["p_wilcoxon"] == pytest.approx(wilcoxon, rel=1e-6)
    # Of so many queries the inverted sign flips are nearly Student's interval.
    for test in ("randomization", "wilcoxon"):
        row = row_of({"nDCG@10": a}, {"nDCG@10": b}, ComparisonOptions(test=test))
        assert row["method"] == "flips"
        width = ends.high - ends.low
        assert (row["low"], row["high"]) == pytest.approx((ends.low, ends.high), abs=0.02 * width)


def test_interval_of_many_queries_is_close_to_that_of_the_bootstrap():
    chance = np.random.default_rng(2)
    a = chance.lognormal(0, 0.5, 3_000)
    b = a * chance.lognormal(0.1, 0.2, 3_000)
    statistics_of_rows = {
        "GMAP": lambda rows: oracle.stats.gmean(rows, axis=1),
        "cost.sum": lambda rows: rows.sum(axis=1),
    }
    at = chance.integers(0, 3_000, (600, 3_000))
    for name, statistic in statistics_of_rows.items():
        (found,) = infer([pair(table_of({name: a}), table_of({name: b}), parse(name))])
        low, high = np.quantile(statistic(b[at]) - statistic(a[at]), [0.025, 0.975])
        ends = found.interval
        assert ends.method == "flips"
        assert ends.high - ends.low == pytest.approx(high - low, rel=0.25), name
        assert ends.low + ends.high == pytest.approx(low + high, abs=0.5 * (high - low)), name


def test_swapping_a_few_of_many_queries_needs_little_memory():
    a = np.arange(20_000.0)
    b = a.copy()
    b[-10:] += 5_000
    tracemalloc.start()
    slowest = (table_of({"latency.max": values}) for values in (a, b))
    p, draws = swap_test(pair(*slowest, parse("latency.max")))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert draws is None
    assert p == 2 / 2**10  # the maxima are as far apart only if all are swapped, or none
    assert peak < 50_000_000


@examples(50, 500)
@given(st.lists(st.integers(-3, 3), min_size=2, max_size=8), st.data())
def test_differences_of_tenths_tie_despite_rounding(steps, data):
    most = data.draw(st.sampled_from([10_000, 10_000_000]))  # 1 s and 1,000 s, in tenths of a ms
    levels = [data.draw(st.integers(100, most)) for _ in steps]
    a = [level / 10 for level in levels]
    b = [(level + step) / 10 for level, step in zip(levels, steps, strict=True)]
    row = row_of({"latency.mean": a}, {"latency.mean": b})
    assert row["p_randomization"] == float(oracle.sign_flips(steps))
    assert row["p_wilcoxon"] == pytest.approx(float(oracle.wilcoxon(steps)), rel=1e-12)
    assert row["ties"] == steps.count(0)
    if len(set(steps)) == 1:
        assert row["p_t"] == (None if steps[0] else 1.0)
        assert row["method"] == ("few" if oracle.is_few(steps) else "equal")


def test_rounding_is_relative_to_the_queries_that_differ():
    row = row_of({"latency.mean": [1e12] + [1.0] * 5}, {"latency.mean": [1e12] + [1.5] * 5})
    assert (row["losses"], row["ties"]) == (5, 1)  # higher latency is worse
    assert row["p"] == row["p_wilcoxon"] == 2 / 2**5


def test_relative_change_is_relative_to_the_absolute_value():
    assert row_of({"RR": [-0.5, -0.5]}, {"RR": [-0.25, -0.25]})["relative"] == 0.5
    assert row_of({"RR": [0.0, 0.0]}, {"RR": [1.0, 0.0]})["relative"] is None


def test_values_that_differ_by_rounding_tie():
    third = 0.1 + 0.2  # not 0.3
    row = row_of({"RR": [third, 0.5, 0.3]}, {"RR": [0.3, 0.5, third]})
    assert (row["wins"], row["ties"], row["losses"]) == (0, 3, 0)
    assert row["p"] == row["p_t"] == row["p_wilcoxon"] == 1.0
    assert (row["low"], row["high"]) == pytest.approx(oracle.few_interval([0, 0, 0]))
    assert row["method"] == "few"


def test_perfect_scores_that_differ_by_rounding_tie_in_a_geometric_mean():
    row = row_of({"GMAP": [1.0, 1.0, 0.5]}, {"GMAP": [1 - 2**-53, 1.0, 0.5]})
    assert (row["ties"], row["p"], row["p_wilcoxon"]) == (3, 1.0, 1.0)


def test_constant_difference_has_an_interval_without_width_and_no_t():
    a = [0.1, 0.2, 0.3, 0.7] * 2
    row = row_of({"nDCG@10": a}, {"nDCG@10": [value + 0.1 for value in a]})
    assert row["method"] == "equal"
    assert row["low"] == pytest.approx(row["high"]) == pytest.approx(0.1)
    assert row["p_t"] is row["effect"] is row["detectable"] is None
    assert row["p"] == 2 / 2**8


@pytest.mark.parametrize("scale", [1e-9, 1e6])
def test_scale_of_a_measure_does_not_change_p(scale):
    chance = np.random.default_rng(8)
    a, b = chance.lognormal(0, 1, 40), chance.lognormal(0.1, 1, 40)
    one = row_of({"cost.mean": a}, {"cost.mean": b})
    other = row_of({"cost.mean": a * scale}, {"cost.mean": b * scale})
    for key in ("p_randomization", "p_t", "p_wilcoxon", "effect", "relative"):
        assert other[key] == pytest.approx(one[key], rel=1e-9), key
    for key in ("difference", "low", "high", "detectable"):
        assert other[key] == pytest.approx(one[key] * scale, rel=1e-9), key


def test_scores_of_different_gold_are_refused():
    one = table_of({MICRO: [0.5, 1.0]}, weights=[2, 3])
    other = table_of({MICRO: [0.5, 1.0]}, weights=[2, 1])
    with refused(path=None, field=None) as caught:
        compare_pairs({"a": one, "b": other})
    assert all(word in caught.value.problem for word in (MICRO, " 1 ", "q001"))
    assert caught.value.hint


def test_all_pairs_are_compared_or_all_with_the_baseline():
    tables = random_tables(n=10, k=4, names=("GMAP", "nDCG@10"))
    names = list(tables)
    rows = compare_pairs(tables).filter(measure="GMAP").select("a", "b").rows()
    assert rows == [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]
    rows = compare_pairs(tables, ComparisonOptions(baseline="run 2")).filter(measure="GMAP")
    assert rows.select("a", "b").rows() == [("run 2", b) for b in names if b != "run 2"]


@pytest.mark.parametrize("test", ["randomization", "t", "wilcoxon"])
@pytest.mark.parametrize("how", ["holm", "bh", "bonferroni", "none"])
def test_p_is_corrected_over_the_pairs_of_a_measure(test, how):
    plain = {"holm": oracle.holm, "bh": oracle.benjamini_hochberg, "bonferroni": oracle.bonferroni}
    tables = random_tables(n=12, k=3, names=("nDCG@10", "latency.p90", MICRO))
    rows = compare_pairs(tables, ComparisonOptions(test=test, correction=how))
    assert rows["p"].equals(rows[f"p_{test}"].rename("p"))
    for (measure,), part in rows.group_by("measure"):
        p = part["p"].to_list()
        if test != "randomization" and measure == "latency.p90":
            assert p == part["p_corrected"].to_list() == [None] * 3
            continue
        expected = plain[how](p) if how in plain else p
        assert part["p_corrected"].to_list() == pytest.approx(expected, rel=1e-12)


def test_undefined_p_is_not_counted_as_a_test():
    a, b, c = [0.1, 0.2, 0.3], [0.2, 0.3, 0.4], [0.9, 0.2, 0.4]
    tables = {name: table_of({"RR": values}) for name, values in zip("abc", (a, b, c), strict=True)}
    rows = compare_pairs(tables, ComparisonOptions(test="t", correction="bonferroni"))
    assert rows["p"][0] is rows["p_corrected"][0] is None
    assert rows["p_corrected"][1:].to_list() == [min(1, 2 * p) for p in rows["p"][1:]]


def test_tukey_s_p_uses_the_queries_that_all_runs_have():
    # With this seed the p are far apart: from 0.14 to 0.99.
    tables = random_tables(n=24, k=4, names=("nDCG@10", "latency.p90"), seed=10)
    rows = compare_pairs(tables, ComparisonOptions(correction="tukey"))
    assert rows["p"].equals(compare_pairs(tables)["p"])
    assert rows.filter(measure="latency.p90")["p_corrected"].to_list() == [None] * 6
    frames = [t.frame.select("query_id", pl.col("nDCG@10").alias(n)) for n, t in tables.items()]
    common = frames[0]
    for frame in frames[1:]:
        common = common.join(frame, on="query_id")
    common = common.drop_nulls().drop("query_id")
    rows = rows.filter(measure="nDCG@10")
    pairs = [
        (common.columns.index(a), common.columns.index(b))
        for a, b in rows.select("a", "b").iter_rows()
    ]
    expected = map(float, oracle.tukey(common.rows(), pairs, draws=2_000))
    for found, p in zip(rows["p_corrected"], expected, strict=True):
        reach = 5 * math.sqrt(p * (1 - p) / 2_000) + 2 / 2_000
        assert found == pytest.approx(p, abs=reach)


def shuffled(items, chance):
    return chance.sample(list(items), len(items))


def test_order_of_rows_changes_no_bit():
    chance, tables = random.Random(17), random_tables(n=24, k=2)
    first = compare_pairs(tables)
    for _ in range(3 if FULL else 1):
        other = {
            name: table.rows(pl.Series(shuffled(range(table.frame.height), chance)))
            for name, table in tables.items()
        }
        assert other["run 0"].frame["query_id"].to_list() != sorted(
            other["run 0"].frame["query_id"]
        )
        assert_frame_equal(first, compare_pairs(other), check_exact=True)


def test_order_of_gold_and_runs_changes_no_bit():
    chance = random.Random(19)
    gold = {f"q{i}": {f"d{j}": chance.randint(1, 3) for j in range(3)} for i in range(24)}
    runs = {
        name: {
            query: chance.sample([f"d{j}" for j in range(9)], 5)
            for query in gold
            if chance.random() < 0.9
        }
        for name in "abc"
    }
    measures = ["nDCG@5", "P@3"]

    def pairs(gold, runs):
        # Missing queries are skipped, so that Tukey's test must find those all runs have.
        found = karat.compare(
            gold, runs, measures, correction="tukey", conventions={"missing": "skip"}
        )
        return found.pairs

    first = pairs(gold, runs)
    for _ in range(3 if FULL else 1):
        other_gold = dict(shuffled(gold.items(), chance))
        other_runs = {name: dict(shuffled(run.items(), chance)) for name, run in runs.items()}
        assert_frame_equal(first, pairs(other_gold, other_runs), check_exact=True)


def test_order_of_saved_scores_changes_no_bit(tmp_path):
    chance = random.Random(18)
    gold = {f"q{i}": {f"d{j}": 1 for j in range(3)} for i in range(20)}
    run = {q: [f"d{chance.randrange(6)}", f"d{6 + chance.randrange(3)}", "d0"] for q in gold}
    scores = karat.evaluate(gold, run, ["nDCG@3", "P@2"])
    path = tmp_path / "scores.parquet"
    scores.write(path)
    metadata = {"karat": pl.read_parquet_metadata(path)["karat"]}
    pl.read_parquet(path).reverse().write_parquet(path, metadata=metadata)
    again = karat.Scores.read(path)
    assert_frame_equal(again.per_query, scores.per_query, check_exact=True)
    assert_frame_equal(again.summary(), scores.summary(), check_exact=True)


@pytest.mark.parametrize("name", ["nDCG@10", "GMAP", "latency.mean", "cost.sum", MICRO])
@pytest.mark.parametrize("n", [12, 40])
def test_row_of_a_pair_does_not_depend_on_other_runs(name, n):
    chance = np.random.default_rng(9)
    is_bounded = parse(name).declaration.bounded
    tables = {}
    for size in (1, 30, 0.001, 5):  # latencies in seconds and in milliseconds, for example
        values = chance.integers(0, 9, n) / 8 if is_bounded else chance.exponential(size, n)
        tables[f"run {size}"] = table_of(
            {name: np.minimum(values, 1) if is_bounded else values}, weights=[8] * n
        )
    for row in compare_pairs(tables, ComparisonOptions(correction="none")).rows(named=True):
        alone = {run: tables[run] for run in (row["a"], row["b"])}
        assert compare_pairs(alone).row(0, named=True) == row


def test_swapped_runs_change_only_signs():
    tables = random_tables(n=24, k=2)
    one = compare_pairs(tables).rows(named=True)
    other = compare_pairs(dict(reversed(tables.items()))).rows(named=True)
    for here, there in zip(one, other, strict=True):
        assert there["difference"] == -here["difference"]
        assert (there["wins"], there["losses"]) == (here["losses"], here["wins"])
        for key in ("p_randomization", "p_t", "p_wilcoxon", "detectable", "left_out", "n"):
            assert there[key] == here[key], key
        mirrored = [-end for end in ends_of(there)][::-1]
        assert mirrored == pytest.approx(ends_of(here))


def ends_of(row):
    """Return both ends; those of a geometric mean as logarithms of the ratio of both means."""
    ends = [row["low"], row["high"]]
    if COMBINED_BY[row["measure"]] != "geometric":
        return ends
    return [math.log(1 + end / row["value_a"]) for end in ends]


def test_block_size_changes_no_bit(monkeypatch):
    tables = random_tables(n=24, k=2)
    first, first_summary = compare_pairs(tables), summary(tables["run 0"])
    monkeypatch.setattr(resampling, "_BLOCK_CELLS", 1_000)
    resampling.draw_counts.cache_clear()
    assert_frame_equal(first, compare_pairs(tables), check_exact=True)
    assert_frame_equal(first_summary, summary(tables["run 0"]), check_exact=True)
    resampling.draw_counts.cache_clear()


def test_number_of_threads_changes_no_bit():
    program = (
        "from karat.stats.pairwise import ComparisonOptions, compare_pairs\n"
        "from karat.stats.summary import summary\n"
        "from support.score_tables import random_tables\n"
        "tables = random_tables(n=200, k=2)\n"
        "print(compare_pairs(tables, ComparisonOptions(correction='tukey')).rows())\n"
        "print(summary(tables['run 1']).rows())\n"
    )
    outputs = set()
    for threads in ("1", "2"):
        limits = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "POLARS_MAX_THREADS")
        path = os.pathsep.join([str(TESTS), *sys.path])
        environment = os.environ | dict.fromkeys(limits, threads) | {"PYTHONPATH": path}
        process = subprocess.run(
            [sys.executable, "-c", program],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        outputs.add(process.stdout)
    assert len(outputs) == 1
    assert "nDCG@10" in outputs.pop()


def test_queries_needed_follow_from_the_spread_of_the_differences():
    chance = np.random.default_rng(6)
    a, b = chance.random(30), chance.random(30)
    tables = {
        "a": table_of({"RR": a, "latency.p50": a}),
        "b": table_of({"RR": b, "latency.p50": b}),
    }
    rows = queries_needed(tables, 0.1).rows()
    expected = oracle.needed(0.1, statistics.stdev((b - a).tolist()))
    assert rows == [("a", "b", "RR", 0.1, expected), ("a", "b", "latency.p50", 0.1, None)]


def test_detectable_difference_of_a_sum_and_of_a_micro_mean():
    chance = np.random.default_rng(7)
    a, b = chance.random(30), chance.random(30)
    one = row_of({"cost.mean": a}, {"cost.mean": b})["detectable"]
    assert row_of({"cost.sum": a}, {"cost.sum": b})["detectable"] == pytest.approx(30 * one)
    weights = chance.integers(1, 9, 30).tolist()
    x, y = (chance.binomial(weights, 0.5) for _ in range(2))
    tables = {
        name: table_of({MICRO: counts / weights}, weights=weights)
        for name, counts in (("a", x), ("b", y))
    }
    row = compare_pairs(tables).row(0, named=True)
    ratio = (y - x).sum() / sum(weights)
    residual = ((y - x) - ratio * np.array(weights)) / statistics.fmean(weights)
    spread = statistics.stdev(residual.tolist())
    assert row["detectable"] == pytest.approx(oracle.detectable(spread, 30), rel=1e-9)
    assert row["effect"] == pytest.approx(ratio / spread, rel=1e-9)


# Groups


class Kind(enum.Enum):
    SHORT = "short"
    LONG = "long"


QUERIES = pl.DataFrame(
    {
        "query_id": [f"q{i}" for i in range(24)],
        "text": ["why" if i % 5 else "why not" for i in range(24)],
        "category": [("billing", "login", None)[i % 3] for i in range(24)],
        "level": [i % 2 for i in range(24)],
        "p": ["x"] * 24,
    }
)


def kind(query):
    return Kind.LONG if " " in query["text"] else Kind.SHORT


def measure(query):
    return query["level"]


FIELDS = [
    (["category"], ["category"], lambda q: (q["category"],)),
    (["level", "category"], ["level", "category"], lambda q: (q["level"], q["category"])),
    ([kind], ["kind"], lambda q: (kind(q).value,)),
    ([kind, "level"], ["kind", "level"], lambda q: (kind(q).value, q["level"])),
    ([lambda q: q["level"] > 0], ["group"], lambda q: (q["level"] > 0,)),
    ([measure], ["group"], lambda q: (q["level"],)),
    (
        [lambda q: q["level"], lambda q: q["category"]],
        ["group", "group_2"],
        lambda q: (q["level"], q["category"]),
    ),
]


def missing_last(label):
    return [(part is None, "" if part is None else part) for part in label]


@pytest.mark.parametrize(("fields", "names", "label"), FIELDS)
def test_each_group_is_summarized_and_compared_by_itself(fields, names, label):
    tables = random_tables(n=24, k=3, names=("nDCG@10", "latency.p90", MICRO))
    members = {}
    for query in QUERIES.iter_rows(named=True):
        members.setdefault(label(query), set()).add(query["query_id"])
    rows = compare_groups(tables, QUERIES, fields)
    summaries = groups.summary_by(tables["run 0"], QUERIES, fields)
    assert rows.columns[: len(names)] == names
    assert list(dict.fromkeys(rows.select(names).rows())) == sorted(members, key=missing_last)
    p_by_measure = {}
    for key, query_ids in members.items():
        part = {
            name: groups.select_queries(table, pl.Series(sorted(query_ids)))
            for name, table in tables.items()
        }
        in_group = pl.all_horizontal(
            pl.col(n).eq_missing(pl.lit(v)) for n, v in zip(names, key, strict=True)
        )
        here = rows.filter(in_group).drop(names)
        assert_frame_equal(here.drop("p_corrected"), compare_pairs(part).drop("p_corrected"))
        for name, *both in here.select("measure", "p", "p_corrected").iter_rows():
            p_by_measure.setdefault(name, []).append(both)
        expected = summary(part["run 0"]).with_columns(small=pl.col("n") < 5)
        assert_frame_equal(summaries.filter(in_group).drop(names), expected)
    for both in p_by_measure.values():
        tested = [(p, corrected) for p, corrected in both if p is not None]
        expected = oracle.holm([p for p, _ in tested])
        assert [corrected for _, corrected in tested] == pytest.approx(expected, rel=1e-12)


def test_group_is_small_below_five_queries():
    table = table_of({"RR": [0.1] * 9}, QUERIES["query_id"][:9])
    queries = QUERIES[:9].with_columns(side=pl.Series(["x"] * 5 + ["y"] * 4))
    assert groups.summary_by(table, queries, ["side"])["small"].to_list() == [False, True]


def test_field_with_the_name_of_a_result_column_is_refused():
    tables = random_tables(n=10, k=2)
    with refused(path=None, field="by") as caught:
        compare_groups(tables, QUERIES, ["p"])
    assert re.search(r"\bp\b", caught.value.problem)
    assert groups.summary_by(tables["run 0"], QUERIES, ["p"])["p"].to_list() == ["x"] * 4


def test_grouping_without_queries_is_refused():
    with refused(path=None, field="by") as caught:
        compare_groups(random_tables(n=10, k=2), QUERIES.clear(), ["level"])
    assert "level" not in caught.value.problem  # the field itself is fine


def test_tukey_s_test_of_groups_is_refused():
    with refused(path=None, field="correction") as caught:
        compare_groups(
            random_tables(n=10, k=2), QUERIES, ["level"], ComparisonOptions(correction="tukey")
        )
    assert caught.value.hint


def test_group_function_must_return_plain_values():
    table = random_tables(n=10, k=1)["run 0"]
    for function in (lambda query: [query["level"]], lambda query: object()):
        with refused(path=None, field="by") as caught:
            groups.summary_by(table, QUERIES, [function])
        assert caught.value.hint


@pytest.mark.parametrize(
    ("field", "value"),
    [("test", "sign"), ("correction", "sidak"), ("confidence", 1.0), ("confidence", 0.0)],
)
def test_invalid_choices_are_refused(field, value):
    with refused(path=None, field=field) as caught:
        ComparisonOptions(**{field: value})
    assert str(value) in caught.value.problem


def test_confidence_sets_that_of_the_interval():
    a, b = ({"RR": np.random.default_rng(seed).random(40)} for seed in (1, 2))
    narrow, wide = (row_of(a, b, ComparisonOptions(confidence=c)) for c in (0.5, 0.99))
    # Student's intervals are close to those of the sign flips.
    for row, confidence in ((narrow, 0.5), (wide, 0.99)):
        low, high = oracle.student_interval((b["RR"] - a["RR"]).tolist(), confidence)
        assert (row["low"], row["high"]) == pytest.approx((low, high), abs=0.05 * (high - low))
    assert wide["low"] < narrow["low"] < narrow["high"] < wide["high"]
