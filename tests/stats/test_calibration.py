"""Error rates of the tests and coverage of the intervals in simulations whose truth is known.

By default every simulation has 250 experiments and must be compatible with the limits; with
`KARAT_SLOW=1` it has 2,000 and must be within them. Seeds are fixed, so results do not vary.
"""

import math

import numpy as np
import polars as pl
import pytest

from karat.measures import parse
from karat.stats import paired_tests
from karat.stats.corrections import correct, tukey
from karat.stats.inference import infer
from karat.stats.intervals import intervals
from karat.stats.paired_tests import sign_flips, t_test, wilcoxon_test
from karat.stats.pairs import Pair
from karat.stats.samples import Sample
from support import calibration
from support.effort import FULL
from support.score_tables import pairs_of

EXPERIMENTS = 2_000 if FULL else 250
DRAWS = 1_999  # few, but (draws + 1) × 0.05 is a whole number, so the test is exact at 0.05
ALPHA = 0.05


def within(share, low, high):
    return calibration.within(share, low, high, EXPERIMENTS)


def randomization(columns, draws=None):
    return np.array([found.p for found in sign_flips(pairs_of(columns), draws)])


def test_limits_reject_tests_and_intervals_that_are_clearly_wrong():
    assert within(0.05, 0.04, 0.06)
    assert not within(0.0, 0.04, 0.06)  # never significant
    assert not within(0.12, 0.04, 0.06)
    assert not within(1.0, 0.93, 0.97)  # intervals that are always right
    assert not within(0.86, 0.93, 0.97)


def exchangeable(chance, n, runs, experiments):
    """Draw values of equally good runs: skewed, correlated within a query, with ties."""
    query = chance.beta(0.6, 0.9, (n, 1, experiments))
    run = chance.beta(0.6, 0.9, (n, runs, experiments))
    return np.round(0.6 * query + 0.4 * run, 3)


def differences(seed, n):
    """Draw the differences of two equally good runs, one column per experiment."""
    values = exchangeable(np.random.default_rng(seed), n, 2, EXPERIMENTS)
    return values[:, 1] - values[:, 0]


@pytest.mark.parametrize("test", ["randomization", "t", "wilcoxon"])
def test_type_one_error_is_five_percent(test):
    columns = differences(61, 50)
    if test == "randomization":
        p = randomization(columns, draws=DRAWS)
    elif test == "t":
        p = np.array([t_test(Sample("mean", one)) for one in columns.T])
    else:
        p = np.array([wilcoxon_test(one) for one in columns.T])
    assert within(float((p <= ALPHA).mean()), 0.04, 0.06)


def test_type_one_error_of_wilcoxon_s_normal_approximation_is_five_percent():
    p = np.array([wilcoxon_test(one) for one in differences(62, 80).T])
    assert within(float((p <= ALPHA).mean()), 0.04, 0.06)


def test_type_one_error_of_the_exact_randomization_test_is_at_most_five_percent():
    p = randomization(differences(63, 9))
    # At most 24 of the 512 swaps can reach a significant difference: 4.7%.
    assert within(float((p <= ALPHA).mean()), 0.03, 0.06)


PAIRS = [(a, b) for a in range(4) for b in range(a + 1, 4)]


def test_family_wise_error_of_tukey_s_test_is_five_percent():
    values = exchangeable(np.random.default_rng(64), 50, 4, EXPERIMENTS)
    found = [tukey(values[:, :, at], draws=999).min() <= ALPHA for at in range(EXPERIMENTS)]
    assert within(float(np.mean(found)), 0.04, 0.06)


def test_family_wise_error_of_holm_s_correction_is_at_most_five_percent():
    values = exchangeable(np.random.default_rng(65), 50, 4, EXPERIMENTS)
    p = np.array([randomization(values[:, b] - values[:, a], draws=DRAWS) for a, b in PAIRS])
    found = [correct(one, "holm").min() <= ALPHA for one in p.T]
    assert within(float(np.mean(found)), 0.02, 0.06)


def coverage(samples, truths):
    """Return the share of intervals that contain the truth, and the methods they come from."""
    found = []
    for begin in range(0, len(samples), 100):  # together they share draws; all need much memory
        found += intervals(samples[begin : begin + 100])
    return coverage_of(found, truths)


def coverage_of(found, truths):
    """Return the same for intervals; an open end contains everything."""
    inside = [
        (-math.inf if ends.low is None else ends.low)
        <= truth
        <= (math.inf if ends.high is None else ends.high)
        for ends, truth in zip(found, truths, strict=True)
    ]
    return sum(inside) / len(inside), {ends.method for ends in found}


def covered_by(samples, truth):
    return coverage(samples, [truth] * len(samples))


LIMITS = {50: (0.93, 0.97), 200: (0.935, 0.965)}


@pytest.mark.parametrize("n", [50, 200])
def test_coverage_for_skewed_values(n):
    drawn = np.random.default_rng(66).beta(0.6, 0.9, (EXPERIMENTS, n))
    share, methods = covered_by([Sample("mean", v, bounded=True) for v in drawn], 0.4)
    assert methods == {"logit-t"}
    assert within(share, *LIMITS[n])


@pytest.mark.parametrize("n", [50, 200])
def test_coverage_for_skewed_values_of_an_unbounded_measure(n):
    drawn = 1_000 * np.random.default_rng(66).beta(0.6, 0.9, (EXPERIMENTS, n))
    share, methods = covered_by([Sample("mean", values) for values in drawn], 400)
    assert methods == {"bca"}
    assert within(share, *LIMITS[n])


@pytest.mark.parametrize("test", ["randomization", "t"])
@pytest.mark.parametrize("n", [50, 200])
def test_coverage_for_differences(n, test, monkeypatch):
    chance = np.random.default_rng(67)
    query = chance.beta(0.6, 0.9, (EXPERIMENTS, n))
    a = 0.6 * query + 0.4 * chance.beta(0.6, 0.9, (EXPERIMENTS, n))
    b = 0.5 * query + 0.5 * chance.beta(0.9, 0.6, (EXPERIMENTS, n))
    truth = 0.5 * 0.4 + 0.5 * 0.6 - 0.4
    monkeypatch.setattr(paired_tests, "DRAWS", DRAWS)
    found = [one.interval for one in infer(pairs_of((b - a).T, "nDCG@10"), test)]
    share, methods = coverage_of(found, [truth] * EXPERIMENTS)
    assert methods == {"flips" if test == "randomization" else "t"}
    assert within(share, *LIMITS[n])


@pytest.mark.parametrize("n", [50, 200])
def test_coverage_for_geometric_means(n):
    drawn = np.random.default_rng(68).beta(1.5, 1.0, (EXPERIMENTS, n))
    truth = math.exp(-1 / 1.5)  # for Beta(a, 1), −log is exponential with mean 1 / a
    share, _ = covered_by([Sample("geometric", values) for values in drawn], truth)
    assert within(share, *LIMITS[n])


@pytest.mark.parametrize("n", [50, 200])
def test_coverage_for_micro_means(n):
    chance = np.random.default_rng(69)
    weights = chance.integers(1, 9, (EXPERIMENTS, n))
    # Queries with more evidence are easier, so that it matters that queries are resampled.
    recalled = chance.binomial(weights, chance.beta(1.0 + weights / 4, 1.5))
    sizes = np.arange(1, 9)
    truth = float((sizes * (1.0 + sizes / 4) / (2.5 + sizes / 4)).sum() / sizes.sum())
    rows = zip(recalled / weights, weights.astype(float), strict=True)
    share, methods = covered_by([Sample("micro", v, w, bounded=True) for v, w in rows], truth)
    assert methods == {"logit-t"}
    assert within(share, *LIMITS[n])


def test_coverage_of_student_s_interval_for_many_queries():
    drawn = np.random.default_rng(70).beta(0.6, 0.9, (EXPERIMENTS, 3_000))
    share, methods = covered_by([Sample("mean", values) for values in drawn], 0.4)
    assert methods == {"t"}
    assert within(share, 0.935, 0.965)


def test_coverage_of_wilson_s_interval_over_all_shares():
    chance = np.random.default_rng(71)
    truths = chance.random(EXPERIMENTS)
    drawn = (chance.random((EXPERIMENTS, 50)) < truths[:, None]).astype(float)
    share, methods = coverage([Sample("mean", values, binary=True) for values in drawn], truths)
    assert methods == {"wilson"}
    assert within(share, 0.935, 0.965)


@pytest.mark.parametrize(("how", "quantile"), [("p50", 0.5), ("p90", 0.9)])
def test_coverage_of_order_statistics_is_at_least_nominal(how, quantile):
    drawn = np.random.default_rng(72).exponential(1.0, (EXPERIMENTS, 120))
    truth = -math.log(1 - quantile)
    share, methods = covered_by([Sample(how, values) for values in drawn], truth)
    assert methods == {"order"}
    assert within(share, 0.94, 0.99)


def clustered_values(chance, n_clusters, sizes):
    """Draw values that are correlated within clusters, with the numbers of their clusters."""
    if sizes == "equal":
        clusters = np.repeat(np.arange(n_clusters), 10)
    else:  # a few users ask most of the queries
        clusters = np.repeat(np.arange(n_clusters), np.minimum(chance.zipf(1.8, n_clusters), 200))
    user = chance.beta(1.2, 1.8, n_clusters)[clusters]
    return 0.5 * user + 0.5 * chance.beta(0.6, 0.9, clusters.size), clusters


@pytest.mark.parametrize(
    ("n_clusters", "sizes", "limits"),
    [
        (10, "equal", (0.925, 0.97)),
        (30, "equal", (0.935, 0.97)),
        (100, "equal", (0.935, 0.965)),
        (30, "unequal", (0.935, 0.99)),
        (100, "unequal", (0.935, 0.99)),
    ],
)
@pytest.mark.parametrize("kind", ["bounded", "unbounded", "binary"])
def test_coverage_for_clusters(n_clusters, sizes, limits, kind):
    chance = np.random.default_rng(73)
    samples, independent = [], []
    for _ in range(EXPERIMENTS):
        values, clusters = clustered_values(chance, n_clusters, sizes)
        if kind == "binary":
            values = (chance.random(values.size) < values).astype(float)
        samples.append(Sample("mean", values, bounded=kind != "unbounded", clusters=clusters))
        independent.append(Sample("mean", values, bounded=True))
    share, methods = covered_by(samples, 0.4)
    if kind == "unbounded" and n_clusters < 20:
        assert methods == {None}
        return
    assert methods == {"t" if kind == "unbounded" else "logit-t"}
    assert within(share, *limits)
    # What clusters are for: as independent queries, the interval is far too narrow.
    assert covered_by(independent, 0.4)[0] < (0.93 if kind == "binary" else 0.8)


@pytest.mark.parametrize("how", ["p50", "p90"])
def test_coverage_of_quantiles_for_clusters(how):
    chance = np.random.default_rng(74)
    clusters = np.repeat(np.arange(50), 6)
    # The sum of two independent exponential values: Gamma(2).
    drawn = [
        chance.exponential(1.0, 50)[clusters] + chance.exponential(1.0, 300)
        for _ in range(EXPERIMENTS)
    ]
    truth = {"p50": 1.6783469900166605, "p90": 3.8897201698674291}[how]
    share, methods = covered_by([Sample(how, values, clusters=clusters) for values in drawn], truth)
    assert methods == {"order"}
    assert within(share, 0.935, 0.985)


@pytest.mark.parametrize("test", ["randomization", "t", "wilcoxon"])
@pytest.mark.parametrize("sizes", ["equal", "unequal"])
def test_error_rate_and_coverage_of_differences_for_clusters(test, sizes, monkeypatch):
    chance = np.random.default_rng(75)
    monkeypatch.setattr(paired_tests, "DRAWS", DRAWS)
    pairs = []
    for _ in range(EXPERIMENTS):
        values, clusters = clustered_values(chance, 40, sizes)
        user, query = chance.normal(0, 0.1, 40)[clusters], chance.normal(0, 0.1, clusters.size)
        labels = pl.Series([f"c{cluster:03}" for cluster in clusters])
        ids = pl.Series([f"q{row:05}" for row in range(clusters.size)])
        a = Sample("mean", values, clusters=clusters)
        b = Sample("mean", values + user + query, clusters=clusters)
        pairs.append(Pair(parse("latency.mean"), ids, a, b, 0, None, labels))
    found = [next(infer([pair], test)) for pair in pairs]
    p = np.array([one.p[test] for one in found])
    assert within(float((p <= ALPHA).mean()), 0.005 if sizes == "unequal" else 0.035, 0.065)
    if test != "wilcoxon":
        share, _ = coverage_of([one.interval for one in found], [0.0] * EXPERIMENTS)
        assert within(share, 0.935, 0.995 if sizes == "unequal" else 0.97)
