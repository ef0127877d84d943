"""One inference per paired difference: an interval and a p that never contradict each other."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from karat.arrays import Floats
from karat.stats.intervals import CONFIDENCE, Interval, share_limit, student_quantile
from karat.stats.paired_tests import Flips, sign_flips, t_test, too_few, wilcoxon_test
from karat.stats.pairs import Pair
from karat.stats.resampling import (
    all_sign_patterns,
    coin_flips,
    combine_rows,
    resamples,
    row_blocks,
)
from karat.stats.samples import RELATIVE_ROUNDING, deviation

TESTS = ("randomization", "t", "wilcoxon")
FEW_GEOMETRIC = 50
"""Below this many queries the interval of a geometric mean is too narrow, and marked."""
_DRAWS_OF_MAXIMA = 10_000


@dataclass(frozen=True, eq=False)
class Inference:
    """The interval of a difference, and the p of each test."""

    pair: Pair
    interval: Interval
    p: dict[str, float | None]
    """By test."""
    flips: Flips | None = None
    resampled: Floats | None = None
    """The resampled differences, of quantiles."""

    def p_above(self, shift: float) -> float | None:
        """Return the one-sided p of a difference of at most `shift`: small if it is above.

        It is below 1 − c exactly if the interval of confidence 2c − 1 lies above `shift`.
        """
        difference = self.pair.difference
        if difference is None or self.interval.method == "few":
            return None
        if self.resampled is not None:
            n = self.resampled.size
            least = shift + self.interval.rounding
            return (int(np.count_nonzero(self.resampled <= least)) + 1) / (n + 1)
        if self.flips is None:
            return None
        two_sided = self.flips.p_at(_mean_of(self.pair, shift))
        return two_sided / 2 if difference > shift else 1 - two_sided / 2

    def p_below(self, shift: float) -> float | None:
        """Return the one-sided p of a difference of at least `shift`: small if it is below."""
        difference = self.pair.difference
        if difference is None or self.interval.method == "few":
            return None
        if self.resampled is not None:
            n = self.resampled.size
            most = shift - self.interval.rounding
            return (int(np.count_nonzero(self.resampled >= most)) + 1) / (n + 1)
        if self.flips is None:
            return None
        two_sided = self.flips.p_at(_mean_of(self.pair, shift))
        return two_sided / 2 if difference < shift else 1 - two_sided / 2


def infer(
    pairs: Sequence[Pair], test: str = "randomization", confidence: float = CONFIDENCE
) -> Iterator[Inference]:
    """Yield an interval for each difference, and the p of every test.

    The interval belongs to `test`. That of the sign-flip test also stands for Wilcoxon's, which
    has no interval of the mean.
    """
    for pair, drawn in zip(pairs, sign_flips(pairs), strict=True):
        if drawn is None:
            yield _of_quantiles(pair, confidence)
        else:
            yield _of_sums(pair, drawn, test, confidence)


def _of_sums(pair: Pair, flips: Flips, test: str, confidence: float) -> Inference:
    apart = pair.differences
    p: dict[str, float | None] = {
        "randomization": flips.p,
        "t": t_test(apart),
        "wilcoxon": wilcoxon_test(apart.x, apart.rounding),
    }
    if pair.difference is None:
        return Inference(pair, Interval(), p, flips)
    if too_few(pair.n_differing, confidence):
        if p["t"] is not None:  # no test can be surer than all signs together
            p["t"] = max(p["t"], min(2.0 ** (1 - pair.n_differing), 1.0))
        return Inference(pair, _of_few(pair, confidence), p, flips)
    if test == "t":
        return Inference(pair, _student(pair, confidence), p, flips)
    low, high = flips.interval(confidence)
    method = "equal" if apart.constant else "flips"
    rounding = flips.rounding * (pair.n if pair.a.how == "sum" else 1)
    ends = Interval(_shown(pair, low), _shown(pair, high), method, rounding)
    return Inference(pair, ends, p, flips)


def _of_few(pair: Pair, confidence: float) -> Interval:
    """Return all that can be said where too few queries differ for any p below α.

    The share of queries that win is at most u(wins), by Clopper and Pearson, 1934, and a query can
    win by no more than the largest possible difference; losses likewise.
    """
    if pair.a.how != "mean" or not pair.measure.declaration.bounded:
        return Interval(None, None, "few")
    rose, fell = (int(np.count_nonzero(flags)) for flags in (pair.apart > 0, pair.apart < 0))
    low, high = (share_limit(count, pair.n, confidence) for count in (fell, rose))
    return Interval(-low, high, "few")


def _shown(pair: Pair, mean: float) -> float:
    """Return a mean difference in the unit of the measure over queries."""
    if pair.a.how == "geometric":  # a mean difference of logarithms is the logarithm of a ratio
        return math.exp(pair.a.ratio) * math.expm1(mean)
    return mean * pair.n if pair.a.how == "sum" else mean


def _mean_of(pair: Pair, difference: float) -> float:
    """Return the mean difference that is shown as this one: the reverse of `_shown`."""
    if pair.a.how == "geometric":
        ratio = 1 + difference / math.exp(pair.a.ratio)
        return math.log(ratio) if ratio > 0 else -math.inf
    return difference / pair.n if pair.a.how == "sum" else difference


def _student(pair: Pair, confidence: float) -> Interval:
    """Return Student's interval of the mean difference."""
    apart = pair.differences
    if apart.constant:  # t is undefined, and so is its p
        return Interval()
    error = deviation(apart.influence() / apart.slope, 0.0) / math.sqrt(apart.n)
    reach = student_quantile(confidence, apart.n - 1) * error
    low, high = (_shown(pair, apart.ratio + side) for side in (-reach, reach))
    return Interval(low, high, "t")


def _of_quantiles(pair: Pair, confidence: float) -> Inference:
    """Return a percentile bootstrap with the p of the same resamples; of maxima, only a p."""
    p: dict[str, float | None] = dict.fromkeys(TESTS)
    if pair.difference is None or not pair.n:
        return Inference(pair, Interval(), p)
    if pair.a.share is None:
        return Inference(pair, Interval(), p | {"randomization": swap_test(pair)})
    if not pair.n_differing:
        return Inference(pair, Interval(None, None, "few"), p | {"randomization": 1.0})
    drawn = np.concatenate(
        [
            combine_rows(pair.b, pair.b.values[rows]) - combine_rows(pair.a, pair.a.values[rows])
            for rows in resamples(pair.n)
        ]
    )
    # k is such that the k-th smallest is above 0, or the k-th largest below it, exactly if p < α.
    n = drawn.size
    k = max(math.ceil((1 - confidence) * (n + 1) / 2 - 1e-9) - 1, 1)
    low = float(np.partition(drawn, k - 1)[k - 1])
    high = float(np.partition(drawn, n - k)[n - k])
    tail = min(np.count_nonzero(drawn <= 0), np.count_nonzero(drawn >= 0))
    p["randomization"] = min(2 * (int(tail) + 1) / (n + 1), 1.0)
    rounding = RELATIVE_ROUNDING * float(
        max(np.abs(pair.a.values).max(), np.abs(pair.b.values).max())
    )
    return Inference(pair, Interval(low, high, "percentile", rounding), p, resampled=drawn)


def swap_test(pair: Pair, draws: int = _DRAWS_OF_MAXIMA) -> float:
    """Return the p of a difference of maxima, by swapping the values themselves."""
    apart = pair.apart != 0
    n = int(np.count_nonzero(apart))
    # Only queries with two values change by swapping; the others are the same in every draw.
    if exact := 1 << min(n, 62) <= draws:
        blocks = iter([all_sign_patterns(n)])
    else:
        blocks = coin_flips(n, draws)
    observed, reached = abs(pair.difference or 0.0), 0
    least = observed * (1 - 1e-9)
    # Flips of few queries come in long blocks, too long next to the values of all queries.
    for turned in (flips[at] == 1 for flips in blocks for at in row_blocks(len(flips), pair.n)):
        a: Floats = np.tile(pair.a.values, (len(turned), 1))
        b: Floats = np.tile(pair.b.values, (len(turned), 1))
        a[:, apart] = np.where(turned, pair.b.values[apart], pair.a.values[apart])
        b[:, apart] = np.where(turned, pair.a.values[apart], pair.b.values[apart])
        reached += int(
            np.count_nonzero(np.abs(combine_rows(pair.b, b) - combine_rows(pair.a, a)) >= least)
        )
    return reached / (1 << n) if exact else (reached + 1) / (draws + 1)
