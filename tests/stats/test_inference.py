"""Interval, p and gate come from the same draws, and so never contradict each other."""

import math
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from karat.evaluation.thresholds import Rule
from karat.measures import ScoreTable, parse
from karat.stats.inference import infer
from karat.stats.paired_tests import sign_flips
from karat.stats.pairs import pair
from oracles.sign_flips import interval_of, p_of
from support.effort import examples

LEVELS = (0.8, 0.9, 0.95)


def table(values, name="RR", weights=None):
    measure = parse(name)
    ids = [f"q{n:05}" for n in range(len(values))]
    frame = pl.DataFrame({"query_id": ids, measure.name: np.asarray(values, float)})
    weighed = {} if weights is None else {measure.name: pl.Series(weights, dtype=pl.Int64)}
    return ScoreTable((measure,), frame, {}, pl.DataFrame(weighed))


def pair_of(differences, name="RR", base=0.5):
    """Return a pair whose second run is ahead of the first by these differences."""
    d = np.asarray(differences, float)
    a = np.full(d.size, base)
    return pair(table(a, name), table(a + d, name), parse(name))


sixteenths = st.integers(-8, 8).map(lambda n: n / 16)
differences = st.lists(sixteenths, min_size=1, max_size=6)


@given(differences, st.sampled_from(LEVELS))
@examples(40, 400)
@example([0.5, 0.25, 0.25, 0.125, 0.5, 0.25, 0.0], 0.95)
def test_p_and_ends_are_those_of_every_sign_pattern(d, confidence):
    flips = next(sign_flips([pair_of(d)]))
    exact, ones = [Fraction(value) for value in d], [Fraction(1)] * len(d)
    assert flips.p == float(p_of(exact, ones, Fraction(0)))
    alpha = 1 - Fraction(str(confidence))
    low, high = interval_of(exact, ones, alpha)
    got = flips.interval(confidence)
    wanted = (-math.inf if low is None else float(low), math.inf if high is None else float(high))
    assert got == pytest.approx(wanted, abs=1e-11)


@st.composite
def any_differences(draw):
    """Return differences with ties, repeated values and sums that only rounding makes unequal."""
    n = draw(st.sampled_from([3, 5, 6, 8, 12, 16, 17, 20, 30, 60]))
    kind = draw(st.sampled_from(["ties", "thirds", "any"]))
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    if kind == "any":
        return rng.uniform(-0.3, 0.5, n)
    if kind == "thirds":
        return rng.choice([1 / 3, -1 / 3, 2 / 3 - 1 / 3, 0.1 + 0.2 - 0.3, 0.0], n)
    values = rng.choice([0.0, 0.0, 0.0, 0.25, -0.25, 0.5, -0.125], n)
    return values + draw(st.sampled_from([0.0, 0.0, 0.125])) * (values != 0)


@given(any_differences(), st.sampled_from(["RR", "GMAP"]))
@examples(60, 5000)
def test_the_interval_excludes_0_exactly_if_p_is_below_alpha(d, name):
    one = pair_of(np.clip(d, -0.49, 0.49), name)
    for confidence in LEVELS:
        for test in ("randomization", "t"):
            (found,) = infer([one], test, confidence)
            p, (low, high) = found.p[test], (found.interval.low, found.interval.high)
            if found.interval.method == "few":
                assert p is None or p >= 1 - confidence
                assert low is None or low <= 0 <= high
            elif p is None:
                assert low is None
            elif abs(p - (1 - confidence)) > 1e-9:  # t and its quantile round apart
                assert (low > 0 or high < 0) == (p < 1 - confidence)


@given(any_differences(), st.sampled_from([0.0, 0.02, 0.1]), st.booleans(), st.booleans())
@examples(40, 1000)
def test_a_gate_fails_exactly_if_its_one_sided_p_is_below_its_level(d, limit, strict, rise):
    kind = "max_rise" if rise else "max_drop"
    rule = Rule("RR", kind, limit, strict=strict)
    one = pair_of(np.clip(d, -0.5, 0.5))
    (found,) = infer([one], confidence=rule.two_sided)
    bound, p = rule.bound(found.interval), rule.p(found)
    if p is None:
        assert found.interval.method == "few"
        return
    is_shown = rule.holds_at(bound) if strict else not rule.holds_at(bound)
    assert is_shown == (p < 1 - rule.confidence)


@given(st.integers(0, 2**32 - 1))
@examples(15, 300)
def test_micro_means_are_inverted_with_their_weights(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 8))
    weights = rng.integers(1, 5, n)
    a, b = (rng.integers(0, weights + 1) for _ in range(2))
    name = "evidence.recall@5"
    one = pair(table(a / weights, name, weights), table(b / weights, name, weights), parse(name))
    flips = next(sign_flips([one]))
    exact = [Fraction(int(x)) for x in b - a]
    wanted = [Fraction(int(w)) for w in weights]
    assert flips.p == float(p_of(exact, wanted, Fraction(0)))
    low, high = interval_of(exact, wanted, Fraction(1, 5))
    ends = (-math.inf if low is None else float(low), math.inf if high is None else float(high))
    assert flips.interval(0.8) == pytest.approx(ends, abs=1e-11)


def test_pairs_have_the_same_digits_alone_and_among_others():
    rng = np.random.default_rng(3)
    runs = {name: table(rng.uniform(size=40)) for name in "abcd"}
    names = [("a", "b"), ("a", "c"), ("c", "d")]
    together = [pair(runs[a], runs[b], parse("RR"), (a, b)) for a, b in names]
    for one, found in zip(together, infer(together), strict=True):
        (alone,) = infer([one])
        assert (alone.interval, alone.p) == (found.interval, found.p)


def test_runs_without_the_same_queries_are_paired_over_common_ones():
    rng = np.random.default_rng(4)
    a, b = (table(rng.uniform(size=40)) for _ in range(2))
    part = ScoreTable(b.measures, b.frame.slice(5, 30), {})
    mixed = [pair(a, b, parse("RR"), ("a", "b")), pair(a, part, parse("RR"), ("a", "c"))]
    found = list(infer(mixed))[1]
    (alone,) = infer([mixed[1]])
    assert found.p["t"] == alone.p["t"]
    assert found.interval.low == pytest.approx(alone.interval.low, abs=0.02)
    assert mixed[1].n == 30


# What is shown in the corners.


@pytest.mark.parametrize(
    ("d", "interval", "method", "p"),
    [
        ([0.5] * 3 + [0.0] * 9, (-0.2646, 0.5719), "few", 0.25),
        ([0.0] * 12, (-0.2646, 0.2646), "few", 1.0),
        ([0.0] * 200, (-0.0183, 0.0183), "few", 1.0),
        ([0.1] * 12, (0.1, 0.1), "equal", 2**-11),
        ([1 / 3 + 1 / 3 - 2 / 3] * 12, (-0.2646, 0.2646), "few", 1.0),
    ],
)
def test_corner_cases(d, interval, method, p):
    (found,) = infer([pair_of(d, base=0.0 if max(d) < 0.5 else 0.5)])
    assert (found.interval.low, found.interval.high) == pytest.approx(interval, abs=1e-4)
    assert found.interval.method == method
    assert found.p["randomization"] == pytest.approx(p)


@pytest.mark.parametrize("name", ["latency.mean", "evidence.recall@5", "Hits@5"])
def test_too_few_differences_of_an_unbounded_measure_have_no_interval(name):
    weights = [4] * 12 if name.startswith("evidence") else None
    a, b = np.full(12, 0.5), np.full(12, 0.5)
    b[:3] = 1.0
    one = pair(table(a, name, weights), table(b, name, weights), parse(name))
    (found,) = infer([one])
    assert found.interval.method == "few"
    assert found.interval.low is None


@pytest.mark.parametrize("d", [0.0, 0.5])
def test_the_difference_of_a_single_query_has_no_interval(d):
    (found,) = infer([pair_of([d], base=0.5)])
    assert (found.interval.low, found.interval.high, found.interval.method) == (None, None, "few")
    assert found.p["randomization"] == 1.0


def test_a_difference_of_quantiles_has_the_p_of_its_own_resamples():
    rng = np.random.default_rng(5)
    for _ in range(40):
        a = rng.exponential(10, 20)
        b = a + rng.choice([0.0, 1.0, 2.0], 20) * rng.choice([1, 1, -1], 20)
        one = pair(table(a, "latency.p90"), table(b, "latency.p90"), parse("latency.p90"))
        for confidence in LEVELS:
            (found,) = infer([one], confidence=confidence)
            ends = found.interval
            excludes = ends.low > 0 or ends.high < 0
            assert excludes == (found.p["randomization"] < 1 - confidence)
