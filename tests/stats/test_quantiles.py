"""Resampled quantiles: drawing only what matters gives the distribution of whole resamples."""

import numpy as np
import pytest

from karat.measures import parse
from karat.stats import quantiles
from karat.stats.inference import infer
from karat.stats.paired_tests import DRAWS
from karat.stats.pairs import pair
from karat.stats.quantiles import RESAMPLES_OF_MANY, resampled_differences
from karat.stats.resampling import RESAMPLES
from karat.stats.samples import Sample
from support.score_tables import table_of

LEVELS = [0.025, 0.25, 0.5, 0.75, 0.975]


def pair_of_values(a, b, name):
    return pair(table_of({name: a}), table_of({name: b}), parse(name))


def samples(n, how, clusters=None, *, rounded=False, seed=1):
    rng = np.random.default_rng(seed)
    a = rng.lognormal(0, 1, n)
    b = a * rng.lognormal(0.02, 0.3, n)
    if rounded:  # many ties
        a, b = np.round(a), np.round(b)
    return [Sample(how, values, clusters=clusters) for values in (a, b)]


@pytest.mark.parametrize("how", ["p50", "p90", "p99"])
def test_many_queries_have_the_distribution_of_whole_resamples(monkeypatch, how):
    a, b = samples(2_000, how)
    whole = resampled_differences(a, b)
    monkeypatch.setattr(quantiles, "MOST_WHOLE", 0)
    found = resampled_differences(a, b)
    assert found.size == whole.size == RESAMPLES
    spread = whole.std()
    assert found.std() == pytest.approx(spread, rel=0.05)
    assert np.quantile(found, LEVELS) == pytest.approx(np.quantile(whole, LEVELS), abs=spread / 8)


def test_many_queries_with_ties_have_the_distribution_of_whole_resamples(monkeypatch):
    a, b = samples(2_000, "p90", rounded=True)
    whole = resampled_differences(a, b)
    monkeypatch.setattr(quantiles, "MOST_WHOLE", 0)
    found = resampled_differences(a, b)
    for value in np.unique(np.concatenate((whole, found))):
        assert np.mean(found == value) == pytest.approx(np.mean(whole == value), abs=0.02)


def test_equal_runs_have_equal_quantiles_in_every_resample(monkeypatch):
    monkeypatch.setattr(quantiles, "MOST_WHOLE", 0)
    a, _ = samples(500, "p90")
    assert not resampled_differences(a, a).any()


def test_a_window_of_clusters_does_not_change_the_resamples(monkeypatch):
    clusters = np.random.default_rng(2).integers(0, 700, 3_000)
    clusters[:700] = np.arange(700)
    a, b = samples(3_000, "p90", clusters)
    whole = resampled_differences(a, b)
    monkeypatch.setattr(quantiles, "MOST_WHOLE", 0)
    assert (resampled_differences(a, b) == whole).all()


def test_very_many_clusters_have_fewer_resamples(monkeypatch):
    monkeypatch.setattr(quantiles, "MANY_CLUSTERS", 20)
    a, b = samples(60, "p90", np.arange(60) % 21)
    assert resampled_differences(a, b).size == RESAMPLES_OF_MANY


@pytest.mark.parametrize(
    ("name", "n", "draws"),
    [
        ("latency.p90", 40, RESAMPLES),
        ("latency.max", 40, 10_000),
        ("latency.max", 8, None),
        ("nDCG@10", 40, DRAWS),
        ("nDCG@10", 12, None),
    ],
)
def test_inference_states_the_number_of_random_draws(name, n, draws):
    a, b = np.random.default_rng(3).random((2, n))
    (found,) = infer([pair_of_values(a, b, name)])
    assert found.draws == draws


def test_a_maximum_of_many_queries_has_the_p_of_all_of_them(monkeypatch):
    a, b = np.random.default_rng(4).random((2, 300))
    b[7] = 1.2
    one = pair_of_values(a, b, "latency.max")
    (whole,) = infer([one])
    monkeypatch.setattr("karat.stats.inference._MANY_SWAPPED", 100)
    (found,) = infer([one])
    assert found.draws == whole.draws
    p, expected = (one.p["randomization"] for one in (found, whole))
    assert p == pytest.approx(expected, abs=0.02)
