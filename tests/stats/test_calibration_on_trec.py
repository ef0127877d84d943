"""Intervals and gates on resampled queries of TREC 2019 Deep Learning, whose truth is known.

The truth is the mean over all 43 topics of 37 runs; samples of n topics are drawn with replacement.
By default every rate comes from a few hundred samples and must be compatible with its limit; with
`KARAT_SLOW=1` it comes from 6,000 and must be within it. Seeds are fixed, so results do not vary.
"""

from functools import cache

import numpy as np
import pytest
from scipy.optimize import brentq

from karat.data import Gold, Run
from karat.evaluation.thresholds import Rule
from karat.measures import Plan, parse, score
from karat.stats import paired_tests
from karat.stats.inference import infer
from karat.stats.intervals import interval
from karat.stats.samples import Sample
from support.calibration import within
from support.effort import FULL
from support.paths import SHARED_DATA
from support.score_tables import pairs_of

DATA = SHARED_DATA / "trec-dl19-passage"
EXPERIMENTS = 6_000 if FULL else 200
SIZES = [8, 12, 50, 200] if FULL else [12, 50]
DRAWS = 1_999  # few, but (draws + 1) × 0.05 is a whole number
NDCG, RR, RECALL = "nDCG@10", "RR(rel=2)@10", "R(rel=2)@100"
SPARSE = "sparse nDCG@10"
"""The differences of nDCG@10 and 129 queries without a difference: a small change to a good run."""

pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason=f"the runs are not in {DATA}")


@pytest.fixture(autouse=True)
def few_draws(monkeypatch):
    monkeypatch.setattr(paired_tests, "DRAWS", DRAWS)


@cache
def values():
    """Return a matrix for each measure: a row per topic, a column per run."""
    gold = Gold.read(DATA / "qrels.txt")
    plan = Plan.of([NDCG, RR, RECALL])
    tables = [score(gold, Run.read(path), plan) for path in sorted((DATA / "runs").glob("*.gz"))]
    return {
        name: np.column_stack([table.frame[name].to_numpy() for table in tables])
        for name in (NDCG, RR, RECALL)
    }


def differences(population, chance):
    """Return the differences of two runs drawn at random."""
    table = values()[NDCG if population == SPARSE else population]
    a, b = chance.choice(table.shape[1], 2, replace=False)
    apart = table[:, b] - table[:, a]
    return np.append(apart, np.zeros(129)) if population == SPARSE else apart


def inferred(samples, population, confidence=0.95):
    """Yield what is inferred from each sample of differences."""
    name = NDCG if population == SPARSE else population
    for begin in range(0, len(samples), 100):  # together they share draws; all need much memory
        columns = np.column_stack(samples[begin : begin + 100])
        yield from infer(pairs_of(columns, name), confidence=confidence)


@pytest.mark.parametrize(
    ("population", "n", "low", "high"),
    [
        (NDCG, 12, 0.93, 1),
        (NDCG, 50, 0.935, 0.965),
        (NDCG, 200, 0.935, 0.965),
        (RR, 12, 0.93, 1),
        (RR, 50, 0.935, 0.965),
        (RR, 200, 0.935, 0.965),
        (SPARSE, 12, 0.93, 1),
        (SPARSE, 50, 0.91, 1),
        (SPARSE, 200, 0.93, 0.965),
    ],
)
def test_coverage_of_the_interval_of_a_difference(population, n, low, high):
    chance = np.random.default_rng(81)
    samples, truths = [], []
    for _ in range(EXPERIMENTS):
        apart = differences(population, chance)
        truths.append(apart.mean())
        samples.append(chance.choice(apart, n))
    inside = []
    for found, truth in zip(inferred(samples, population), truths, strict=True):
        ends, p = found.interval, found.p["randomization"]
        assert (ends.low > 0 or ends.high < 0) == (p < 0.05)
        # Means of float values are the truth but for rounding.
        inside.append(ends.low - 1e-12 <= truth <= ends.high + 1e-12)
    assert within(np.mean(inside), low, high, EXPERIMENTS)


def without_a_drop(apart):
    """Return how often to draw each topic so that the mean difference is 0.

    Topics are weighted by exp(λd), which keeps ties and most of the skew. None where all
    differences have one sign.
    """
    if apart.min() >= 0 or apart.max() <= 0:
        return None

    def weights(tilt):
        raw = np.exp(tilt * apart - np.max(tilt * apart))
        return raw / raw.sum()

    return weights(brentq(lambda tilt: weights(tilt) @ apart, -500, 500))


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("population", [NDCG, RR, SPARSE])
@pytest.mark.parametrize("is_equal", [True, False], ids=["no drop", "a drop as large as allowed"])
def test_gate_rarely_fails_without_too_large_a_drop(population, n, is_equal):
    chance = np.random.default_rng(82)
    samples, drops = [], []
    while len(samples) < EXPERIMENTS:
        apart = differences(population, chance)
        apart = apart if apart.mean() < 0 else -apart
        weights = without_a_drop(apart) if is_equal else None
        if is_equal and weights is None:
            continue
        samples.append(chance.choice(apart, n, p=weights))
        drops.append(0.0 if is_equal else -apart.mean())
    failed = 0
    confidence = Rule(NDCG, "max_drop", 0.0).two_sided
    for found, drop in zip(inferred(samples, population, confidence), drops, strict=True):
        rule = Rule(NDCG, "max_drop", drop)
        failed += not rule.holds_at(rule.bound(found.interval))
    assert within(failed / EXPERIMENTS, 0, 0.06, EXPERIMENTS)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("name", [NDCG, RR, RECALL])
def test_coverage_of_the_interval_of_one_run(name, n):
    chance = np.random.default_rng(83)
    table = values()[name]
    binary = parse(name).declaration.binary
    inside = []
    for _ in range(EXPERIMENTS):
        run = table[:, chance.integers(table.shape[1])]
        ends = interval(Sample("mean", chance.choice(run, n), binary=binary, bounded=True))
        inside.append(ends.low - 1e-12 <= run.mean() <= ends.high + 1e-12)
    assert within(np.mean(inside), 0.945, 1, EXPERIMENTS)
