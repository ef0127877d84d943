"""Intervals and summaries against the slow, independent versions in oracles/stats.py."""

import math
import statistics
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats
from statsmodels.stats.proportion import proportion_confint

from karat.stats import intervals as intervals_module
from karat.stats import resampling
from karat.stats.intervals import Interval, interval, intervals, share_limit, student_quantile
from karat.stats.samples import Sample, deviation
from karat.stats.summary import summary
from oracles import stats as oracle
from support.effort import examples
from support.score_tables import MICRO, table_of

CONFIDENCES = (0.5, 0.8, 0.9, 0.95, 0.99)
SCALES = (1e-9, 1e-3, 1.0, 1e6)


@pytest.fixture
def few_resamples(monkeypatch):
    """Let the bootstrap draw 300 resamples, which the oracle can follow one by one.

    Samples of 2 queries and more are resampled, which are fast to check.
    """
    monkeypatch.setattr(resampling, "RESAMPLES", 300)
    monkeypatch.setattr(intervals_module, "FEWEST", 2)
    monkeypatch.setattr(intervals_module, "FEWEST_RESAMPLED", 2)
    resampling.draw_counts.cache_clear()
    yield
    resampling.draw_counts.cache_clear()


def sample(how, values, weights=None, **facts):
    weights = None if weights is None else np.array(weights, dtype=float)
    return Sample(how, np.array(values, dtype=float), weights, **facts)


def micro_by_oracle(values, weights, confidence=0.95):
    """Return the BCa interval over the queries that karat draws, everything else recomputed."""

    def statistic(at):
        return oracle.value("micro", [values[i] for i in at], [weights[i] for i in at])

    drawn = np.concatenate(list(resampling.resamples(len(values)))).tolist()
    return oracle.bca(statistic, len(values), [statistic(row) for row in drawn], confidence)


def close(found, expected, size):
    return all(
        math.isclose(x, y, rel_tol=1e-9, abs_tol=1e-9 * size)
        for x, y in zip((found.low, found.high), expected, strict=True)
    )


@given(st.integers(3, 200), st.data(), st.sampled_from(CONFIDENCES))
def test_share_has_wilson_s_interval(n, data, confidence):
    ones = data.draw(st.integers(0, n))
    found = interval(sample("mean", [1.0] * ones + [0.0] * (n - ones), binary=True), confidence)
    assert found.method == "wilson"
    assert close(found, oracle.wilson(ones, n, confidence), 1)
    assert close(found, proportion_confint(ones, n, 1 - confidence, "wilson"), 1)
    assert 0 <= found.low <= ones / n <= found.high <= 1


def test_zeros_and_ones_are_a_share_if_both_occur_or_the_measure_is_binary():
    assert interval(sample("mean", [0, 1, 1])).method == "wilson"
    assert interval(sample("mean", [0, 1, 1], bounded=True)).method == "wilson"
    assert interval(sample("mean", [1, 1, 1], bounded=True)).method == "logit-t"
    assert interval(sample("mean", [1, 1, 1], bounded=True, binary=True)).method == "wilson"
    assert interval(sample("mean", [0, 1, 0.5], bounded=True, binary=True)).method == "logit-t"
    assert interval(sample("sum", [0, 1] * 10)).method == "bca"


BOUNDED = (
    st.lists(st.integers(0, 30).map(lambda count: count / 30), min_size=3, max_size=40)
    # Most queries are perfect, or found nothing.
    | st.lists(st.sampled_from([1.0, 1.0, 1.0, 0.5, 0.9]), min_size=3, max_size=20)
    | st.lists(st.sampled_from([0.0, 0.0, 0.0, 0.5, 0.1]), min_size=3, max_size=20)
)


def is_share(values):
    return set(values) == {0.0, 1.0}


@examples(150, 1_500)
@given(BOUNDED, st.sampled_from(CONFIDENCES))
def test_mean_of_a_bounded_measure_has_the_interval_of_its_logit(values, confidence):
    found = interval(sample("mean", values, bounded=True), confidence)
    if is_share(values):
        assert found.method == "wilson"
        return
    expected = oracle.logit_student_interval(values, confidence)
    assert close(found, expected, 1)
    assert found.method == ("equal" if found.low == found.high else "logit-t")
    value = statistics.fmean(values)
    assert 0 <= found.low <= value + 1e-12
    assert value - 1e-12 <= found.high <= 1


@examples(60, 600)
@given(BOUNDED, st.data(), st.sampled_from(CONFIDENCES))
def test_micro_mean_has_the_interval_of_the_logit_of_a_ratio(shares, data, confidence):
    n = len(shares)
    weights = data.draw(st.lists(st.integers(1, 9), min_size=n, max_size=n))
    values = [round(share * w) / w for share, w in zip(shares, weights, strict=True)]
    found = interval(sample("micro", values, weights, bounded=True), confidence)
    assert close(found, oracle.logit_student_interval(values, confidence, weights), 1)


@pytest.mark.parametrize(
    ("values", "low", "high"),
    [
        ([1.0] * 12, 0.7354, 1.0),  # 1 - 0.025 ** (1 / 12) is 0.2646
        ([0.0] * 12, 0.0, 0.2646),
        ([1.0] * 199 + [0.5], 0.9725, 0.9997),  # of 200 queries, 2.75% may be below 1
        ([0.4, 0.5, 0.6, 0.5, 0.4], 0.0, 1.0),  # 5 queries say nothing about others
    ],
)
def test_few_values_away_from_0_or_1_leave_room_for_others(values, low, high):
    found = interval(sample("mean", values, bounded=True))
    assert (found.low, found.high) == pytest.approx((low, high), abs=1e-4)
    assert found.method == "logit-t"


@given(st.integers(1, 300), st.data(), st.sampled_from(CONFIDENCES))
def test_upper_limit_of_a_share_is_scipy_s(n, data, confidence):
    count = data.draw(st.integers(0, n))
    exact = stats.binomtest(count, n).proportion_ci(confidence, "exact").high
    assert share_limit(count, n, confidence) == pytest.approx(exact, rel=1e-9)
    if count < n:
        exact = special.betaincinv(count + 1, n - count, (1 + confidence) / 2)
        assert share_limit(count, n, confidence) == pytest.approx(exact, rel=1e-12)
    assert oracle.upper_limit(count, n, confidence) == pytest.approx(exact, rel=1e-9)


@given(BOUNDED)
def test_mirrored_shares_have_the_mirrored_interval(values):
    here = interval(sample("mean", values, bounded=True))
    there = interval(sample("mean", [1 - value for value in values], bounded=True))
    assert here.low == pytest.approx(1 - there.high, abs=1e-9)
    assert here.high == pytest.approx(1 - there.low, abs=1e-9)


def test_fewer_than_3_queries_have_no_interval():
    for n in (1, 2):
        for how in ("mean", "sum", "geometric", "median", "p90", "max"):
            for bounded in (True, False):
                assert interval(sample(how, [0.25, 0.5][:n], bounded=bounded)) == Interval(), how
        assert interval(sample("mean", [1.0] * n, binary=True, bounded=True)) == Interval()


def test_unbounded_measures_are_resampled_from_20_queries_on():
    values = [0.1, 0.3, 0.2, 0.9, 2.4] * 4
    for how in ("mean", "sum", "geometric"):
        assert interval(sample(how, values)).method == "bca"
        assert interval(sample(how, values[:19])) == Interval()


@examples(60, 600)
@given(st.integers(3, 120), st.sampled_from((0.8, 0.9, 0.95, 0.99)), st.randoms())
def test_quantile_has_the_interval_of_order_statistics(n, confidence, chance):
    values = [float(i) for i in range(1, n + 1)]
    chance.shuffle(values)
    hows = ("median", "p50", "p90", "p99")
    found = intervals([sample(how, values) for how in hows], confidence)
    for how, ends in zip(hows, found, strict=True):
        share = Fraction(str(oracle.SHARES[how]))
        low, high = oracle.order_statistics(n, share, Fraction(str(confidence)))
        # An interpolated quantile can be outside these ranks; then it is the end itself.
        value = oracle.value(how, values)
        assert ends.method == "order"
        assert ends.low == (None if low is None else pytest.approx(min(low, value), rel=1e-12))
        assert ends.high == (None if high is None else pytest.approx(max(high, value), rel=1e-12))


def test_interval_is_open_where_no_value_bounds_it():
    found = interval(sample("p99", range(1, 101)))
    assert found == Interval(97.0, None, "order")
    assert interval(sample("p50", [1, 2, 3, 4, 5])) == Interval(None, None, "order")
    assert interval(sample("p50", [1, 2, 3, 4, 5, 6])) == Interval(1, 6, "order")


def test_maximum_has_no_interval():
    assert interval(sample("max", [1.0, 2.0] * 20)) == Interval()


@given(st.integers(3, 30), st.sampled_from([0.0, 1.0, 1 / 3, 1e-9, 1e6]))
def test_interval_of_equal_values_of_an_unbounded_measure_has_no_width(n, value):
    for how in ("mean", "sum", "geometric", "median", "p90"):
        made = sample(how, [value] * n)
        is_shown = n >= 20 or how in ("median", "p90")
        expected = Interval(made.value, made.value, "equal") if is_shown else Interval()
        assert interval(made) == expected, how


def test_empty_sample_has_no_interval():
    for how in ("mean", "sum", "geometric", "median", "p90", "max"):
        assert interval(sample(how, [])) == Interval()
    assert interval(sample("micro", [], [])) == Interval()
    assert interval(sample("micro", [0.0, 0.0], [0, 0])) == Interval()


def test_values_below_the_minimum_of_a_geometric_mean_are_equal():
    assert interval(sample("geometric", [0.0, 1e-7, 1e-6] * 7)).method == "equal"


def exact_statistic(how, counts, whole, scale):
    """Return the statistic of `counts / whole * scale` for a list of positions, without rounding.

    Only exact arithmetic shows which resamples tie with the observed value.
    """
    n, unit = len(counts), Fraction(str(scale)) / whole
    least = Fraction(1, 100_000)

    def statistic(at):
        if how == "geometric":
            product = math.prod(max(counts[i] * unit, least) for i in at)
            logarithm = math.log(product.numerator) - math.log(product.denominator)
            return math.exp(logarithm / len(at))
        return sum(counts[i] for i in at) * unit / len(at) * (n if how == "sum" else 1)

    return statistic


@pytest.mark.usefixtures("few_resamples")
def test_bca_interval_of_the_same_resamples():
    few = st.lists(st.integers(0, 12), min_size=2, max_size=6)
    hows = ("mean", "sum", "geometric")

    @examples(60, 800)
    @given(few, st.sampled_from((10, 3, 7)), st.sampled_from(SCALES), st.sampled_from(CONFIDENCES))
    def check(counts, whole, scale, confidence):
        n, values = len(counts), [count / whole * scale for count in counts]
        drawn = np.concatenate(list(resampling.resamples(n))).tolist()
        samples = [sample(how, values) for how in hows]
        for made, found in zip(samples, intervals(samples, confidence), strict=True):
            if made.constant or (made.how == "mean" and is_share(values)):
                assert found.method == ("equal" if made.constant else "wilson")
                continue
            statistic = exact_statistic(made.how, counts, whole, scale)
            expected = oracle.bca(statistic, n, [statistic(row) for row in drawn], confidence)
            assert found.method == "bca"
            assert close(found, map(float, expected), scale), made.how

    check()


@pytest.mark.usefixtures("few_resamples")
def test_bca_interval_of_a_micro_mean_resamples_queries():
    weighted = st.integers(1, 9).flatmap(lambda w: st.tuples(st.integers(0, w), st.just(w)))

    @examples(60, 600)
    @given(st.lists(weighted, min_size=2, max_size=7))
    def check(rows):
        values, weights = [x / w for x, w in rows], [w for _, w in rows]
        made = sample("micro", values, weights)
        if not made.constant:
            assert close(interval(made), micro_by_oracle(values, weights), 1)

    check()


@pytest.mark.usefixtures("few_resamples")
def test_mirrored_values_have_the_mirrored_interval():
    @given(st.lists(st.integers(0, 10), min_size=2, max_size=9))
    def check(counts):
        here = interval(sample("mean", [count / 10 for count in counts]))
        there = interval(sample("mean", [1 - count / 10 for count in counts]))
        assert here.low == pytest.approx(1 - there.high, abs=1e-9)
        assert here.high == pytest.approx(1 - there.low, abs=1e-9)

    check()


@pytest.mark.parametrize("exponent", [-1000, -300, 300, 900])
def test_scaling_by_a_power_of_two_changes_no_digit(exponent):
    values = np.array([0.1, 0.3, 0.2, 0.9, 0.4] * 4)
    plain = interval(sample("mean", values))
    scaled = interval(sample("mean", values * 2.0**exponent))
    assert (scaled.low, scaled.high) == (plain.low * 2.0**exponent, plain.high * 2.0**exponent)


def test_higher_confidence_never_gives_a_narrower_interval():
    values = sample("mean", [0.1] * 200 + [5.0])  # one value makes all of the spread
    confidences = [0.5, 0.95, 0.999, *(1 - 10.0**-digits for digits in range(6, 16)), 1 - 2**-53]
    found = [interval(values, confidence) for confidence in confidences]
    assert [one.low for one in found] == sorted((one.low for one in found), reverse=True)
    assert [one.high for one in found] == sorted(one.high for one in found)


@pytest.mark.usefixtures("few_resamples")
@pytest.mark.parametrize("values", [[0.1, 0.2], [1 / 3, 2 / 3], [0.7, 0.8], [0.1, 0.3, 0.2]])
def test_resamples_that_tie_with_the_value_count_half_on_each_side(values):
    found = interval(sample("mean", values))
    assert (found.low, found.high) == pytest.approx((min(values), max(values)))


def test_bca_interval_of_large_samples_is_scipy_s_within_monte_carlo_error():
    chance = np.random.default_rng(5)
    for n, values in ((150, chance.beta(0.6, 0.9, 150)), (400, chance.lognormal(0, 1, 400))):
        found = interval(sample("mean", values))
        expected = stats.bootstrap(
            (values,), np.mean, n_resamples=20_000, method="BCa", rng=7, vectorized=True
        ).confidence_interval
        width = expected.high - expected.low
        assert found.low == pytest.approx(expected.low, abs=0.03 * width), n
        assert found.high == pytest.approx(expected.high, abs=0.03 * width), n


def test_bca_interval_of_other_draws_is_the_same_within_monte_carlo_error():
    chance = np.random.default_rng(6)
    values = chance.beta(0.6, 0.9, 40).tolist()
    weights = chance.integers(1, 9, 40).tolist()
    whole = [round(v * w) / w for v, w in zip(values, weights, strict=True)]
    for how, column, weight_column in (
        ("mean", values, None),
        ("sum", values, None),
        ("geometric", values, None),
        ("micro", whole, weights),
    ):

        def statistic(at, how=how, column=column, weight_column=weight_column):
            drawn_weights = weight_column and [weight_column[i] for i in at]
            combined = oracle.value(how, [column[i] for i in at], drawn_weights)
            # A sum is over all 40 queries, also where one is left out.
            return combined * 40 / len(at) if how == "sum" else combined

        found = interval(sample(how, column, weight_column))
        expected = oracle.bca(statistic, 40, oracle.resampled(statistic, 40, 4_000, seed=8))
        width = expected[1] - expected[0]
        assert found.low == pytest.approx(expected[0], abs=0.06 * width), how
        assert found.high == pytest.approx(expected[1], abs=0.06 * width), how


def test_interval_of_a_skewed_sample_is_not_centred_on_its_value():
    values = [0.0] * 40 + [1.0, 0.9]
    found = interval(sample("sum", values))
    centre = 1.9
    assert found.high - centre > 1.3 * (centre - found.low)


@pytest.mark.parametrize("confidence", CONFIDENCES)
def test_more_than_two_thousand_queries_have_student_s_interval(confidence):
    values = np.random.default_rng(9).lognormal(0, 1, 2_001)
    found = interval(sample("mean", values), confidence)
    assert found.method == "t"
    assert close(found, oracle.student_interval(values.tolist(), confidence), 1)
    summed = interval(sample("sum", values), confidence)
    assert summed.low == pytest.approx(2_001 * found.low, rel=1e-12)
    assert interval(sample("mean", values[:2_000]), confidence).method == "bca"


def test_student_s_interval_of_a_geometric_mean_is_that_of_logarithms():
    values = np.random.default_rng(9).lognormal(0, 1, 3_000)
    low, high = oracle.student_interval(np.log(values).tolist())
    assert close(interval(sample("geometric", values)), (math.exp(low), math.exp(high)), 1)


def test_student_s_interval_of_a_micro_mean_is_that_of_a_ratio():
    chance = np.random.default_rng(10)
    weights = chance.integers(1, 9, 3_000)
    found = chance.binomial(weights, chance.beta(1, 2, 3_000))
    # W. G. Cochran, Sampling Techniques, 1977, (2.39): the variance of a ratio.
    ratio = found.sum() / weights.sum()
    variance = np.sum((found - ratio * weights) ** 2) / 2_999
    reach = stats.t.ppf(0.975, 2_999) * math.sqrt(variance / 3_000) / weights.mean()
    made = interval(sample("micro", found / weights, weights))
    assert made.method == "t"
    assert close(made, (ratio - reach, ratio + reach), 1)


@examples(300, 3_000)
@given(st.integers(1, 2_500), st.floats(0.5, 0.999))
def test_student_s_quantile_is_scipy_s(df, confidence):
    expected = special.stdtrit(df, (1 + confidence) / 2)
    assert student_quantile(confidence, df) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("df", [1, 2, 1_999, 2_000])
@pytest.mark.parametrize("confidence", [1 - 1e-9, 1 - 2**-53])
def test_student_s_quantile_ends_where_the_confidence_is_nearly_1(df, confidence):
    assert math.isfinite(student_quantile(confidence, df))


@pytest.mark.parametrize("df", [2_000, 2_500, 10_000, 10**6, 10**8])
@pytest.mark.parametrize("confidence", [0.001, *CONFIDENCES, 0.999])
def test_student_s_quantile_of_many_queries_is_scipy_s(df, confidence):
    expected = stats.t.ppf((1 + confidence) / 2, df)
    assert student_quantile(confidence, df) == pytest.approx(expected, rel=1e-11)


def test_samples_together_have_the_same_intervals_as_alone():
    chance = np.random.default_rng(11)
    made = [
        sample("mean", chance.random(30)),
        sample("mean", []),
        sample("micro", [0.5] * 29 + [1.0], [2] * 29 + [1]),
        sample("geometric", chance.random(30)),
        sample("p50", chance.random(30)),
        sample("sum", chance.random(21) * 1e6),
        sample("sum", chance.random(17) * 1e6),
        sample("mean", chance.random(12), bounded=True),
        sample("mean", [1, 0, 1]),
    ]
    assert intervals(made) == [interval(one) for one in made]


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=30))
def test_standard_deviation_divides_by_n_minus_one(values):
    expected = statistics.stdev(map(Fraction, values))
    assert deviation(np.array(values)) == pytest.approx(float(expected), rel=1e-9, abs=1e-9)


VALUE = st.one_of(st.none(), st.integers(0, 30).map(lambda x: x / 30))
VALUES = st.lists(VALUE, max_size=9) | st.lists(VALUE, min_size=20, max_size=30)


@pytest.mark.usefixtures("few_resamples")
def test_summary_has_value_spread_interval_and_counts():
    names = {
        "nDCG@10": "mean",
        "GMAP": "geometric",
        "cost.sum": "sum",
        "latency.p90": "p90",
        "latency.max": "max",
        MICRO: "micro",
    }

    @examples(60, 600)
    @given(VALUES, st.randoms())
    def check(values, chance):
        known = [value for value in values if value is not None]
        weights = [chance.randint(1, 5) for _ in values]
        known_weights = [w for w, v in zip(weights, values, strict=True) if v is not None]
        rows = summary(table_of(dict.fromkeys(names, values), weights=weights)).rows(named=True)
        median = pytest.approx(statistics.median(known)) if known else None
        sd = pytest.approx(statistics.stdev(known), abs=1e-12) if len(known) > 1 else None
        for row, how in zip(rows, names.values(), strict=True):
            value = oracle.value(how, known, known_weights)
            assert row["value"] == (None if value is None else pytest.approx(value, rel=1e-12))
            assert (row["n"], row["left_out"]) == (len(known), len(values) - len(known))
            assert (row["median"], row["sd"]) == (median, sd)
            # The intervals themselves are tested above.
            bounded = how in ("mean", "geometric", "micro")
            used = known_weights if how == "micro" else None
            ends = interval(sample(how, known, used, bounded=bounded))
            assert (row["low"], row["high"], row["method"]) == (ends.low, ends.high, ends.method)

    check()


def test_summary_without_intervals_is_otherwise_the_same():
    table = table_of({"nDCG@10": [0.1, 0.5, None], "GMAP": [0.0, 0.3, 0.4]})
    assert summary(table, intervals=False).equals(summary(table).drop("low", "high", "method"))
