"""What every interval and test means, from the papers: slow, obvious, nothing shared with karat.

Lists hold a value a query. What can be counted out is counted out in fractions. SciPy's normal
and t quantiles are used as they are; its own tests are held against this in test_paired_tests.py.

Efron and Tibshirani, An Introduction to the Bootstrap, 1993, chapter 14 (BCa); Wilson, 1927;
Hahn and Meeker, Statistical Intervals, 1991, section 5.2 (quantiles); Wilcoxon, 1945, with the
tie term of Pratt and Gibbons, 1981; Carterette, Multiple testing in statistical analysis of
systems-based information retrieval experiments, TOIS 2012 (randomized Tukey HSD); Holm, 1979;
Benjamini and Hochberg, 1995.
"""

from __future__ import annotations

import itertools
import math
import random
import statistics
from fractions import Fraction

from scipy import stats

LEAST = 0.00001
SHARES = {"median": 0.5, "p50": 0.5, "p90": 0.9, "p99": 0.99}


def value(how, values, weights=None):
    """Return one number for all queries."""
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
        found = sum(round(v * w) for v, w in zip(values, weights, strict=True))
        return found / total if total else None
    ordered, place = sorted(values), (len(values) - 1) * Fraction(str(SHARES[how]))
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + float(place - below) * (ordered[above] - ordered[below])


# Intervals


def wilson(successes, n, confidence=0.95):
    """Return the p where |share − p| is z standard errors of p: the roots of a quadratic."""
    z = stats.norm.ppf((1 + confidence) / 2)
    share = successes / n
    # (share − p)² = z² p (1 − p) / n
    square, linear, constant = 1 + z * z / n, -(2 * share + z * z / n), share * share
    root = math.sqrt(max(linear * linear - 4 * square * constant, 0.0))
    return (-linear - root) / (2 * square), (-linear + root) / (2 * square)


def fewer_than(n, share):
    """Return the chance that fewer than 0, 1, … n of n values lie under the quantile, exactly."""
    share = Fraction(share)
    each = [math.comb(n, count) * share**count * (1 - share) ** (n - count) for count in range(n)]
    return list(itertools.accumulate(each, initial=Fraction(0)))


def order_statistics(n, share, confidence=Fraction(95, 100)):
    """Return the narrowest places from 1 whose two tails hold at most half the rest each.

    A quantile lies under the value at place l with the chance that fewer than l values lie under
    it, and over the value at place u with the chance that u or more do. None where no place does.
    """
    tail, fewer = (1 - Fraction(confidence)) / 2, fewer_than(n, share)
    low = [place for place in range(1, n + 1) if fewer[place] <= tail]
    high = [place for place in range(1, n + 1) if 1 - fewer[place] <= tail]
    return (max(low) if low else None), (min(high) if high else None)


def student_interval(values, confidence=0.95):
    n, mean = len(values), statistics.fmean(values)
    width = stats.t.ppf((1 + confidence) / 2, n - 1) * statistics.stdev(values) / math.sqrt(n)
    return mean - width, mean + width


def resampled(statistic, n, draws, seed):
    """Return the statistic of samples of n of the n queries, drawn with repetition."""
    chance = random.Random(seed)
    return [statistic([chance.randrange(n) for _ in range(n)]) for _ in range(draws)]


def bca(statistic, n, resamples, confidence=0.95):
    """Return the BCa interval, given the statistic (of a list of queries) of each resample.

    Resamples that tie with the value itself count half, which keeps the interval of mirrored
    data the mirrored interval; the value itself is one more of them, so that neither side is empty.
    """
    seen = statistic(list(range(n)))
    with_itself = [*resamples, seen]
    below = sum(one < seen for one in with_itself) + sum(one == seen for one in with_itself) / 2
    bias = stats.norm.ppf(below / len(with_itself))
    left_out = [statistic([i for i in range(n) if i != out]) for out in range(n)]
    centre = math.fsum(left_out) / n
    skew = math.fsum((centre - one) ** 3 for one in left_out)
    spread = math.fsum((centre - one) ** 2 for one in left_out)
    acceleration = skew / (6 * spread**1.5) if spread else 0.0

    def end(share):
        z = bias + stats.norm.ppf(share)
        return quantile(resamples, stats.norm.cdf(bias + z / (1 - acceleration * z)))

    return end((1 - confidence) / 2), end((1 + confidence) / 2)


def quantile(values, share):
    """Return the value under which a share lies, between two neighbours by a straight line."""
    ordered, place = sorted(values), (len(values) - 1) * share
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


# Tests of one pair


def sign_flips(differences):
    """Return the two-sided p of the sum over every choice of signs, in fractions."""
    exact = [Fraction(one) for one in differences]
    seen = abs(sum(exact))
    sums = [
        abs(sum(sign * one for sign, one in zip(signs, exact, strict=True)))
        for signs in itertools.product((1, -1), repeat=len(exact))
    ]
    return Fraction(sum(one >= seen for one in sums), len(sums))


def swaps(how, a, b, weights_a=None, weights_b=None, tolerance=1e-9):
    """Return the two-sided p of value(b) − value(a) over every way to swap the runs by query.

    A difference as large as the one seen but for the noise of floats counts as that large.
    """
    n = len(a)
    rows_a = list(zip(a, weights_a or [1] * n, strict=True))
    rows_b = list(zip(b, weights_b or [1] * n, strict=True))

    def difference(swapped):
        left = [y if swap else x for x, y, swap in zip(rows_a, rows_b, swapped, strict=True)]
        right = [x if swap else y for x, y, swap in zip(rows_a, rows_b, swapped, strict=True)]
        values = [value(how, *map(list, zip(*side, strict=True))) for side in (left, right)]
        return abs(values[1] - values[0])

    seen = difference([False] * n)
    all_of_them = [difference(swapped) for swapped in itertools.product((False, True), repeat=n)]
    least = seen - tolerance * max(map(abs, [*a, *b]))
    return sum(one >= least for one in all_of_them) / len(all_of_them)


def ranks(sizes):
    """Return twice the rank of each; those of the same size share the middle of their ranks."""
    return [2 * sum(y < x for y in sizes) + sum(y == x for y in sizes) + 1 for x in sizes]


def wilcoxon(differences):
    """Return the two-sided p of the signed ranks over every choice of signs; zeros are left out."""
    kept = [one for one in differences if one]
    if not kept:
        return Fraction(1)
    places = ranks([abs(one) for one in kept])
    seen = sum(place for place, one in zip(places, kept, strict=True) if one > 0)
    middle = Fraction(sum(places), 2)
    sums = [
        sum(place for place, up in zip(places, ups, strict=True) if up)
        for ups in itertools.product((False, True), repeat=len(kept))
    ]
    return Fraction(sum(abs(one - middle) >= abs(seen - middle) for one in sums), len(sums))


def wilcoxon_by_counts(differences):
    """Return the same, from how many choices of signs give each sum: for more queries."""
    kept = [one for one in differences if one]
    places = ranks([abs(one) for one in kept])
    seen = sum(place for place, one in zip(places, kept, strict=True) if one > 0)
    ways = {0: 1}
    for place in places:
        longer = dict(ways)
        for total, count in ways.items():
            longer[total + place] = longer.get(total + place, 0) + count
        ways = longer
    far = abs(2 * seen - sum(places))
    count = sum(count for total, count in ways.items() if abs(2 * total - sum(places)) >= far)
    return Fraction(count, 2 ** len(kept))


def wilcoxon_by_normal(differences):
    """Return the p of the normal approximation, with the term for ties, without correction."""
    kept = [one for one in differences if one]
    n, sizes = len(kept), [abs(one) for one in kept]
    places = [place / 2 for place in ranks(sizes)]
    seen = math.fsum(place for place, one in zip(places, kept, strict=True) if one > 0)
    ties = sum(count**3 - count for count in (sizes.count(size) for size in set(sizes)))
    variance = n * (n + 1) * (2 * n + 1) / 24 - ties / 48
    return float(2 * stats.norm.sf(abs(seen - n * (n + 1) / 4) / math.sqrt(variance)))


# Several pairs


def tukey(rows, pair, draws=None, seed=0, *, exact=False):
    """Return the p of a pair by randomized Tukey HSD; a row is a query, with a value a run.

    Within each query the values are shuffled over the runs; the p is the share of shuffles whose
    largest mean less the smallest is at least the difference seen.
    """
    rows = [[Fraction(one) for one in row] for row in rows]
    seen = abs(sum(row[pair[1]] - row[pair[0]] for row in rows))
    if exact:
        shuffles = itertools.product(*[list(itertools.permutations(row)) for row in rows])
    else:
        chance = random.Random(seed)
        shuffles = ([chance.sample(row, len(row)) for row in rows] for _ in range(draws))
    large = total = 0
    for shuffled in shuffles:
        sums = [sum(column) for column in zip(*shuffled, strict=True)]
        large += max(sums) - min(sums) >= seen
        total += 1
    return Fraction(large, total) if exact else Fraction(large + 1, total + 1)


def bonferroni(p):
    return [min(1.0, one * len(p)) for one in p]


def holm(p):
    """Return for each the largest of (m − i) p over it and those that come before it."""
    order = sorted(range(len(p)), key=lambda i: p[i])
    out = [0.0] * len(p)
    for at, i in enumerate(order):
        out[i] = min(1.0, max((len(p) - j) * p[order[j]] for j in range(at + 1)))
    return out


def benjamini_hochberg(p):
    """Return for each the smallest of m p / i over it and those that come after it."""
    order = sorted(range(len(p)), key=lambda i: p[i])
    out = [0.0] * len(p)
    for at, i in enumerate(order):
        later = range(at, len(p))
        out[i] = min(1.0, min(len(p) * p[order[j]] / (j + 1) for j in later))
    return out


# Power


def power(effect, n, alpha=0.05):
    """Return the chance that a two-sided paired t test shows an effect, in standard deviations."""
    critical, away = stats.t.ppf(1 - alpha / 2, n - 1), effect * math.sqrt(n)
    upper = stats.nct.sf(critical, n - 1, away)
    lower = stats.nct.cdf(-critical, n - 1, away)
    return float(upper + (0.0 if math.isnan(lower) else lower))


def detectable(sd, n, chance=0.8, alpha=0.05):
    """Return the difference that would be shown with a chance, by halving."""
    low, high = 0.0, 1.0
    while power(high, n, alpha) < chance:
        high *= 2
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if power(middle, n, alpha) < chance else (low, middle)
    return high * sd


def needed(difference, sd, chance=0.8, alpha=0.05):
    """Return the fewest queries with which a difference would be shown with a chance."""
    n = 2
    while power(abs(difference) / sd, n, alpha) < chance:
        n += 1
    return n
