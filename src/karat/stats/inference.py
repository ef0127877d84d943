"""Inference for paired differences: an interval and p-values that never contradict each other."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from karat.arrays import Floats, Ints
from karat.stats.intervals import CONFIDENCE, Interval, student_reach, weight_limit
from karat.stats.paired_tests import Flips, sign_flips, t_test, too_few, wilcoxon_test
from karat.stats.pairs import Pair
from karat.stats.quantiles import resampled_differences
from karat.stats.resampling import (
    all_sign_patterns,
    coin_flips,
    row_blocks,
)
from karat.stats.samples import RELATIVE_ROUNDING
from karat.steps import tracked

TESTS = ("randomization", "t", "wilcoxon")
FEW_GEOMETRIC = 50
"""With fewer queries, the interval of a geometric mean is too narrow and is marked."""
_SWAP_DRAWS = 10_000
_MANY_SWAPPED = 10_000
_SWAPPED_OF_MANY = 64
"""If more queries than _MANY_SWAPPED differ, only the values of _SWAPPED_OF_MANY are swapped."""


@dataclass(frozen=True, eq=False)
class Inference:
    """The interval of a difference, and the p-value of each test."""

    pair: Pair
    interval: Interval
    p: dict[str, float | None]
    """The p-values by name of the test."""
    flips: Flips | None = None
    resampled: Floats | None = None
    """The resampled differences, if the measure is a quantile."""
    swaps: int | None = None
    """The number of random swaps, if the measure is a maximum and p is not exact."""

    @property
    def draws(self) -> int | None:
        """The number of random draws behind p and the interval; None if they are exact."""
        if self.resampled is not None:
            return self.resampled.size
        return self.swaps if self.flips is None else self.flips.draws

    def p_above(self, shift: float) -> float | None:
        """Return the one-sided p-value against a difference of at most `shift`.

        It is small if the difference is above `shift`. It is below 1 − c exactly if the interval
        with confidence 2c − 1 lies above `shift`.
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
        two_sided = self.flips.p_at(_mean_difference(self.pair, shift))
        return two_sided / 2 if difference > shift else 1 - two_sided / 2

    def p_below(self, shift: float) -> float | None:
        """Return the one-sided p-value against a difference of at least `shift`."""
        difference = self.pair.difference
        if difference is None or self.interval.method == "few":
            return None
        if self.resampled is not None:
            n = self.resampled.size
            most = shift - self.interval.rounding
            return (int(np.count_nonzero(self.resampled >= most)) + 1) / (n + 1)
        if self.flips is None:
            return None
        two_sided = self.flips.p_at(_mean_difference(self.pair, shift))
        return two_sided / 2 if difference < shift else 1 - two_sided / 2


def infer(
    pairs: Sequence[Pair], test: str = "randomization", confidence: float = CONFIDENCE
) -> Iterator[Inference]:
    """Yield the interval of each difference, and the p-values of all tests.

    The interval belongs to `test`. Wilcoxon's test has no interval of the mean, so it gets the one
    of the sign-flip test.
    """
    drawn = zip(pairs, sign_flips(pairs), strict=True)
    for pair, flips in tracked(drawn, "testing differences", len(pairs)):
        if flips is None:
            yield _infer_quantile(pair, confidence)
        else:
            yield _infer_sum(pair, flips, test, confidence)


def _infer_sum(pair: Pair, flips: Flips, test: str, confidence: float) -> Inference:
    differences = pair.differences
    p: dict[str, float | None] = {
        "randomization": flips.p,
        "t": t_test(differences),
        "wilcoxon": wilcoxon_test(differences.x, differences.rounding, differences.clusters),
    }
    if pair.difference is None:
        return Inference(pair, Interval(), p, flips)
    if too_few(pair.n_units_differing, confidence):
        if p["t"] is not None:  # no smaller than the smallest p-value of the sign-flip test
            p["t"] = max(p["t"], min(2.0 ** (1 - pair.n_units_differing), 1.0))
        return Inference(pair, _few_interval(pair, confidence), p, flips)
    if test == "t":
        return Inference(pair, _t_interval(pair, confidence), p, flips)
    low, high = flips.interval(confidence)
    method = "equal" if differences.constant else "flips"
    rounding = flips.rounding * (pair.n if pair.a.how == "sum" else 1)
    interval = Interval(
        _combined_difference(pair, low), _combined_difference(pair, high), method, rounding
    )
    return Inference(pair, interval, p, flips)


def _few_interval(pair: Pair, confidence: float) -> Interval:
    """Return the limits of the difference if too few queries differ for any p-value below α.

    The share of queries that win is at most the Clopper–Pearson limit (1934) of the wins, and a
    query wins by at most 1, the largest possible difference. The same holds for losses, and for
    clusters of queries. A single query excludes hardly any difference, so it has no limits.
    """
    has_limits = pair.a.how == "mean" and pair.measure.declaration.bounded
    if not has_limits or pair.units < 2:
        return Interval(None, None, "few")
    n_lower = int(np.count_nonzero(pair.unit_differences < 0))
    n_higher = int(np.count_nonzero(pair.unit_differences > 0))
    low = -weight_limit(pair.a, n_lower, confidence)
    high = weight_limit(pair.a, n_higher, confidence)
    return Interval(low, high, "few")


def _combined_difference(pair: Pair, mean: float) -> float:
    """Convert a mean difference per query to a difference of the combined values."""
    if pair.a.how == "geometric":  # a mean difference of logarithms is the logarithm of a ratio
        return math.exp(pair.a.ratio) * math.expm1(mean)
    return mean * pair.n if pair.a.how == "sum" else mean


def _mean_difference(pair: Pair, difference: float) -> float:
    """Convert a difference of combined values to a mean difference per query."""
    if pair.a.how == "geometric":
        ratio = 1 + difference / math.exp(pair.a.ratio)
        return math.log(ratio) if ratio > 0 else -math.inf
    return difference / pair.n if pair.a.how == "sum" else difference


def _t_interval(pair: Pair, confidence: float) -> Interval:
    """Return Student's interval of the mean difference."""
    differences = pair.differences
    mean = differences.ratio
    reach = None if differences.constant else student_reach(differences, confidence)
    if reach is None:  # the t-test is undefined
        return Interval()
    low, high = (_combined_difference(pair, end) for end in (mean - reach, mean + reach))
    return Interval(low, high, "t")


def _infer_quantile(pair: Pair, confidence: float) -> Inference:
    """Return a percentile bootstrap interval and the p-value of the same resamples.

    A maximum has no interval, only the p-value of a swap test.
    """
    p: dict[str, float | None] = dict.fromkeys(TESTS)
    if pair.difference is None or not pair.n:
        return Inference(pair, Interval(), p)
    if pair.a.share is None:
        p["randomization"], swaps = swap_test(pair)
        return Inference(pair, Interval(), p, swaps=swaps)
    if not pair.n_differing:
        return Inference(pair, Interval(None, None, "few"), p | {"randomization": 1.0})
    resampled = resampled_differences(pair.a, pair.b)
    # The k-th smallest value is above 0, or the k-th largest below 0, exactly if p < α.
    n = resampled.size
    k = max(math.ceil((1 - confidence) * (n + 1) / 2 - 1e-9) - 1, 1)
    low = float(np.partition(resampled, k - 1)[k - 1])
    high = float(np.partition(resampled, n - k)[n - k])
    tail = min(np.count_nonzero(resampled <= 0), np.count_nonzero(resampled >= 0))
    p["randomization"] = min(2 * (int(tail) + 1) / (n + 1), 1.0)
    rounding = RELATIVE_ROUNDING * float(
        max(np.abs(pair.a.values).max(), np.abs(pair.b.values).max())
    )
    return Inference(pair, Interval(low, high, "percentile", rounding), p, resampled=resampled)


def swap_test(pair: Pair, draws: int = _SWAP_DRAWS) -> tuple[float, int | None]:
    """Return the p-value of a difference of maxima, by swapping the values of the runs.

    The values of a cluster are swapped together. The second number is that of the random draws;
    None if all ways to swap are used.
    """
    differ = np.flatnonzero(pair.value_differences != 0)
    labels = pair.query_ids if pair.clusters is None else pair.clusters
    units = labels.gather(differ).rank("dense").to_numpy().astype(np.int64) - 1
    # Values that do not differ stay where they are.
    kept_a, kept_b = (
        sample.values[pair.value_differences == 0].max(initial=-math.inf)
        for sample in (pair.a, pair.b)
    )
    if units.max(initial=-1) >= _MANY_SWAPPED:
        differ, units = _with_largest(pair, differ, units)
    one, other = pair.a.values[differ], pair.b.values[differ]
    n = int(units.max(initial=-1)) + 1
    exact = 1 << min(n, 62) <= draws
    blocks = iter([all_sign_patterns(n)]) if exact else coin_flips(n, draws)
    least = abs(pair.difference or 0.0) * (1 - 1e-9)
    n_reached = 0
    for flips in blocks:
        # The blocks have a size for the units; split them for the values of all.
        for block in row_blocks(len(flips), differ.size):
            swap = flips[block][:, units] == 1
            a = np.where(swap, other, one).max(axis=1, initial=kept_a)
            b = np.where(swap, one, other).max(axis=1, initial=kept_b)
            n_reached += int(np.count_nonzero(np.abs(b - a) >= least))
    if exact:
        return n_reached / (1 << n), None
    return (n_reached + 1) / (draws + 1), draws


def _with_largest(pair: Pair, differ: Ints, units: Ints) -> tuple[Ints, Ints]:
    """Return the queries of the units with the largest values, and the numbers of their units.

    Both runs get the larger value of one of 64 units, except in one draw of 2^63. So no value of
    another unit is a maximum.
    """
    of_unit = np.full(int(units.max()) + 1, -math.inf)
    larger = np.maximum(pair.a.values, pair.b.values)[differ]
    np.maximum.at(of_unit, units, larger)
    kept = np.sort(np.argsort(-of_unit, kind="stable")[:_SWAPPED_OF_MANY])
    is_kept = np.isin(units, kept)
    return differ[is_kept], np.searchsorted(kept, units[is_kept])
