"""How far a value may be from what more queries of the same kind would give."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from statistics import NormalDist

import numpy as np

from karat.stats.resampling import bca_interval, resampled_sums, to_integers
from karat.stats.samples import Sample, deviation

CONFIDENCE = 0.95
MOST_RESAMPLED = 2_000
"""Up to this many queries are resampled; above, the mean is normal enough for t."""
FEWEST = 3
"""A single run over fewer queries has no interval."""
FEWEST_RESAMPLED = 20
"""Resampling fewer queries gives intervals that are too narrow."""
FEW_VALUES = 6
"""Fewer values than this away from 0 or 1 say little about how far from it the mean may be."""
_MANY = 2_000
"""Degrees of freedom from which on an expansion gives Student's quantile."""
_STEPS = 200
"""Newton steps at most; about 10 are needed."""
METHODS = {
    "flips": "inversion of the sign-flip test",
    "few": "limits of what so few differing queries can show",
    "logit-t": "Student's t on the logit scale",
    "bca": "BCa bootstrap over queries, 10,000 resamples",
    "t": "Student's t over queries",
    "wilson": "Wilson's score interval",
    "order": "order statistics",
    "percentile": "percentile bootstrap over queries, 10,000 resamples, which also give p",
    "equal": "all values are equal",
}
"""How an interval came about, in words."""


@dataclass(frozen=True)
class Interval:
    """Where a value lies with some confidence; an end is None where nothing bounds it."""

    low: float | None = None
    high: float | None = None
    method: str | None = None
    rounding: float = field(default=0.0, repr=False, compare=False)
    """How far rounding alone can move an end."""


def intervals(samples: Sequence[Sample], confidence: float = CONFIDENCE) -> list[Interval]:
    """Return an interval for each sample; those that are resampled share their draws."""
    found = [_direct(sample, confidence) for sample in samples]
    for n in {sample.n for sample, known in zip(samples, found, strict=True) if known is None}:
        at = [i for i, known in enumerate(found) if known is None and samples[i].n == n]
        ends = _resampled([samples[i] for i in at], confidence)
        for i, (low, high) in zip(at, ends, strict=True):
            found[i] = Interval(low, high, "bca")
    return [known for known in found if known is not None]


def interval(sample: Sample, confidence: float = CONFIDENCE) -> Interval:
    """Return the interval of one sample."""
    return intervals([sample], confidence)[0]


def _direct(sample: Sample, confidence: float) -> Interval | None:
    """Return the interval where it needs no resampling, None where it does."""
    if sample.value is None or sample.n < FEWEST:
        return Interval()
    if sample.how == "mean" and _is_share(sample):
        return _wilson(sample, confidence)
    if sample.bounded and sample.how in ("mean", "micro"):
        return _logit_student(sample, confidence)
    if sample.share is not None:
        if sample.constant:
            return Interval(sample.value, sample.value, "equal")
        return _order_statistics(sample, sample.value, sample.share, confidence)
    if not sample.summed:  # nothing bounds a maximum from above
        return Interval()
    if sample.n < FEWEST_RESAMPLED:
        return Interval()
    if sample.constant:
        return Interval(sample.value, sample.value, "equal")
    if sample.n > MOST_RESAMPLED:
        return _student(sample, confidence)
    return None


def _logit_student(sample: Sample, confidence: float) -> Interval:
    """Return Student's interval on the logit scale, for a mean between 0 and 1.

    Where fewer than 6 values are away from 1 (or 0), the mean may be further from it than the
    values seen tell: the lower end is at most 1 − u, u being the upper limit of the share of such
    values by Clopper and Pearson.
    """
    value = sample.ratio
    low = high = value
    if 0 < value < 1:
        error = deviation(sample.influence(), 0.0) / math.sqrt(sample.n)
        reach = student_quantile(confidence, sample.n - 1) * error / (value * (1 - value))
        odds = math.exp(-reach)  # a step of `reach` on the logit scale multiplies the odds
        low, high = value * odds / (value * odds + 1 - value), value / (value + (1 - value) * odds)
    below_one, above_zero = (
        int(np.count_nonzero(flags)) for flags in (sample.values < 1, sample.values > 0)
    )
    if below_one < FEW_VALUES:
        low = min(low, 1 - share_limit(below_one, sample.n, confidence))
    if above_zero < FEW_VALUES:
        high = max(high, share_limit(above_zero, sample.n, confidence))
    return Interval(low, high, "equal" if low == high else "logit-t")


def share_limit(count: int, n: int, confidence: float) -> float:
    """Return the upper Clopper–Pearson limit of a share, at 1 − α/2.

    This is the share at which the chance of so few among n is α/2: a short sum, since counts are
    small here. It equals scipy.special.betaincinv, without the time to import it.
    """
    if count >= n:
        return 1.0
    ways = [math.log(math.comb(n, k)) for k in range(count + 1)]
    low, high = 0.0, 1.0
    while low < (share := (low + high) / 2) < high:
        one, other = math.log(share), math.log1p(-share)
        chance = math.fsum(math.exp(way + k * one + (n - k) * other) for k, way in enumerate(ways))
        low, high = (share, high) if chance > (1 - confidence) / 2 else (low, share)
    return share


def _is_share(sample: Sample) -> bool:
    """Tell whether the mean is a share: values of 0 and 1, both seen unless there are no others."""
    zeros, ones = np.count_nonzero(sample.values == 0), np.count_nonzero(sample.values == 1)
    return bool(zeros + ones == sample.n and (sample.binary or (zeros and ones)))


def _wilson(sample: Sample, confidence: float) -> Interval:
    """E. B. Wilson, 1927: the shares that the one seen does not reject."""
    n, share = sample.n, float(sample.values.mean())
    z = normal_quantile(confidence)
    middle = share + z * z / (2 * n)
    reach = z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    scale = 1 + z * z / n
    low = (middle - reach) / scale if share > 0 else 0.0
    high = (middle + reach) / scale if share < 1 else 1.0
    return Interval(low, high, "wilson")


def _order_statistics(sample: Sample, value: float, share: float, confidence: float) -> Interval:
    """Return the values between which the quantile lies, whatever the distribution.

    How many values lie below the quantile is binomial, so the chance that it lies between the
    l-th and the u-th value is P(l ≤ B < u). An end that would need more values is None.
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
    # A quantile between two values may lie outside of what few values can bound: it is within.
    return Interval(
        min(ordered[low - 1], value) if low >= 1 else None,
        max(ordered[high - 1], value) if high <= n else None,
        "order",
    )


def _student(sample: Sample, confidence: float) -> Interval:
    """Return Student's interval around Σ x / Σ w, then what it means for the number."""
    error = deviation(sample.influence() / sample.slope, 0.0) / math.sqrt(sample.n)
    reach = student_quantile(confidence, sample.n - 1) * error
    low, high = sample.f(np.array([sample.ratio - reach, sample.ratio + reach])).tolist()
    return Interval(low, high, "t")


def _resampled(samples: list[Sample], confidence: float) -> list[list[float]]:
    """Return both ends of each sample's BCa interval; only denominators that differ are summed."""
    stacked = [column for s in samples for column in ((s.x,) if s.weights is None else (s.x, s.w))]
    columns, exponents = to_integers(np.column_stack(stacked))
    sums = iter(np.ldexp(resampled_sums(columns), -exponents).T)
    ends = []
    for sample in samples:
        x = next(sums)
        w = np.full_like(x, sample.n) if sample.weights is None else next(sums)
        value = float(sample.f(np.array([sample.ratio]))[0])
        drawn = sample.finish(x, w)
        ends.append(bca_interval(value, drawn, sample.without_each(), confidence).tolist())
    return ends


def normal_quantile(confidence: float) -> float:
    """Return between what ± a normal value lies with this confidence."""
    return -NormalDist().inv_cdf((1 - confidence) / 2)


@lru_cache
def student_quantile(confidence: float, df: int) -> float:
    """Return the t for which Student's t lies between −t and t with this confidence.

    It equals scipy.special.stdtrit to 12 digits, without importing scipy.special, which takes
    about a quarter of the time of an evaluation of a dozen queries.
    """
    z = normal_quantile(confidence)
    if df >= _MANY:
        return _expanded_quantile(z, df)
    scale = math.exp(math.lgamma((df + 1) / 2) - math.lgamma(df / 2)) / math.sqrt(df * math.pi)
    t = z
    for _ in range(_STEPS):  # they never overshoot: z is below t, and the chance is concave in t
        density = scale * (1 + t * t / df) ** (-(df + 1) / 2)
        step = (confidence - _chance_within(t, df)) / (2 * density)
        t += step
        if step <= 1e-15 * t:
            break
    return t


def _chance_within(t: float, df: int) -> float:
    """Return the chance that Student's t lies between −t and t.

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

    R. A. Fisher and E. A. Cornish, 1960. From 2,000 degrees of freedom on it is right to 12 digits.
    """
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return z + math.fsum(term / df**power for power, term in enumerate(terms, 1))
