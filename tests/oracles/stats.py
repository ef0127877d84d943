"""Intervals and tests as the papers define them: slow, obvious, and independent of karat.

Lists have one value per query. Whatever can be enumerated is enumerated in exact arithmetic. SciPy
supplies the normal and t quantiles; its own tests are compared with karat in test_paired_tests.py.

Efron and Tibshirani, An Introduction to the Bootstrap, 1993, chapter 14 (BCa); Wilson, 1927;
Clopper and Pearson, 1934; Hahn and Meeker, Statistical Intervals, 1991, section 5.2 (quantiles);
Wilcoxon, 1945, with the
tie term of Pratt and Gibbons, 1981; Carterette, Multiple testing in statistical analysis of
systems-based information retrieval experiments, TOIS 2012 (randomized Tukey HSD); Holm, 1979;
Benjamini and Hochberg, 1995.
"""

from __future__ import annotations

import functools
import itertools
import math
import random
import statistics
from fractions import Fraction

from scipy import stats

LEAST = 0.00001
SHARES = {"median": 0.5, "p50": 0.5, "p90": 0.9, "p99": 0.99}


def value(how, values, weights=None):
    """Combine the values of all queries into one number."""
    if not values:
        return None
    if how == "mean":
        return math.fsum(values) / len(values)
    if how == "sum":
        return math.fsum(values)
    if how == "max":
        return max(values)
    if how == "geometric":
        return math.exp(math.fsum(math.log(max(v, LEAST)) for v in values) / len(values))
    if how == "micro":
        total = sum(weights)
        count = sum(round(v * w) for v, w in zip(values, weights, strict=True))
        return count / total if total else None
    ordered, place = sorted(values), (len(values) - 1) * Fraction(str(SHARES[how]))
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + float(place - below) * (ordered[above] - ordered[below])


# Intervals


def wilson(successes, n, confidence=0.95):
    """Return both p for which |share − p| is z standard errors of p: the roots of a quadratic."""
    z = stats.norm.ppf((1 + confidence) / 2)
    share = successes / n
    # (share − p)² = z² p (1 − p) / n
    square, linear, constant = 1 + z * z / n, -(2 * share + z * z / n), share * share
    root = math.sqrt(max(linear * linear - 4 * square * constant, 0.0))
    return (-linear - root) / (2 * square), (-linear + root) / (2 * square)


def fewer_than(n, share):
    """Return the probability that fewer than 0, 1, … n of n values are below the quantile."""
    part, whole = Fraction(share).as_integer_ratio()
    # Multiples of whole^-n, so that only whole numbers are multiplied.
    terms = [
        math.comb(n, count) * part**count * (whole - part) ** (n - count) for count in range(n)
    ]
    return [Fraction(total, whole**n) for total in itertools.accumulate(terms, initial=0)]


def order_statistics(n, share, confidence=Fraction(95, 100)):
    """Return the narrowest ranks, from 1, that leave at most half the rest in each tail.

    The quantile is below the value at rank l with the probability that fewer than l values are
    below it, and above the value at rank u with the probability that u or more values are. An end
    is None if no rank qualifies.
    """
    tail, fewer = (1 - Fraction(confidence)) / 2, fewer_than(n, share)
    low = [rank for rank in range(1, n + 1) if fewer[rank] <= tail]
    high = [rank for rank in range(1, n + 1) if 1 - fewer[rank] <= tail]
    return (max(low) if low else None), (min(high) if high else None)


def student_interval(values, confidence=0.95):
    n, mean = len(values), statistics.fmean(values)
    width = stats.t.ppf((1 + confidence) / 2, n - 1) * statistics.stdev(values) / math.sqrt(n)
    return mean - width, mean + width


def upper_limit(count, n, confidence=0.95):
    """Return the upper limit of a share by Clopper and Pearson: the largest p not rejected.

    p is rejected if so few successes, or fewer, have a probability below half of 1 − confidence.
    """
    if count == n:
        return 1.0
    low, high = count / n, 1.0
    for _ in range(100):
        p = (low + high) / 2
        so_few = math.fsum(math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(count + 1))
        low, high = (p, high) if so_few >= (1 - confidence) / 2 else (low, p)
    return low


def logit_student_interval(values, confidence=0.95, weights=None):
    """Return logit(m) ± t · se / (m (1 − m)), as shares again, for a mean m between 0 and 1.

    The standard error of a weighted mean is that of a ratio: Cochran, Sampling Techniques, 1977,
    (2.39). Where fewer than 6 values are away from 1, the lower end is at most 1 − u, with u the
    upper limit of the share of such values; likewise the upper end where few are away from 0.
    """
    n = len(values)
    weights = weights or [1] * n
    mean = math.fsum(v * w for v, w in zip(values, weights, strict=True)) / sum(weights)
    residuals = [w * (v - mean) for v, w in zip(values, weights, strict=True)]
    variance = math.fsum(one * one for one in residuals) / (n - 1)
    error = math.sqrt(variance / n) / (sum(weights) / n)
    low = high = mean
    if 0 < mean < 1:
        logit = math.log(mean / (1 - mean))
        reach = stats.t.ppf((1 + confidence) / 2, n - 1) * error / (mean * (1 - mean))
        low, high = (share_of(logit + side) for side in (-reach, reach))
    below_one, above_zero = sum(v < 1 for v in values), sum(v > 0 for v in values)
    if below_one < 6:
        low = min(low, 1 - upper_limit(below_one, n, confidence))
    if above_zero < 6:
        high = max(high, upper_limit(above_zero, n, confidence))
    return low, high


def share_of(logit):
    """Return the share with this logit, without overflow."""
    if logit >= 0:
        return 1 / (1 + math.exp(-logit))
    return math.exp(logit) / (1 + math.exp(logit))


def resampled(statistic, n, draws, seed):
    """Return the statistic of samples of n of the n queries, drawn with replacement."""
    chance = random.Random(seed)
    return [statistic([chance.randrange(n) for _ in range(n)]) for _ in range(draws)]


def bca(statistic, n, resamples, confidence=0.95):
    """Return the BCa interval, given the statistic (of a list of queries) of each resample.

    Resamples that tie with the observed value count half, so that mirrored data have the mirrored
    interval; the observed value itself is counted as one more, so that neither side is empty.
    """
    observed = statistic(list(range(n)))
    below = sum(one < observed for one in resamples)
    ties = sum(one == observed for one in resamples) + 1
    bias = stats.norm.ppf((below + ties / 2) / (len(resamples) + 1))
    left_out = [statistic([i for i in range(n) if i != out]) for out in range(n)]
    centre = math.fsum(left_out) / n
    skew = math.fsum((centre - one) ** 3 for one in left_out)
    spread = math.fsum((centre - one) ** 2 for one in left_out)
    acceleration = skew / (6 * spread**1.5) if spread else 0.0

    def end(share):
        z = bias + stats.norm.ppf(share)
        return quantile(resamples, stats.norm.cdf(bias + z / (1 - acceleration * z)))

    return end((1 - confidence) / 2), end((1 + confidence) / 2)


def p_of_resamples(resamples, shift=0.0):
    """Return the two-sided p of a shift: twice the share of resamples on its far side.

    The observed value is counted as one more resample.
    """
    above, below = sum(one >= shift for one in resamples), sum(one <= shift for one in resamples)
    return min(1.0, 2 * (min(above, below) + 1) / (len(resamples) + 1))


def percentile_interval(resamples, confidence=0.95):
    """Return the least and the greatest resample that the p of the resamples does not reject."""
    n, alpha = len(resamples), 1 - Fraction(str(confidence))
    ordered = sorted(resamples)
    # The value at rank k, from 1, has at least k resamples on its near side.
    kept = [k for k in range(1, n + 1) if Fraction(2 * (k + 1), n + 1) >= alpha]
    return ordered[kept[0] - 1], ordered[n - kept[0]]


def few_interval(steps, confidence=0.95):
    """Return the limits of a mean difference of values in [0, 1] where few queries differ."""
    wins, losses, n = sum(x > 0 for x in steps), sum(x < 0 for x in steps), len(steps)
    return -upper_limit(losses, n, confidence), upper_limit(wins, n, confidence)


def is_few(steps, confidence=0.95):
    """Return whether so few queries differ that no choice of signs has a p below 1 − confidence."""
    differing = sum(x != 0 for x in steps)
    return Fraction(2, 2**differing) >= 1 - Fraction(str(confidence))


def quantile(values, share):
    """Return the value below which a share lies, with linear interpolation between neighbours."""
    ordered, place = sorted(values), (len(values) - 1) * share
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


# Tests of one pair


def as_integers(values):
    """Multiply numbers, exactly as they are, by their common denominator."""
    exact = [Fraction(one) for one in values]
    denominator = math.lcm(*(one.denominator for one in exact))
    return [int(one * denominator) for one in exact]


def sign_flips(differences):
    """Return the two-sided p of the sum over every choice of signs, in exact arithmetic."""
    exact = as_integers(differences)
    observed = abs(sum(exact))
    sums = [
        abs(sum(sign * one for sign, one in zip(signs, exact, strict=True)))
        for signs in itertools.product((1, -1), repeat=len(exact))
    ]
    return Fraction(sum(one >= observed for one in sums), len(sums))


def swaps(how, a, b, weights_a=None, weights_b=None, tolerance=1e-9):
    """Return the two-sided p of value(b) − value(a) over every way to swap the runs by query.

    A difference that falls short of the observed one by no more than rounding counts as reached.
    """
    n = len(a)
    rows_a = list(zip(a, weights_a or [1] * n, strict=True))
    rows_b = list(zip(b, weights_b or [1] * n, strict=True))

    def difference(swapped):
        left = [y if swap else x for x, y, swap in zip(rows_a, rows_b, swapped, strict=True)]
        right = [x if swap else y for x, y, swap in zip(rows_a, rows_b, swapped, strict=True)]
        values = [value(how, *map(list, zip(*side, strict=True))) for side in (left, right)]
        return abs(values[1] - values[0])

    least = difference([False] * n) - tolerance * max(map(abs, [*a, *b]))
    differences = [difference(swapped) for swapped in itertools.product((False, True), repeat=n)]
    return sum(one >= least for one in differences) / len(differences)


def ranks(sizes):
    """Return twice the rank of each; those of the same size share the mean of their ranks."""
    return [2 * sum(y < x for y in sizes) + sum(y == x for y in sizes) + 1 for x in sizes]


def wilcoxon(differences):
    """Return the two-sided p of the signed ranks over every choice of signs; zeros are left out."""
    kept = [one for one in differences if one]
    if not kept:
        return Fraction(1)
    doubled = ranks([abs(one) for one in kept])
    observed = sum(rank for rank, one in zip(doubled, kept, strict=True) if one > 0)
    total = sum(doubled)
    sums = [
        sum(rank for rank, up in zip(doubled, ups, strict=True) if up)
        for ups in itertools.product((False, True), repeat=len(kept))
    ]
    far = abs(2 * observed - total)
    return Fraction(sum(abs(2 * one - total) >= far for one in sums), len(sums))


def wilcoxon_by_counts(differences):
    """Return the same for more queries, by counting how many choices of signs give each sum."""
    kept = [one for one in differences if one]
    doubled = ranks([abs(one) for one in kept])
    observed = sum(rank for rank, one in zip(doubled, kept, strict=True) if one > 0)
    ways = {0: 1}
    for rank in doubled:
        longer = dict(ways)
        for total, count in ways.items():
            longer[total + rank] = longer.get(total + rank, 0) + count
        ways = longer
    largest = sum(doubled)
    far = abs(2 * observed - largest)
    count = sum(count for total, count in ways.items() if abs(2 * total - largest) >= far)
    return Fraction(count, 2 ** len(kept))


def wilcoxon_by_normal(differences):
    """Return the p of the normal approximation, with the tie term, not corrected for continuity."""
    kept = [one for one in differences if one]
    n, sizes = len(kept), [abs(one) for one in kept]
    halved = [rank / 2 for rank in ranks(sizes)]
    observed = math.fsum(rank for rank, one in zip(halved, kept, strict=True) if one > 0)
    ties = sum(count**3 - count for count in (sizes.count(size) for size in set(sizes)))
    variance = n * (n + 1) * (2 * n + 1) / 24 - ties / 48
    return float(2 * stats.norm.sf(abs(observed - n * (n + 1) / 4) / math.sqrt(variance)))


# Several pairs


def tukey(rows, pairs, draws=None, seed=0, *, exact=False):
    """Return the p of each pair by randomized Tukey HSD; rows have one value per run.

    Within each query the values are shuffled over the runs. The p is the share of shuffles whose
    largest mean minus the smallest is at least the observed difference.
    """
    runs = len(rows[0])
    flat = as_integers([one for row in rows for one in row])
    rows = [flat[begin : begin + runs] for begin in range(0, len(flat), runs)]
    observed = [abs(sum(row[b] - row[a] for row in rows)) for a, b in pairs]
    if exact:
        shuffles = itertools.product(*[list(itertools.permutations(row)) for row in rows])
    else:
        chance = random.Random(seed)
        shuffles = ([chance.sample(row, runs) for row in rows] for _ in range(draws))
    sums = ([sum(column) for column in zip(*shuffled, strict=True)] for shuffled in shuffles)
    ranges = [max(one) - min(one) for one in sums]
    more = 0 if exact else 1  # the observed order is one of the draws
    return [
        Fraction(sum(one >= least for one in ranges) + more, len(ranges) + more)
        for least in observed
    ]


def bonferroni(p):
    return [min(1.0, one * len(p)) for one in p]


def holm(p):
    """Return for each p the largest of (m − i) p over it and all smaller ones."""
    order = sorted(range(len(p)), key=lambda i: p[i])
    out = [0.0] * len(p)
    for at, i in enumerate(order):
        out[i] = min(1.0, max((len(p) - j) * p[order[j]] for j in range(at + 1)))
    return out


def benjamini_hochberg(p):
    """Return for each p the smallest of m p / i over it and all larger ones."""
    order = sorted(range(len(p)), key=lambda i: p[i])
    out = [0.0] * len(p)
    for at, i in enumerate(order):
        later = range(at, len(p))
        out[i] = min(1.0, min(len(p) * p[order[j]] / (j + 1) for j in later))
    return out


# Power


def power(effect, n, alpha=0.05):
    """Return the power of a two-sided paired t test for an effect in standard deviations."""
    critical, away = stats.t.ppf(1 - alpha / 2, n - 1), effect * math.sqrt(n)
    upper = stats.nct.sf(critical, n - 1, away)
    lower = stats.nct.cdf(-critical, n - 1, away)
    return float(upper + (0.0 if math.isnan(lower) else lower))


@functools.cache
def detectable_effect(n, chance, alpha):
    """Return the effect that the t test detects with this probability, by bisection."""
    low, high = 0.0, 1.0
    while power(high, n, alpha) < chance:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if power(middle, n, alpha) < chance else (low, middle)
    return high


def detectable(sd, n, chance=0.8, alpha=0.05):
    """Return the difference that the t test detects with this probability."""
    return detectable_effect(n, chance, alpha) * sd


def needed(difference, sd, chance=0.8, alpha=0.05):
    """Return the fewest queries with which the t test detects a difference so often."""
    n = 2
    while power(abs(difference) / sd, n, alpha) < chance:
        n += 1
    return n
