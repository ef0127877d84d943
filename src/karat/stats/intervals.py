"""Confidence intervals of a measure over queries, or over clusters of queries."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from statistics import NormalDist

import numpy as np

from karat.arrays import Flags
from karat.stats.clusters import clustered_error
from karat.stats.resampling import RESAMPLES, bca_interval, resampled_sums, to_integers
from karat.stats.samples import Sample, deviation

CONFIDENCE = 0.95
MOST_RESAMPLED = 2_000
"""Up to this many queries are resampled; above, Student's t is accurate."""
FEWEST = 3
"""With fewer queries, a run has no interval."""
FEWEST_RESAMPLED = 20
"""With fewer queries, resampling gives intervals that are too narrow."""
FEW_VALUES = 6
"""With fewer values different from 0 (or 1), the limit on that side is widened."""
_MANY = 2_000
"""Degrees of freedom from which Student's quantile is computed by an expansion."""
_STEPS = 200
"""The largest number of Newton steps; about 10 are needed."""
METHODS = {
    "flips": "inversion of the sign-flip test",
    "few": "Clopper-Pearson limits (too few queries differ)",
    "logit-t": "Student's t on the logit scale",
    "bca": "BCa bootstrap over queries, {resamples:,} resamples",
    "t": "Student's t over queries",
    "wilson": "Wilson's score interval",
    "order": "order statistics",
    "percentile": "percentile bootstrap over queries, {resamples:,} resamples, also used for p",
    "equal": "all values are equal",
}
"""Descriptions of the methods."""
_CLUSTERED_METHODS = {
    "flips": "inversion of the sign-flip test, one sign per cluster",
    "few": "Clopper-Pearson limits (too few clusters differ)",
    "logit-t": "cluster-robust t on the logit scale",
    "t": "cluster-robust t",
    "order": "order statistics between cluster-robust limits of the share",
    "percentile": "percentile bootstrap over clusters, {resamples:,} resamples, also used for p",
}


def describe_method(method: str, *, clustered: bool = False, resamples: int = RESAMPLES) -> str:
    """Return the description of a method, for queries or for clusters of queries.

    `resamples` is the number of resamples, if the method draws any.
    """
    texts = METHODS | _CLUSTERED_METHODS if clustered else METHODS
    return texts[method].format(resamples=resamples)


@dataclass(frozen=True)
class Interval:
    """A confidence interval; an end is None if it is not bounded."""

    low: float | None = None
    high: float | None = None
    method: str | None = None
    rounding: float = field(default=0.0, repr=False, compare=False)
    """The rounding error of the ends."""


def intervals(samples: Sequence[Sample], confidence: float = CONFIDENCE) -> list[Interval]:
    """Return the interval of each sample; samples of the same size share their resamples."""
    found = [_direct_interval(sample, confidence) for sample in samples]
    rows_by_size: dict[int, list[int]] = {}
    for row, (sample, direct) in enumerate(zip(samples, found, strict=True)):
        if direct is None:
            rows_by_size.setdefault(sample.n, []).append(row)
    for rows in rows_by_size.values():
        ends = _bca_ends([samples[row] for row in rows], confidence)
        for row, (low, high) in zip(rows, ends, strict=True):
            found[row] = Interval(low, high, "bca")
    return [interval for interval in found if interval is not None]


def interval(sample: Sample, confidence: float = CONFIDENCE) -> Interval:
    """Return the interval of one sample."""
    return intervals([sample], confidence)[0]


def _direct_interval(sample: Sample, confidence: float) -> Interval | None:
    """Return the interval if it needs no resampling, otherwise None."""
    if sample.value is None or sample.units < FEWEST:
        return Interval()
    if sample.how == "mean" and sample.clusters is None and _is_binary(sample):
        return _wilson(sample, confidence)
    if sample.bounded and sample.how in ("mean", "micro"):
        return _logit_t(sample, confidence)
    if sample.share is not None:
        if sample.constant:
            return Interval(sample.value, sample.value, "equal")
        if sample.clusters is not None:
            return _clustered_order_statistics(sample, sample.value, sample.share, confidence)
        return _order_statistics(sample, sample.value, sample.share, confidence)
    # A maximum has no upper bound.
    if not sample.summed or sample.units < FEWEST_RESAMPLED:
        return Interval()
    if sample.constant:
        return Interval(sample.value, sample.value, "equal")
    # A bootstrap of clusters is too narrow if they have different sizes.
    if sample.n > MOST_RESAMPLED or sample.clusters is not None:
        return _student_t(sample, confidence)
    return None


def _logit_t(sample: Sample, confidence: float) -> Interval:
    """Return Student's interval on the logit scale, for a mean between 0 and 1.

    If fewer than 6 values are below 1, the sample says little about how far the mean is below 1.
    The lower end is then at most 1 − u, where u is the upper Clopper–Pearson limit of the share of
    values below 1. The upper end is treated in the same way for values above 0. With clusters, a
    cluster counts if it contains such a value.
    """
    value = sample.ratio
    low = high = value
    if 0 < value < 1:
        reach = student_reach(sample, confidence)
        if reach is None:
            return Interval()
        low, high = _shifted_shares(value, reach / (value * (1 - value)))
    below_one = _units_with(sample, sample.values < 1)
    above_zero = _units_with(sample, sample.values > 0)
    if below_one < FEW_VALUES:
        low = min(low, 1 - weight_limit(sample, below_one, confidence))
    if above_zero < FEW_VALUES:
        high = max(high, weight_limit(sample, above_zero, confidence))
    return Interval(low, high, "equal" if low == high else "logit-t")


def _units_with(sample: Sample, flags: Flags) -> int:
    """Return the number of queries, or of clusters, with a flag."""
    return int(np.count_nonzero(sample.per_unit(flags.astype(np.float64))))


def _shifted_shares(share: float, reach: float) -> tuple[float, float]:
    """Return the shares that are `reach` below and above a share on the logit scale."""
    odds = math.exp(-reach)  # a step of `reach` on the logit scale multiplies the odds
    low = share * odds / (share * odds + 1 - share)
    high = share / (share + (1 - share) * odds)
    return low, high


def student_reach(sample: Sample, confidence: float) -> float | None:
    """Return half the width of Student's interval of Σ x / Σ w; cluster-robust with clusters.

    None if one cluster has all the weight.
    """
    if sample.clusters is not None:
        clustered = clustered_error(sample)
        return None if clustered is None else clustered.reach(confidence)
    error = deviation(sample.influence() / sample.slope, 0.0) / math.sqrt(sample.n)
    return student_quantile(confidence, sample.n - 1) * error


def weight_limit(sample: Sample, count: int, confidence: float) -> float:
    """Return the upper limit of the share of the weight that `count` of the units can have.

    For clusters, it is the limit of their share times the largest weight / the mean weight.
    """
    limit = share_limit(count, sample.units, confidence)
    if sample.clusters is None:
        return limit
    weights = sample.totals[1]
    return min(limit * float(weights.max() / weights.mean()), 1.0)


def share_limit(count: int, n: int, confidence: float) -> float:
    """Return the upper Clopper–Pearson limit of a share of `count` in n, at 1 − α/2.

    This is the share at which the probability of at most `count` in n is α/2. The sum is short,
    since counts are small here. It equals scipy.special.betaincinv, without the time to import it.
    """
    if count >= n:
        return 1.0
    ways = [math.log(math.comb(n, k)) for k in range(count + 1)]
    low, high = 0.0, 1.0
    while low < (share := (low + high) / 2) < high:
        log_p, log_q = math.log(share), math.log1p(-share)
        probability = math.fsum(
            math.exp(log_ways + k * log_p + (n - k) * log_q) for k, log_ways in enumerate(ways)
        )
        if probability > (1 - confidence) / 2:
            low = share
        else:
            high = share
    return share


def _is_binary(sample: Sample) -> bool:
    """Return whether all values are 0 or 1; unless the measure is binary, both must occur."""
    zeros, ones = np.count_nonzero(sample.values == 0), np.count_nonzero(sample.values == 1)
    return bool(zeros + ones == sample.n and (sample.binary or (zeros and ones)))


def _wilson(sample: Sample, confidence: float) -> Interval:
    """Return the shares that the observed share does not reject (E. B. Wilson, 1927)."""
    n, share = sample.n, float(sample.values.mean())
    z = normal_quantile(confidence)
    middle = share + z * z / (2 * n)
    reach = z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    scale = 1 + z * z / n
    low = (middle - reach) / scale if share > 0 else 0.0
    high = (middle + reach) / scale if share < 1 else 1.0
    return Interval(low, high, "wilson")


def _order_statistics(sample: Sample, value: float, share: float, confidence: float) -> Interval:
    """Return the distribution-free interval of a quantile.

    The number B of values below the quantile is binomial, so the probability that the quantile
    lies between the l-th and the u-th value is P(l ≤ B < u). An end is None if there are too few
    values for it.
    """
    n = sample.n
    k = np.arange(n)
    steps = np.log((n - k) / (k + 1)) + math.log(share / (1 - share))
    logs = np.concatenate(([0.0], np.cumsum(steps))) + n * math.log1p(-share)
    up_to = np.cumsum(np.exp(logs))  # P(B ≤ k) for k = 0 … n
    tail = (1 - confidence) / 2
    low = int(np.searchsorted(up_to, tail, "right"))  # P(B < low) ≤ tail
    high = int(np.searchsorted(up_to, 1 - tail, "left")) + 1  # P(B ≥ high) ≤ tail
    ordered = np.sort(sample.values).tolist()
    # With few values, an interpolated quantile can lie outside: extend the interval to it.
    return Interval(
        min(ordered[low - 1], value) if low >= 1 else None,
        max(ordered[high - 1], value) if high <= n else None,
        "order",
    )


def _clustered_order_statistics(
    sample: Sample, value: float, share: float, confidence: float
) -> Interval:
    """Return the interval of a quantile for clusters of queries.

    The share of the values up to the quantile has a cluster-robust interval on the logit scale;
    its ends are ranks (R. Woodruff, 1952). An end is None if there are too few values for it.
    """
    n = sample.n
    up_to = replace(sample, how="mean", values=(sample.values <= value).astype(np.float64))
    reach = student_reach(up_to, confidence)
    if reach is None:
        return Interval()
    low, high = _shifted_shares(share, reach / (share * (1 - share)))
    ranks = math.floor(n * low), math.ceil(n * high) + 1
    ordered = np.sort(sample.values).tolist()
    return Interval(
        min(ordered[ranks[0] - 1], value) if ranks[0] >= 1 else None,
        max(ordered[ranks[1] - 1], value) if ranks[1] <= n else None,
        "order",
    )


def _student_t(sample: Sample, confidence: float) -> Interval:
    """Return Student's interval of Σ x / Σ w, converted to the combined value."""
    reach = student_reach(sample, confidence)
    if reach is None:
        return Interval()
    low, high = sample.f(np.array([sample.ratio - reach, sample.ratio + reach])).tolist()
    return Interval(low, high, "t")


def _bca_ends(samples: list[Sample], confidence: float) -> list[list[float]]:
    """Return both ends of the BCa interval of each sample; all samples have the same size."""
    stacked = []
    for sample in samples:
        stacked.append(sample.x)
        if sample.weights is not None:  # without weights, Σ w is always n
            stacked.append(sample.w)
    columns, exponents = to_integers(np.column_stack(stacked))
    sums = iter(np.ldexp(resampled_sums(columns), -exponents).T)
    ends = []
    for sample in samples:
        x = next(sums)
        w = np.full_like(x, sample.n) if sample.weights is None else next(sums)
        value = float(sample.f(np.array([sample.ratio]))[0])
        resampled = sample.finish(x, w)
        ends.append(bca_interval(value, resampled, sample.without_each(), confidence).tolist())
    return ends


def normal_quantile(confidence: float) -> float:
    """Return the z for which a standard normal value is between −z and z."""
    return -NormalDist().inv_cdf((1 - confidence) / 2)


@lru_cache
def student_quantile(confidence: float, df: int) -> float:
    """Return the t for which a value of Student's distribution is between −t and t.

    It equals scipy.special.stdtrit to 12 digits. Importing scipy.special would take about a
    quarter of the time of an evaluation of a dozen queries.
    """
    z = normal_quantile(confidence)
    if df >= _MANY:
        return _expanded_quantile(z, df)
    scale = math.exp(math.lgamma((df + 1) / 2) - math.lgamma(df / 2)) / math.sqrt(df * math.pi)
    t = z
    for _ in range(_STEPS):  # never too far: it starts at z < t, and the probability is concave
        density = scale * (1 + t * t / df) ** (-(df + 1) / 2)
        step = (confidence - _probability_within(t, df)) / (2 * density)
        t += step
        if step <= 1e-15 * t:
            break
    return t


def _probability_within(t: float, df: int) -> float:
    """Return the probability that a value of Student's distribution is between −t and t.

    M. Abramowitz and I. A. Stegun, 1964, formulas 26.7.3 and 26.7.4: finite sums of positive terms.
    """
    odd = df % 2
    cosine2, sine = df / (df + t * t), t / math.sqrt(df + t * t)
    term = math.sqrt(cosine2) if odd else 1.0
    terms = []
    for k in range(1 + odd, df, 2):
        terms.append(term)
        term *= cosine2 * k / (k + 1)
    within = sine * math.fsum(terms)
    return 2 / math.pi * (math.atan(t / math.sqrt(df)) + within) if odd else within


def _expanded_quantile(z: float, df: int) -> float:
    """Return the quantile of Student's t by expansion around the normal quantile.

    R. A. Fisher and E. A. Cornish, 1960. It is accurate to 12 digits from 2,000
    degrees of freedom on.
    """
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return z + math.fsum(term / df**power for power, term in enumerate(terms, 1))
