"""Runs compared pair by pair: every number of a row, joined by query, against stats_oracle.py."""

import enum
import math
import os
import random
import statistics
import subprocess
import sys
import tracemalloc
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import karat
from karat.errors import InputError
from karat.measures import parse
from karat.stats import draws, groups
from karat.stats.comparison import Choices, compared, compared_by, queries_needed
from karat.stats.intervals import interval
from karat.stats.pairs import pair
from karat.stats.randomization import swapped
from karat.stats.samples import Sample
from karat.stats.summary import summary
from oracles import stats as oracle
from support.score_tables import MICRO, table_of

HOW = {
    "nDCG@10": "mean",
    "GMAP": "geometric",
    "cost.sum": "sum",
    "latency.p50": "p50",
    "latency.p90": "p90",
    "latency.max": "max",
    MICRO: "micro",
}
SUMMED = ("mean", "geometric", "sum", "micro")


def row_of(columns_a, columns_b, choices=None, **tables):
    rows = compared({"a": table_of(columns_a), "b": table_of(columns_b)}, choices)
    assert rows.height == 1
    return rows.row(0, named=True)


def joined(a, b):
    """Return the values of the queries that have one in both, by id."""
    common = sorted(q for q in a.keys() & b.keys() if a[q] is not None and b[q] is not None)
    return common, [a[q] for q in common], [b[q] for q in common]


QUERY = st.sampled_from(["q1", "q10", "q2", "Q1", "é", "z", "0"])
VALUE = st.one_of(st.none(), st.integers(0, 6))
RUN = st.dictionaries(QUERY, VALUE, max_size=7)


@settings(max_examples=150)
@given(RUN, RUN, st.sampled_from(list(HOW)), st.sampled_from((6, 1e9, 1e-6)))
def test_every_number_of_a_row(run_a, run_b, name, whole):
    how = HOW[name]
    whole = 6 if how == "micro" else whole
    tables = {}
    for label, run in (("a", run_a), ("b", run_b)):
        values = [None if count is None else count / whole for count in run.values()]
        weights = [6 if how == "micro" else None] * len(run)
        tables[label] = table_of({name: values}, run, weights if how == "micro" else None)
    row = compared(tables).row(0, named=True)

    queries, counts_a, counts_b = joined(run_a, run_b)
    known = {q for run in (run_a, run_b) for q, value in run.items() if value is not None}
    n = len(queries)
    assert (row["n"], row["left_out"]) == (n, len(known) - n)
    apart = [y - x for x, y in zip(counts_a, counts_b, strict=True)]
    told = (sum(x > 0 for x in apart), apart.count(0), sum(x < 0 for x in apart))
    assert (row["wins"], row["ties"], row["losses"]) == told
    if not n:
        names = ("value_a", "value_b", "difference", "low", "high", "method", "relative", "effect")
        names += ("p", "p_corrected", "p_randomization", "p_t", "p_wilcoxon", "detectable")
        assert {row[key] for key in names} == {None}
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

    # A swap changes the geometric mean by logarithms, which tie where products do.
    expected = oracle.swaps(how, a, b, weights, weights)
    assert row["p_randomization"] == pytest.approx(expected, abs=1e-12)
    assert row["p"] == row["p_corrected"] == row["p_randomization"]
    if how not in SUMMED:
        assert row["p_t"] is row["p_wilcoxon"] is row["effect"] is row["detectable"] is None
        return
    if how == "geometric":
        logs = [[math.log(max(v, oracle.LEAST)) for v in values] for values in (a, b)]
        steps = [y - x for x, y in zip(*logs, strict=True)]
        blurred = [round(step, 9) for step in steps]
    else:
        steps = [float(x) for x in apart]
        blurred = apart
    assert row["p_wilcoxon"] == pytest.approx(float(oracle.wilcoxon(blurred)), rel=1e-9)
    spread = statistics.stdev(steps) if n > 1 else 0.0
    if n > 1 and spread > 1e-9:
        dz = statistics.fmean(steps) / spread
        assert row["effect"] == pytest.approx(dz, rel=1e-6, abs=1e-9)
        p_t = oracle.stats.ttest_1samp(steps, 0).pvalue
        assert row["p_t"] == pytest.approx(p_t, rel=1e-6)
    elif n > 1 and not any(blurred):
        assert (row["effect"], row["p_t"]) == (0.0, 1.0)
    else:
        assert row["effect"] is row["p_t"] is None
    if how == "mean" and n > 1 and spread > 0:
        assert row["detectable"] == pytest.approx(oracle.detectable(spread / whole, n), rel=1e-6)


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=2, max_size=6),
    st.sampled_from(("mean", "sum", "geometric", "micro")),
    st.sampled_from((0.9, 0.95)),
)
def test_the_interval_of_a_difference_resamples_pairs(rows, how, confidence):
    names = {how: name for name, how in HOW.items()}
    a, b = ([row[side] / 9 for row in rows] for side in (0, 1))
    n, name = len(rows), names[how]
    weights = [9] * n if how == "micro" else None
    tables = [table_of({name: values}, weights=weights) for values in (a, b)]
    found = pair(*tables, parse(name)).interval(confidence)
    steps = [Fraction(y - x, 9) for x, y in rows]

    def statistic(at):
        if how == "geometric":
            return geometric_mean(rows, 1, at) - geometric_mean(rows, 0, at)
        return sum(steps[i] for i in at) / len(at) * (n if how == "sum" else 1)

    # Equal steps of logarithms are no equal steps of what they are logarithms of.
    alike = len(set(rows)) == 1 or not any(steps) if how == "geometric" else len(set(steps)) == 1
    if alike:
        whole = float(statistic(range(n)))
        assert (found.low, found.high) == pytest.approx((whole, whole), abs=1e-12)
        assert found.method == "equal"
        return
    drawn = np.concatenate(list(draws.resamples(n))).tolist()
    known = {row: statistic(row) for row in {tuple(sorted(row)) for row in drawn}}
    resampled = [known[tuple(sorted(row))] for row in drawn]
    if how == "geometric":  # ties of differences of powers are not told exactly by floats
        seen = statistic(range(n))
        resampled = [seen if abs(one - seen) < 1e-10 else one for one in resampled]
    expected = oracle.bca(statistic, n, resampled, confidence)
    assert found.method == "bca"
    assert found.low == pytest.approx(float(expected[0]), abs=1e-9)
    assert found.high == pytest.approx(float(expected[1]), abs=1e-9)


def geometric_mean(rows, side, at):
    product = math.prod(max(Fraction(rows[i][side], 9), Fraction(1, 100_000)) for i in at)
    logarithm = math.log(product.numerator) - math.log(product.denominator)
    return math.exp(logarithm / len(at))


@pytest.mark.parametrize("name", ["latency.p50", "latency.p90", "evidence.RankOfFullCoverage"])
def test_the_interval_of_a_difference_of_quantiles_is_that_of_resampled_pairs(name):
    chance = np.random.default_rng(4)
    a = chance.lognormal(0, 1, 15)
    b = a * chance.lognormal(0.2, 0.3, 15)
    measure = parse(name)
    found = pair(table_of({name: a}), table_of({name: b}), measure).interval()
    share = oracle.SHARES[measure.declaration.combine]
    drawn = np.concatenate(list(draws.resamples(15))).tolist()
    differences = [
        oracle.quantile([b[i] for i in row], share) - oracle.quantile([a[i] for i in row], share)
        for row in drawn
    ]
    assert found.method == "percentile"
    assert found.low == pytest.approx(oracle.quantile(differences, 0.025), rel=1e-9)
    assert found.high == pytest.approx(oracle.quantile(differences, 0.975), rel=1e-9)


def test_differences_of_zeros_and_ones_are_no_share():
    row = row_of({"Success@5": [0, 0, 0, 1, 1]}, {"Success@5": [1, 1, 0, 1, 1]})
    assert row["method"] == "bca"
    assert row["p"] == 0.5


def test_many_queries_have_student_s_interval_and_it_is_scipy_s():
    chance = np.random.default_rng(1)
    a = chance.beta(0.6, 0.9, 2_500)
    b = np.clip(a + chance.normal(0.01, 0.1, 2_500), 0, 1)
    row = row_of({"nDCG@10": a}, {"nDCG@10": b})
    expected = oracle.stats.ttest_rel(b, a)
    ends = expected.confidence_interval(0.95)
    assert row["method"] == "t"
    assert (row["low"], row["high"]) == pytest.approx((ends.low, ends.high), rel=1e-9)
    assert row["p_t"] == pytest.approx(expected.pvalue, rel=1e-9)
    wilcoxon = oracle.stats.wilcoxon(b - a, method="approx").pvalue
    assert row["p_wilcoxon"] == pytest.approx(wilcoxon, rel=1e-6)


def test_many_queries_have_an_interval_of_geometric_means_and_of_quantiles():
    chance = np.random.default_rng(2)
    a = chance.lognormal(0, 0.5, 3_000)
    b = a * chance.lognormal(0.1, 0.2, 3_000)
    for name, statistic in (("GMAP", oracle.stats.gmean), ("latency.p90", np.quantile)):
        measure = parse(name)
        found = pair(table_of({name: a}), table_of({name: b}), measure).interval()
        more = (0.9,) if name == "latency.p90" else ()
        at = chance.integers(0, 3_000, (800, 3_000))
        drawn = [statistic(b[row], *more) - statistic(a[row], *more) for row in at]
        low, high = np.quantile(drawn, [0.025, 0.975])
        assert found.method == "t"
        assert found.high - found.low == pytest.approx(high - low, rel=0.25), name
        assert found.low + found.high == pytest.approx(low + high, abs=0.5 * (high - low)), name


@pytest.mark.parametrize(("name", "share"), [("latency.p50", 0.5), ("latency.p99", 0.99)])
def test_the_slope_at_a_quantile_is_measured_as_hall_and_sheather_say(name, share):
    chance, n = np.random.default_rng(3), 2_500
    a = chance.lognormal(0, 0.5, n)
    b = a * chance.lognormal(0.1, 0.2, n)
    z = oracle.stats.norm.ppf(share)
    around = 1.96 ** (2 / 3) * (1.5 * oracle.stats.norm.pdf(z) ** 2 / (2 * z * z + 1) / n) ** (
        1 / 3
    )
    parts = []
    for values in (a.tolist(), b.tolist()):
        low, at, high = (oracle.quantile(values, share + d) for d in (-around, 0, around))
        slope = (high - low) / (2 * around)
        parts.append([slope * (share - (value <= at)) for value in values])
    spread = statistics.stdev(y - x for x, y in zip(*parts, strict=True))
    found = pair(table_of({name: a}), table_of({name: b}), parse(name)).interval()
    width = 2 * oracle.stats.t.ppf(0.975, n - 1) * spread / math.sqrt(n)
    assert found.high - found.low == pytest.approx(width, rel=1e-9)


def test_few_queries_that_differ_among_many_are_swapped_in_little_memory():
    a = np.arange(20_000.0)
    b = a.copy()
    b[-10:] += 5_000
    tracemalloc.start()
    slowest = (table_of({"latency.max": values}) for values in (a, b))
    p = swapped(pair(*slowest, parse("latency.max")))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert p == 2 / 2**10  # the maxima lie as far apart only if all are swapped, or none
    assert peak < 50_000_000


def blurred_pairs(differences, levels):
    """Return values whose differences are tenths, though floats do not give them so."""
    a = [level / 10 for level in levels]
    b = [(level + step) / 10 for level, step in zip(levels, differences, strict=True)]
    return a, b


@given(st.lists(st.integers(-3, 3), min_size=2, max_size=8), st.data())
def test_differences_that_floats_blur_tie_as_they_should(steps, data):
    most = data.draw(st.sampled_from([10_000, 10_000_000]))  # 1 s and 1,000 s, in ms
    levels = [data.draw(st.integers(100, most)) for _ in steps]
    a, b = blurred_pairs(steps, levels)
    row = row_of({"latency.mean": a}, {"latency.mean": b})
    assert row["p_randomization"] == float(oracle.sign_flips(steps))
    assert row["p_wilcoxon"] == pytest.approx(float(oracle.wilcoxon(steps)), rel=1e-12)
    assert row["ties"] == steps.count(0)
    if len(set(steps)) == 1:
        assert row["p_t"] == (None if steps[0] else 1.0)
        assert row["method"] == "equal"


def test_what_is_rounding_is_measured_by_the_queries_that_differ():
    row = row_of({"latency.mean": [1e12] + [1.0] * 5}, {"latency.mean": [1e12] + [1.5] * 5})
    assert (row["wins"], row["ties"]) == (5, 1)
    assert row["p"] == row["p_wilcoxon"] == 2 / 2**5


def test_a_change_is_relative_to_the_size_of_what_changed():
    assert row_of({"RR": [-0.5, -0.5]}, {"RR": [-0.25, -0.25]})["relative"] == 0.5
    assert row_of({"RR": [0.0, 0.0]}, {"RR": [1.0, 0.0]})["relative"] is None


def test_sums_of_thirds_tie_with_two_thirds():
    third = 0.1 + 0.2  # not 0.3
    row = row_of({"RR": [third, 0.5, 0.3]}, {"RR": [0.3, 0.5, third]})
    assert (row["wins"], row["ties"], row["losses"]) == (0, 3, 0)
    assert row["p"] == row["p_t"] == row["p_wilcoxon"] == 1.0
    assert (row["low"], row["high"], row["method"]) == (0.0, 0.0, "equal")


def test_perfect_scores_that_floats_blur_tie_in_a_geometric_mean():
    row = row_of({"GMAP": [1.0, 1.0, 0.5]}, {"GMAP": [1 - 2**-53, 1.0, 0.5]})
    assert (row["ties"], row["p"], row["p_wilcoxon"]) == (3, 1.0, 1.0)


def test_a_constant_difference_has_an_interval_without_width_and_no_t():
    row = row_of({"nDCG@10": [0.1, 0.2, 0.3, 0.7]}, {"nDCG@10": [0.2, 0.3, 0.4, 0.8]})
    assert row["method"] == "equal"
    assert row["low"] == row["high"] == pytest.approx(0.1)
    assert row["p_t"] is row["effect"] is row["detectable"] is None
    assert row["p"] == 2 / 16


@pytest.mark.parametrize("scale", [1e-9, 1e6])
def test_the_scale_of_a_measure_changes_no_p(scale):
    chance = np.random.default_rng(8)
    a, b = chance.lognormal(0, 1, 40), chance.lognormal(0.1, 1, 40)
    one = row_of({"cost.mean": a}, {"cost.mean": b})
    other = row_of({"cost.mean": a * scale}, {"cost.mean": b * scale})
    for key in ("p_randomization", "p_t", "p_wilcoxon", "effect", "relative"):
        assert other[key] == pytest.approx(one[key], rel=1e-9), key
    for key in ("difference", "low", "high", "detectable"):
        assert other[key] == pytest.approx(one[key] * scale, rel=1e-9), key


def test_scores_of_another_gold_are_refused():
    one = table_of({MICRO: [0.5, 1.0]}, weights=[2, 3])
    other = table_of({MICRO: [0.5, 1.0]}, weights=[2, 1])
    with pytest.raises(InputError, match=r"1 query count.*q001"):
        compared({"a": one, "b": other})


def runs(n=24, k=4, seed=3, names=("nDCG@10", "GMAP", "latency.p90", MICRO)):
    """Make tables of k runs on much the same queries, with values left out."""
    chance = random.Random(seed)
    tables = {}
    for run in range(k):
        ids = [f"q{i}" for i in range(n) if chance.random() < 0.9 or i < 4]
        columns = {}
        for name in names:
            whole = 8 if name == MICRO else 1_000
            columns[name] = [
                None if chance.random() < 0.1 else chance.randint(0, whole) / whole for _ in ids
            ]
        tables[f"run {run}"] = table_of(columns, ids, [8] * len(ids))
    return tables


def test_pairs_are_all_with_all_or_all_with_the_baseline():
    tables = runs()
    names = list(tables)
    rows = compared(tables).filter(measure="GMAP").select("a", "b").rows()
    assert rows == [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]
    rows = compared(tables, Choices(baseline="run 2")).filter(measure="GMAP")
    assert rows.select("a", "b").rows() == [("run 2", b) for b in names if b != "run 2"]


@pytest.mark.parametrize("test", ["randomization", "t", "wilcoxon"])
@pytest.mark.parametrize("how", ["holm", "bh", "bonferroni", "none"])
def test_p_are_corrected_over_the_pairs_of_a_measure(test, how):
    plain = {"holm": oracle.holm, "bh": oracle.benjamini_hochberg, "bonferroni": oracle.bonferroni}
    rows = compared(runs(), Choices(test=test, correction=how))
    assert rows["p"].equals(rows[f"p_{test}"].rename("p"))
    for (measure,), part in rows.group_by("measure"):
        p = part["p"].to_list()
        if test != "randomization" and measure == "latency.p90":
            assert p == part["p_corrected"].to_list() == [None] * 6
            continue
        expected = plain[how](p) if how in plain else p
        assert part["p_corrected"].to_list() == pytest.approx(expected, rel=1e-12)


def test_a_p_that_is_undefined_is_no_test():
    a, b, c = [0.1, 0.2, 0.3], [0.2, 0.3, 0.4], [0.9, 0.2, 0.4]
    tables = {name: table_of({"RR": values}) for name, values in zip("abc", (a, b, c), strict=True)}
    rows = compared(tables, Choices(test="t", correction="bonferroni"))
    assert rows["p"][0] is rows["p_corrected"][0] is None
    assert rows["p_corrected"][1:].to_list() == [min(1, 2 * p) for p in rows["p"][1:]]


def test_tukey_s_p_rest_on_the_queries_that_all_runs_have():
    tables = runs()
    rows = compared(tables, Choices(correction="tukey"))
    assert rows["p"].equals(compared(tables)["p"])
    assert rows.filter(measure="latency.p90")["p_corrected"].to_list() == [None] * 6
    frames = [t.frame.select("query_id", pl.col("nDCG@10").alias(n)) for n, t in tables.items()]
    common = frames[0]
    for frame in frames[1:]:
        common = common.join(frame, on="query_id")
    common = common.drop_nulls().drop("query_id")
    values = common.rows()
    for a, b, p in rows.filter(measure="nDCG@10").select("a", "b", "p_corrected").iter_rows():
        at = common.columns.index(a), common.columns.index(b)
        expected = float(oracle.tukey(values, at, draws=2_000))
        assert p == pytest.approx(expected, abs=5 * math.sqrt(expected * (1 - expected) / 2_000))


def test_rows_in_any_order_give_the_same_bits():
    chance = random.Random(17)
    tables = runs()
    for correction in ("holm", "tukey"):
        first = compared(tables, Choices(correction=correction))
        for _ in range(3):
            shuffled = {}
            for name, table in tables.items():
                order = list(range(table.frame.height))
                chance.shuffle(order)
                rows = table.rows(pl.Series(order))
                columns = {m.name: rows.frame[m.name].to_list() for m in table.measures}
                weights = rows.weights[MICRO].to_list()
                shuffled[name] = table_of(columns, rows.frame["query_id"], weights)
            again = compared(shuffled, Choices(correction=correction))
            assert_frame_equal(first, again, check_exact=True)


def test_saved_scores_that_were_sorted_otherwise_give_the_same_bits(tmp_path):
    chance = random.Random(18)
    gold = {f"q{i}": {f"d{j}": 1 for j in range(3)} for i in range(20)}
    run = {q: [f"d{chance.randrange(6)}", f"d{6 + chance.randrange(3)}", "d0"] for q in gold}
    scores = karat.evaluate(gold, run, ["nDCG@3", "P@2"])
    path = tmp_path / "scores.parquet"
    scores.write(path)
    told = {"karat": pl.read_parquet_metadata(path)["karat"]}
    pl.read_parquet(path).reverse().write_parquet(path, metadata=told)
    again = karat.Scores.read(path)
    assert_frame_equal(again.per_query, scores.per_query, check_exact=True)
    assert_frame_equal(again.summary(), scores.summary(), check_exact=True)


def test_runs_the_other_way_round_give_the_same_with_other_signs():
    tables = dict(list(runs().items())[:2])
    one = compared(tables).rows(named=True)
    other = compared(dict(reversed(tables.items()))).rows(named=True)
    for here, there in zip(one, other, strict=True):
        assert there["difference"] == -here["difference"]
        assert (there["wins"], there["losses"]) == (here["losses"], here["wins"])
        for key in ("p_randomization", "p_t", "p_wilcoxon", "detectable", "left_out", "n"):
            assert there[key] == here[key], key
        assert (-there["high"], -there["low"]) == pytest.approx((here["low"], here["high"]))


def test_the_size_of_blocks_changes_no_bit(monkeypatch):
    tables = runs()
    first, said = compared(tables), summary(tables["run 0"])
    monkeypatch.setattr(draws, "_CELLS", 1_000)
    draws.times_drawn.cache_clear()
    assert_frame_equal(first, compared(tables), check_exact=True)
    assert_frame_equal(said, summary(tables["run 0"]), check_exact=True)
    draws.times_drawn.cache_clear()


def test_the_number_of_threads_changes_no_bit():
    program = (
        "import test_comparison_numbers as here\n"
        "tables = here.runs(n=300)\n"
        "print(here.compared(tables, here.Choices(correction='tukey')).rows())\n"
        "print(here.compared(tables).rows())\n"
        "print(here.summary(tables['run 1']).rows())\n"
    )
    root = Path(__file__).parent
    said = set()
    for threads in ("1", "2"):
        limits = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "POLARS_MAX_THREADS")
        path = os.pathsep.join([str(root), *sys.path])
        environment = os.environ | dict.fromkeys(limits, threads) | {"PYTHONPATH": path}
        told = subprocess.run(
            [sys.executable, "-c", program],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        said.add(told.stdout)
    assert len(said) == 1
    assert "nDCG@10" in said.pop()


def test_queries_needed_are_those_of_the_differences_spread():
    chance = np.random.default_rng(6)
    a, b = chance.random(30), chance.random(30)
    tables = {
        "a": table_of({"RR": a, "latency.p50": a}),
        "b": table_of({"RR": b, "latency.p50": b}),
    }
    rows = queries_needed(tables, 0.1).rows()
    expected = oracle.needed(0.1, statistics.stdev((b - a).tolist()))
    assert rows == [("a", "b", "RR", 0.1, expected), ("a", "b", "latency.p50", 0.1, None)]


def test_what_can_be_shown_of_a_sum_and_of_a_micro_mean():
    chance = np.random.default_rng(7)
    a, b = chance.random(30), chance.random(30)
    one = row_of({"cost.mean": a}, {"cost.mean": b})["detectable"]
    assert row_of({"cost.sum": a}, {"cost.sum": b})["detectable"] == pytest.approx(30 * one)
    weights = chance.integers(1, 9, 30).tolist()
    x, y = (chance.binomial(weights, 0.5) for _ in range(2))
    tables = {
        name: table_of({MICRO: found / weights}, weights=weights)
        for name, found in (("a", x), ("b", y))
    }
    row = compared(tables).row(0, named=True)
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


def last_of_all(label):
    return [(part is None, "" if part is None else part) for part in label]


@pytest.mark.parametrize(("fields", "names", "label"), FIELDS)
def test_groups_are_summed_up_and_compared_each_by_itself(fields, names, label):
    tables = runs()
    members = {}
    for query in QUERIES.iter_rows(named=True):
        members.setdefault(label(query), set()).add(query["query_id"])
    rows = compared_by(tables, QUERIES, fields)
    assert rows.columns[: len(names)] == names
    order = sorted(members, key=last_of_all)
    assert list(dict.fromkeys(rows.select(names).rows())) == order
    corrected = {}
    for key, own in members.items():
        part = {
            name: groups.of_queries(table, pl.Series(sorted(own))) for name, table in tables.items()
        }
        is_own = pl.all_horizontal(
            pl.col(n).eq_missing(pl.lit(v)) for n, v in zip(names, key, strict=True)
        )
        here = rows.filter(is_own).drop(names)
        assert_frame_equal(here.drop("p_corrected"), compared(part).drop("p_corrected"))
        for name, p, told in here.select("measure", "p", "p_corrected").iter_rows():
            corrected.setdefault(name, []).append((p, told))
        said = groups.by(tables["run 0"], QUERIES, fields).filter(is_own).drop(names)
        expected = summary(part["run 0"]).with_columns(small=pl.col("n") < 5)
        assert_frame_equal(said, expected)
    for both in corrected.values():
        tested = [(p, told) for p, told in both if p is not None]
        told = [p for _, p in tested]
        assert told == pytest.approx(oracle.holm([p for p, _ in tested]), rel=1e-12)


def test_a_group_is_small_under_five_queries():
    table = table_of({"RR": [0.1] * 9}, QUERIES["query_id"][:9])
    queries = QUERIES[:9].with_columns(side=pl.Series(["x"] * 5 + ["y"] * 4))
    assert groups.by(table, queries, ["side"])["small"].to_list() == [False, True]


def test_a_field_named_as_a_column_of_numbers_is_refused():
    with pytest.raises(InputError, match="grouped by 'p'"):
        compared_by(runs(), QUERIES, ["p"])
    assert groups.by(runs()["run 0"], QUERIES, ["p"])["p"].to_list() == ["x"] * 4


def test_what_cannot_be_grouped_is_said():
    tables = runs()
    with pytest.raises(InputError, match="no query to group"):
        compared_by(tables, QUERIES.clear(), ["level"])
    with pytest.raises(InputError, match="Tukey"):
        compared_by(tables, QUERIES, ["level"], Choices(correction="tukey"))
    with pytest.raises(InputError, match="plain values"):
        groups.by(tables["run 0"], QUERIES, [lambda query: [query["level"]]])


@pytest.mark.parametrize(
    "wrong",
    [{"test": "sign"}, {"correction": "sidak"}, {"confidence": 1.0}, {"confidence": 0.0}],
)
def test_choices_there_are_not_are_refused(wrong):
    with pytest.raises(InputError):
        Choices(**wrong)


def test_the_confidence_chosen_is_that_of_the_interval():
    a, b = ({"RR": np.random.default_rng(seed).random(40)} for seed in (1, 2))
    narrow, wide = (row_of(a, b, Choices(confidence=c)) for c in (0.5, 0.99))
    found = interval(Sample("mean", b["RR"] - a["RR"], difference=True), 0.5)
    assert (narrow["low"], narrow["high"]) == pytest.approx((found.low, found.high), rel=1e-9)
    assert wide["low"] < narrow["low"] < narrow["high"] < wide["high"]
