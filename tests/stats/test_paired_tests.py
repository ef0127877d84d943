"""Significance tests, corrections and power against oracles/stats.py, SciPy and statsmodels."""

import math
from fractions import Fraction
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.power import TTestPower

from karat.stats import paired_tests, resampling
from karat.stats.corrections import correct, tukey
from karat.stats.paired_tests import (
    DRAWS,
    DRAWS_OF_MANY,
    effect_size,
    sign_flips,
    t_test,
    wilcoxon_test,
)
from karat.stats.power import detectable_difference, required_queries
from karat.stats.resampling import all_sign_patterns, coin_flips, to_integers
from karat.stats.samples import Sample
from oracles import stats as oracle
from support.effort import examples
from support.score_tables import pairs_of

SCALES = (1e-9, 1e-3, 1.0, 1e6)
COUNTS = st.lists(st.integers(-5, 5), min_size=1, max_size=8)


def differences_of(values):
    return Sample("mean", np.array(values, dtype=float))


def one_column(values):
    return np.array(values, dtype=float)[:, None]


def randomization(columns, draws=None):
    """Return the p of the sign-flip test for each column of differences, all tested together."""
    return np.array([found.p for found in sign_flips(pairs_of(columns), draws)])


@examples(100, 1_000)
@given(COUNTS, st.sampled_from(SCALES))
def test_few_differences_are_swapped_in_every_way(counts, scale):
    found = randomization(one_column(counts) * scale)
    assert found[0] == float(oracle.sign_flips(counts))


@examples(60, 600)
@given(st.lists(st.integers(-64, 64).map(lambda count: count / 64), min_size=2, max_size=9))
def test_every_way_of_swapping_is_scipy_s_exact_permutation_test(values):
    # SciPy adds floats and misses ties that rounding hides; sums of 64ths are exact.
    expected = stats.permutation_test(
        (values,), np.sum, permutation_type="samples", n_resamples=np.inf
    ).pvalue
    # SciPy doubles the smaller tail, which for signs is the same.
    assert randomization(one_column(values))[0] == pytest.approx(min(1.0, expected), abs=1e-12)


@pytest.mark.parametrize(
    "values",
    [
        [1.0, 0.531, 0.531, -1.0, -0.391, -0.328, -0.336],  # SciPy 1.17: 0.984375
        [0.0, 0.0, 0.797, 0.609, -0.188, -0.172, -0.531, -0.516],  # SciPy 1.17: 0.96875
    ],
)
def test_sums_that_tie_in_exact_arithmetic_tie(values):
    decimals = [Fraction(str(value)) for value in values]
    assert oracle.sign_flips(values) == oracle.sign_flips(decimals) == 1
    assert randomization(one_column(values))[0] == 1


@examples(100, 1_000)
@given(st.lists(st.integers(-1_000, 1_000), min_size=1, max_size=8))
def test_swaps_of_thousandths_tie_as_exact_decimals_do(counts):
    found = randomization(one_column(counts) / 1_000)
    assert found[0] == float(oracle.sign_flips(counts))


@examples(60, 600)
@given(st.lists(st.lists(st.integers(-4, 4), min_size=7, max_size=7), min_size=1, max_size=5))
def test_columns_together_have_the_p_they_have_alone(columns):
    table = np.array(columns, dtype=float).T
    alone = [randomization(table[:, [at]])[0] for at in range(table.shape[1])]
    assert randomization(table).tolist() == alone
    with_zeros = np.vstack([np.zeros((3, table.shape[1])), table])
    assert randomization(with_zeros).tolist() == alone


def test_queries_without_a_difference_are_not_swapped():
    values = one_column([0.0] * 1_100 + [1.0, 1.0, 1.0])
    assert randomization(values)[0] == 0.25


def test_more_differences_are_drawn_and_the_observed_one_is_one_of_the_draws():
    values = np.linspace(0.5, 1.5, 40)
    assert randomization(one_column(values), draws=999)[0] == 1 / 1_000


@pytest.mark.parametrize("n", [18, 40, 65, 200])
def test_drawn_p_is_the_share_of_the_draws_that_reach_the_difference(n):
    values = np.random.default_rng(n).integers(-9, 10, n) + 1
    draws = 3_000
    sums = [
        sum(-value if flip else value for value, flip in zip(values.tolist(), row, strict=True))
        for block in coin_flips(n, draws)
        for row in block.tolist()
    ]
    reached = sum(abs(one) >= abs(int(values.sum())) for one in sums)
    expected = (reached + 1) / (draws + 1)
    assert randomization(one_column(values), draws=draws)[0] == expected


def test_drawn_p_is_close_to_the_exact_one(monkeypatch):
    chance = np.random.default_rng(3)
    for _ in range(4):
        values = chance.normal(0.25, 1, 16)
        exact = randomization(one_column(values))[0]
        with monkeypatch.context() as patched:
            patched.setattr(paired_tests, "_MOST_ENUMERATED", 0)
            drawn = randomization(one_column(values), draws=50_000)[0]
        assert drawn != exact
        assert drawn == pytest.approx(exact, abs=5 * math.sqrt(exact * (1 - exact) / 50_000))


@pytest.mark.parametrize("ties", [0, 1, 30])
def test_all_swaps_are_tried_of_up_to_16_queries_that_differ(ties):
    def p_of(n, **options):
        return randomization(one_column([1.0] * n + [0.0] * ties), **options)[0]

    assert p_of(10) == p_of(10, draws=1_000) == 2 / 2**10
    assert p_of(16) == 2 / 2**16
    drawn = p_of(17) * (DRAWS + 1)
    assert drawn == pytest.approx(round(drawn), abs=1e-9)
    assert 1 <= round(drawn) <= 7  # 0.76 draws of all or of none are expected, and one is added


def test_coins_are_fair_and_every_pattern_occurs_once():
    coins = np.concatenate(list(coin_flips(130, 8_000)))
    assert set(np.unique(coins).tolist()) == {0.0, 1.0}
    assert np.abs(coins.mean(axis=0) - 0.5).max() < 5 * 0.5 / math.sqrt(8_000)
    together = np.corrcoef(coins.T) - np.eye(130)
    assert np.abs(together).max() < 6 / math.sqrt(8_000)
    assert len({tuple(row) for row in all_sign_patterns(7).tolist()}) == 128


@examples(100, 1_000)
@given(st.lists(st.integers(-9, 9), min_size=2, max_size=30), st.sampled_from(SCALES))
def test_student_s_p_is_scipy_s(counts, scale):
    values = [count / 10 * scale for count in counts]
    made = differences_of(values)
    if len(set(counts)) == 1:
        assert t_test(made) == (1.0 if counts[0] == 0 else None)
        assert effect_size(made) == (0.0 if counts[0] == 0 else None)
        return
    expected = stats.ttest_rel(values, [0.0] * len(values))
    assert t_test(made) == pytest.approx(expected.pvalue, rel=1e-9)
    assert effect_size(made) == pytest.approx(
        expected.statistic / math.sqrt(len(values)), rel=1e-9, abs=1e-9
    )


@pytest.mark.parametrize("values", [[], [0.0], [0.5]])
def test_fewer_than_two_differences_have_no_t(values):
    assert t_test(differences_of(values)) is None
    assert effect_size(differences_of(values)) is None


def test_equal_differences_have_no_t_despite_rounding():
    values = [(x + 1) / 10 - x / 10 for x in range(20)]
    assert len(set(values)) > 1
    assert t_test(differences_of(values)) is None


@examples(100, 1_000)
@given(COUNTS, st.sampled_from(SCALES))
def test_wilcoxon_p_of_few_differences_is_exact(counts, scale):
    found = wilcoxon_test(np.array(counts) * scale)
    assert found == pytest.approx(float(oracle.wilcoxon(counts)), rel=1e-12)


@examples(60, 600)
@given(st.lists(st.integers(-20, 25), min_size=1, max_size=50))
def test_wilcoxon_p_of_up_to_fifty_differences_is_exact(counts):
    found = wilcoxon_test(np.array(counts, dtype=float))
    expected = oracle.wilcoxon_by_counts(counts) if any(counts) else 1
    assert found == pytest.approx(float(expected), rel=1e-9)


@examples(60, 600)
@given(st.lists(st.integers(-99, 120), min_size=1, max_size=49, unique_by=abs))
def test_wilcoxon_p_without_ties_is_scipy_s_exact_one(counts):
    counts = [count for count in counts if count] or [1]
    expected = stats.wilcoxon(counts, method="exact").pvalue
    assert wilcoxon_test(np.array(counts, dtype=float)) == pytest.approx(expected, rel=1e-9)


@examples(25, 300)
@given(st.integers(51, 120), st.integers(1, 40), st.integers(0, 2**32 - 1))
def test_wilcoxon_p_of_many_differences_is_the_normal_approximation(n, most, seed):
    counts = np.random.default_rng(seed).integers(1, most + 1, n)
    counts = counts * np.where(np.random.default_rng(seed + 1).random(n) < 0.6, 1, -1)
    expected = stats.wilcoxon(counts, method="approx", correction=False).pvalue
    found = wilcoxon_test(np.append(counts, [0, 0]).astype(float))
    assert found == pytest.approx(expected, rel=1e-9)
    assert found == pytest.approx(oracle.wilcoxon_by_normal(counts.tolist()), rel=1e-9)


def test_wilcoxon_p_of_millions_of_ties_is_that_of_a_sign_test():
    up, down = 1_101_000, 1_099_000
    expected = 2 * stats.norm.sf((up - down) / math.sqrt(up + down))
    assert wilcoxon_test(np.repeat([1.0, -1.0], [up, down])) == pytest.approx(expected, rel=1e-6)


def test_wilcoxon_p_is_exact_up_to_fifty_nonzero_differences():
    counts = list(range(-20, 31))
    exact, normal = oracle.wilcoxon_by_counts(counts), oracle.wilcoxon_by_normal(counts)
    assert wilcoxon_test(np.array(counts, float)) == pytest.approx(
        float(exact), rel=1e-9
    )  # 50 of 51
    counts = [count for count in range(-20, 32) if count]
    exact, normal = oracle.wilcoxon_by_counts(counts), oracle.wilcoxon_by_normal(counts)
    assert normal != pytest.approx(float(exact), rel=1e-6)
    assert wilcoxon_test(np.array(counts, float)) == pytest.approx(normal, rel=1e-9)


def test_differences_that_differ_by_rounding_share_their_rank():
    blurred = np.array([0.1, 0.1 + 1e-14, 0.1 - 1e-14, -0.1, 0.2, -0.2 - 1e-14])
    plain = float(oracle.wilcoxon([1, 1, 1, -1, 2, -2]))
    assert wilcoxon_test(blurred, rounding=1e-12) == pytest.approx(plain, rel=1e-12)
    assert wilcoxon_test(blurred, rounding=0.0) != pytest.approx(plain, rel=1e-3)


RUNS = st.integers(2, 4).flatmap(
    lambda k: st.lists(st.lists(st.integers(0, 9), min_size=k, max_size=k), min_size=1, max_size=4)
)


@examples(25, 250)
@given(RUNS, st.sampled_from(SCALES), st.sampled_from((1, 3, 10)))
def test_tukey_s_p_is_close_to_that_of_all_shuffles(rows, scale, whole):
    rows = rows if len(rows[0]) < 4 else rows[:2]  # 24 shuffles per query
    table = np.array(rows) / whole * scale
    found, again = tukey(table), tukey(table)
    assert (found == again).all()
    assert (found == found.T).all()
    assert (found.diagonal() == 1).all()
    pairs = [(a, b) for a in range(table.shape[1]) for b in range(a)]
    for both, exact in zip(pairs, map(float, oracle.tukey(rows, pairs, exact=True)), strict=True):
        reach = 5 * math.sqrt(exact * (1 - exact) / 10_000) + 2 / 10_000
        assert found[both] == pytest.approx(exact, abs=reach)


def test_tukey_s_p_is_close_to_that_of_other_shuffles():
    chance = np.random.default_rng(12)
    rows = chance.normal([0, 0.3, 0.5, 0.2, 0.1], 1, (25, 5)).round(2)
    found = tukey(rows)
    pairs = ((0, 2), (1, 4))
    expected = oracle.tukey(rows.tolist(), pairs, draws=2_000, seed=13)
    for both, p in zip(pairs, map(float, expected), strict=True):
        assert found[both] == pytest.approx(p, abs=5 * math.sqrt(p * (1 - p) / 2_000))


def test_tukey_s_p_of_two_runs_is_that_of_the_randomization_test():
    rows = np.random.default_rng(14).normal([0, 0.4], 1, (12, 2))
    exact = randomization(rows[:, [1]] - rows[:, [0]])[0]
    assert tukey(rows)[0, 1] == pytest.approx(exact, abs=5 * math.sqrt(exact / 10_000))


def test_smallest_tukey_p_is_one_of_the_draws_plus_one():
    rows = np.column_stack([np.zeros(60), np.ones(60), np.full(60, 0.5)])
    assert tukey(rows, draws=99)[0, 1] == 1 / 100


CORRECTIONS = [
    ("holm", "holm", oracle.holm),
    ("bh", "fdr_bh", oracle.benjamini_hochberg),
    ("bonferroni", "bonferroni", oracle.bonferroni),
]


@examples(50, 500)
@given(
    st.lists(
        st.one_of(st.floats(0, 1), st.sampled_from([0.01, 0.04, 1.0])), min_size=1, max_size=20
    )
)
def test_corrections_are_those_of_statsmodels(p):
    for ours, theirs, plain in CORRECTIONS:
        with patch("gc.collect"):  # statsmodels collects garbage in every call
            expected = multipletests(p, method=theirs)[1].tolist()
        found = correct(np.array(p), ours).tolist()
        assert found == pytest.approx(expected, rel=1e-12), ours
        assert found == pytest.approx(plain(p), rel=1e-12), ours


def test_no_correction_keeps_p_and_no_p_gives_no_p():
    assert correct(np.array([0.5, 0.01]), "none").tolist() == [0.5, 0.01]
    for how in ("holm", "bh", "bonferroni", "none"):
        assert correct(np.array([]), how).tolist() == []


@pytest.mark.parametrize("n", [3, 4, 5, 8, 20, 50, 300, 5_000])
@pytest.mark.parametrize("spread", [1e-9, 0.3, 1e6])
def test_detectable_difference_is_that_of_statsmodels(n, spread):
    found = detectable_difference(spread, n)
    assert TTestPower().power(found / spread, n, 0.05) == pytest.approx(0.8, rel=1e-9)
    assert found == pytest.approx(oracle.detectable(spread, n), rel=1e-9)


def test_detectable_difference_needs_two_queries_and_a_spread():
    assert detectable_difference(2.0, 2) == pytest.approx(oracle.detectable(2.0, 2), rel=1e-9)
    assert detectable_difference(2.0, 1) is None
    assert detectable_difference(0.0, 10) is None


@examples(50, 500)
@given(st.integers(1, 400), st.sampled_from(SCALES))
def test_queries_needed_are_the_fewest_with_the_power(parts, scale):
    difference = parts / 40 * scale
    found = required_queries(scale, difference)
    assert required_queries(scale, -difference) == found
    assert oracle.power(difference / scale, found) >= 0.8
    assert found == 2 or oracle.power(difference / scale, found - 1) < 0.8


def test_queries_needed_for_a_small_difference_are_those_of_the_normal_formula():
    both = stats.norm.ppf(0.975) + stats.norm.ppf(0.8)
    for effect in (1e-2, 1e-3, 1e-4):
        assert required_queries(1.0, effect) == pytest.approx((both / effect) ** 2, rel=1e-4)
    assert required_queries(1.0, 0.0) is None
    assert required_queries(0.0, 0.1) is None
    assert required_queries(1.0, 1e-9) is None


@examples(30, 99)
@given(st.integers(2, 100))
def test_detectable_difference_of_n_queries_needs_n_queries(n):
    assert required_queries(1.0, detectable_difference(1.0, n) * (1 + 1e-9)) == n


def test_both_exact_oracles_of_wilcoxon_agree():
    for counts in ([1, 2, 2, -3, 0], [4, -4, 4], [1], [-2, 5, 5, -5, 1, 7]):
        assert oracle.wilcoxon(counts) == oracle.wilcoxon_by_counts(counts)
    assert oracle.wilcoxon([1, 2, 3, -4]) == Fraction(14, 16)


def test_many_queries_have_fewer_draws(monkeypatch):
    monkeypatch.setattr(paired_tests, "MANY_QUERIES", 200)
    few, many = (np.random.default_rng(1).normal(0.5, 0.1, (n, 1)) for n in (200, 201))
    assert randomization(few)[0] == 1 / (DRAWS + 1)
    assert randomization(many)[0] == 1 / (DRAWS_OF_MANY + 1)


def test_many_queries_have_a_hundred_draws_per_pair_at_least(monkeypatch):
    # Corrected for all pairs, the smallest p must still be far below 0.05.
    monkeypatch.setattr(paired_tests, "MANY_QUERIES", 200)
    many = np.random.default_rng(1).normal(0.5, 0.1, (201, 110))
    assert randomization(many)[0] == 1 / (11_000 + 1)


def test_more_than_fifty_thousand_queries_are_many():
    many = np.random.default_rng(1).normal(0.5, 0.1, (50_001, 1))
    assert randomization(many)[0] == 1 / (DRAWS_OF_MANY + 1)


@pytest.mark.parametrize(("n", "cells"), [(1, 100), (17, 100), (130, 64), (1_000, 5_000)])
def test_sums_over_flipped_queries_do_not_depend_on_the_parts(monkeypatch, n, cells):
    columns = np.rint(np.random.default_rng(n).normal(0, 1e6, (n, 3)))
    expected = np.concatenate(list(coin_flips(n, 300))) @ columns
    monkeypatch.setattr(resampling, "_BLOCK_CELLS", cells)
    assert (np.concatenate(list(resampling.flipped_sums(columns, 300))) == expected).all()


@pytest.mark.parametrize("cells", [100, 999, 5_000])
def test_block_size_does_not_change_the_draws(monkeypatch, cells):
    monkeypatch.setattr(resampling, "RESAMPLES", 300)
    sizes = [*range(1, 35), 64, 65, 129]  # odd and even rows, whole and partial words
    resamples = [np.concatenate(list(resampling.resamples(n))) for n in sizes]
    coins = [np.concatenate(list(coin_flips(n, 300))) for n in sizes]
    monkeypatch.setattr(resampling, "_BLOCK_CELLS", cells)
    monkeypatch.setattr(resampling, "_BLOCK_ROWS", 1)
    for n, drawn, flipped in zip(sizes, resamples, coins, strict=True):
        assert drawn.shape == flipped.shape == (300, n)
        assert (np.concatenate(list(resampling.resamples(n))) == drawn).all()
        assert (np.concatenate(list(coin_flips(n, 300))) == flipped).all()


@given(
    st.lists(st.floats(-1, 1, width=32), min_size=1, max_size=40),
    st.integers(-300, 300),
    st.sampled_from((0.0, 1e-12, 1e-3)),
)
def test_whole_numbers_have_the_same_sum_in_every_order(values, exponent, rounding):
    column = one_column(values) * 2.0**exponent / 3
    largest = float(np.abs(column).max())
    made, exponents = to_integers(column, rounding * largest)
    integers = [int(one) for one in made[:, 0]]
    assert integers == made[:, 0].tolist()
    assert sum(map(abs, integers)) < 2**53  # so that no partial sum is rounded
    error = np.abs(np.ldexp(made, -exponents) - column).max()
    assert error <= max(rounding, len(values) * 2.0**-51) * largest


def test_block_size_does_not_change_the_result(monkeypatch):
    differences = np.random.default_rng(2).normal(0.0002, 0.1, (20_000, 2))
    found = randomization(differences)
    monkeypatch.setattr(resampling, "_BLOCK_ROWS", 1)
    assert randomization(differences).tolist() == found.tolist()
    assert 0.001 < found.min() < 1
