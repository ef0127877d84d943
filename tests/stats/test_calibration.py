"""Whether tests and intervals keep their word: simulated experiments whose truth is known.

`KARAT_SLOW=1` runs the 2,000 experiments of each; without it a tenth, with wider limits: the
share of 2,000 that goes wrong by chance has a standard error of 0.5%, of 200 one of 1.5%.
"""

import math

import numpy as np
import pytest

from karat.stats.corrections import correct
from karat.stats.intervals import Interval, interval
from karat.stats.randomization import randomization
from karat.stats.samples import Sample
from karat.stats.student import student
from karat.stats.tukey import tukey
from karat.stats.wilcoxon import wilcoxon
from support.effort import FULL

EXPERIMENTS = 2_000 if FULL else 200
DRAWS = 1_999  # a p of 0.05 is one of them, so nothing is lost by their being few
ALPHA = 0.05

pytestmark = pytest.mark.slow


def within(share, low, high):
    """Tell whether a share lies between limits, which chance widens where experiments are few."""
    print(f"{share:.4f}")
    more = 0 if FULL else 3 * math.sqrt(ALPHA * (1 - ALPHA) / EXPERIMENTS)
    return low - more <= share <= high + more


def exchangeable(chance, n, runs, experiments):
    """Draw values of runs of which none is better: skewed, alike within a query, with ties."""
    query = chance.beta(0.6, 0.9, (n, 1, experiments))
    own = chance.beta(0.6, 0.9, (n, runs, experiments))
    return np.round(0.6 * query + 0.4 * own, 3)


@pytest.mark.parametrize("test", ["randomization", "t", "wilcoxon"])
def test_a_test_finds_what_is_not_there_in_five_of_a_hundred(test):
    values = exchangeable(np.random.default_rng(61), 50, 2, EXPERIMENTS)
    apart = values[:, 1] - values[:, 0]
    if test == "randomization":
        p = randomization(apart, draws=DRAWS)
    elif test == "t":
        p = np.array([student(Sample("mean", one, difference=True)) for one in apart.T])
    else:
        p = np.array([wilcoxon(one) for one in apart.T])
    assert within(float((p <= ALPHA).mean()), 0.04, 0.06)


def test_more_ranks_than_are_counted_out_keep_to_it_too():
    values = exchangeable(np.random.default_rng(62), 80, 2, EXPERIMENTS)
    p = np.array([wilcoxon(one) for one in (values[:, 1] - values[:, 0]).T])
    assert within(float((p <= ALPHA).mean()), 0.04, 0.06)


def test_few_queries_swapped_in_every_way_never_find_too_much():
    values = exchangeable(np.random.default_rng(63), 9, 2, EXPERIMENTS)
    p = randomization(values[:, 1] - values[:, 0])
    # Of 512 ways at most 24 may be reached: 4.7%.
    assert within(float((p <= ALPHA).mean()), 0.03, 0.06)


PAIRS = [(a, b) for a in range(4) for b in range(a + 1, 4)]


def test_tukey_finds_any_pair_of_four_in_five_of_a_hundred():
    values = exchangeable(np.random.default_rng(64), 50, 4, EXPERIMENTS)
    draws = 999
    found = [tukey(values[:, :, at], draws).min() <= ALPHA for at in range(EXPERIMENTS)]
    assert within(float(np.mean(found)), 0.04, 0.06)


def test_holm_finds_any_pair_of_four_in_at_most_five_of_a_hundred():
    values = exchangeable(np.random.default_rng(65), 50, 4, EXPERIMENTS)
    p = np.array([randomization(values[:, b] - values[:, a], draws=DRAWS) for a, b in PAIRS])
    found = [correct(one, "holm").min() <= ALPHA for one in p.T]
    assert within(float(np.mean(found)), 0.0, 0.06)


def covered(samples, truth):
    """Return in which share of the intervals the truth lies, and by which methods they were made.

    An end that nothing bounds holds whatever the truth is.
    """
    inside, methods = 0, set()
    for sample in samples:
        found: Interval = interval(sample)
        methods.add(found.method)
        low = -math.inf if found.low is None else found.low
        high = math.inf if found.high is None else found.high
        inside += low <= truth <= high
    return inside / len(samples), methods


LIMITS = {50: (0.93, 0.97), 200: (0.935, 0.965)}


@pytest.mark.parametrize("n", [50, 200])
def test_intervals_of_skewed_values_hold_the_truth(n):
    drawn = np.random.default_rng(66).beta(0.6, 0.9, (EXPERIMENTS, n))
    share, methods = covered([Sample("mean", values) for values in drawn], 0.4)
    assert methods == {"bca"}
    assert within(share, *LIMITS[n])


@pytest.mark.parametrize("n", [50, 200])
def test_intervals_of_differences_hold_the_truth(n):
    chance = np.random.default_rng(67)
    query = chance.beta(0.6, 0.9, (EXPERIMENTS, n))
    a = 0.6 * query + 0.4 * chance.beta(0.6, 0.9, (EXPERIMENTS, n))
    b = 0.5 * query + 0.5 * chance.beta(0.9, 0.6, (EXPERIMENTS, n))
    truth = 0.5 * 0.4 + 0.5 * 0.6 - 0.4
    samples = [Sample("mean", values, difference=True) for values in b - a]
    share, methods = covered(samples, truth)
    assert methods == {"bca"}
    assert within(share, *LIMITS[n])


@pytest.mark.parametrize("n", [50, 200])
def test_intervals_of_geometric_means_hold_the_truth(n):
    drawn = np.random.default_rng(68).beta(1.5, 1.0, (EXPERIMENTS, n))
    truth = math.exp(-1 / 1.5)  # of Beta(a, 1), −log is exponential with mean 1 / a
    share, _ = covered([Sample("geometric", values) for values in drawn], truth)
    assert within(share, *LIMITS[n])


@pytest.mark.parametrize("n", [50, 200])
def test_intervals_of_micro_means_hold_the_truth(n):
    chance = np.random.default_rng(69)
    weights = chance.integers(1, 9, (EXPERIMENTS, n))
    # Queries with more evidence are easier, so that it matters that queries are resampled.
    share_found = chance.beta(1.0 + weights / 4, 1.5)
    found = chance.binomial(weights, share_found)
    each = np.arange(1, 9)
    truth = float((each * (1.0 + each / 4) / (2.5 + each / 4)).sum() / each.sum())
    rows = zip(found / weights, weights.astype(float), strict=True)
    share, methods = covered([Sample("micro", v, w) for v, w in rows], truth)
    assert methods == {"bca"}
    assert within(share, *LIMITS[n])


def test_student_s_interval_of_many_queries_holds_the_truth():
    drawn = np.random.default_rng(70).beta(0.6, 0.9, (EXPERIMENTS, 3_000))
    share, methods = covered([Sample("mean", values) for values in drawn], 0.4)
    assert methods == {"t"}
    assert within(share, 0.935, 0.965)


def test_wilson_s_interval_holds_the_truth_on_average():
    chance = np.random.default_rng(71)
    truths = chance.random(EXPERIMENTS)
    inside = [
        covered([Sample("mean", (chance.random(50) < truth).astype(float), binary=True)], truth)[0]
        for truth in truths
    ]
    assert within(float(np.mean(inside)), 0.935, 0.965)


@pytest.mark.parametrize(("how", "share"), [("p50", 0.5), ("p90", 0.9)])
def test_order_statistics_hold_the_truth_at_least_as_often(how, share):
    drawn = np.random.default_rng(72).exponential(1.0, (EXPERIMENTS, 120))
    found, methods = covered([Sample(how, values) for values in drawn], -math.log(1 - share))
    assert methods == {"order"}
    assert within(found, 0.94, 0.99)
