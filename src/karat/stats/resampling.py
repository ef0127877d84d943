"""Random draws that are the same everywhere: from raw bits, whose stream NumPy guarantees."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from karat.arrays import Floats, Ints
from karat.stats.samples import Sample

SEED = 20261115
RESAMPLES = 10_000
_CELLS = 1 << 18  # of a block: 2 MiB of floats, which the cache of a core holds
_ROWS = 16


def random_integers(bits: np.random.PCG64, limit: int, shape: tuple[int, ...]) -> Ints:
    """Draw whole numbers from 0 up to a limit; uneven by at most limit / 2^32."""
    size = int(np.prod(shape))
    raw = bits.random_raw(-(-size // 2)).astype("<u8", copy=False).view("<u4")[:size]
    drawn: Ints = ((raw.astype(np.uint64) * np.uint64(limit)) >> np.uint64(32)).astype(np.int64)
    return drawn.reshape(shape)


def resamples(n: int) -> Iterator[Ints]:
    """Draw n of n queries with replacement, in blocks of rows; RESAMPLES rows in all."""
    bits = np.random.PCG64(SEED)
    for rows in _blocks(RESAMPLES, n + n % 2):  # an odd row would leave half a word behind
        yield random_integers(bits, n, (rows, n + n % 2))[:, :n]


@lru_cache(maxsize=2)
def draw_counts(n: int) -> NDArray[np.uint16]:
    """Return how often each resample holds each query; kept, as every measure asks for it."""
    blocks = []
    for drawn in resamples(n):
        rows = np.arange(len(drawn))[:, None]
        flat = np.bincount((drawn + rows * n).ravel(), minlength=drawn.size)
        blocks.append(flat.reshape(drawn.shape).astype(np.uint16))
    return np.concatenate(blocks)


def resampled_sums(columns: Floats) -> Floats:
    """Sum each column over the queries of each resample: exact, RESAMPLES rows."""
    times = draw_counts(len(columns))
    sums = [times[at].astype(np.float64) @ columns for at in row_blocks(RESAMPLES, len(columns))]
    return np.concatenate(sums)


def coin_flips(n: int, draws: int) -> Iterator[Floats]:
    """Flip a coin for each of n queries: blocks of rows of 0 and 1."""
    bits = np.random.PCG64(SEED)
    words = -(-n // 64)
    for rows in _blocks(draws, n):
        raw = bits.random_raw(rows * words).astype("<u8", copy=False).view(np.uint8)
        yield np.unpackbits(raw.reshape(rows, -1), axis=1, count=n).astype(np.float64)


def all_sign_patterns(n: int) -> Floats:
    """Return all 2^n rows of n zeros and ones."""
    numbers = np.arange(1 << n)[:, None]
    return ((numbers >> np.arange(n)) & 1).astype(np.float64)


def _blocks(rows: int, columns: int) -> Iterator[int]:
    for part in row_blocks(rows, columns):
        yield part.stop - part.start


def row_blocks(rows: int, columns: int) -> Iterator[slice]:
    """Cut rows into blocks that a cache holds, or of a few rows where none does.

    A product of one row reads all of the other matrix; of several, it is read once for them all.
    """
    step = max(_ROWS, _CELLS // max(columns, 1))
    for begin in range(0, rows, step):
        yield slice(begin, min(begin + step, rows))


def to_integers(columns: Floats, rounding: Floats | float = 0.0) -> tuple[Floats, Ints]:
    """Return each column times 2^e, rounded to whole numbers, and the e of each.

    Matrix products add in an order that depends on the processor and the number of its cores.
    A sum of up to n of these numbers stays below 2^53, so every order gives the same digits. What
    rounding changes is at most 2^-51 · n of the largest value, far below the error of any draw.
    No unit is smaller than what is known to be `rounding` of the values already.
    """
    room = 52 - int(np.ceil(np.log2(max(len(columns), 2))))
    largest = np.abs(columns).max(axis=0, initial=0.0)
    exponents = room - np.frexp(largest)[1]
    exponents = np.where(
        np.greater(rounding, 0), np.minimum(exponents, -np.frexp(rounding)[1]), exponents
    )
    return np.rint(np.ldexp(columns, exponents)), exponents


_ROUNDING = 1e-9
"""What is as close as this, of the whole range, is the same number: 1/3 + 1/3 and 2/3."""


def bca_interval(
    value: float, resampled: Floats, without_each: Floats, confidence: float
) -> Floats:
    """Return both ends of the BCa interval.

    B. Efron, Better Bootstrap Confidence Intervals, 1987. The bias is how far the resampled
    numbers lie to one side (ties to both), the acceleration comes from leaving each query out.
    """
    normal = NormalDist()
    known = resampled[~np.isnan(resampled)]
    apart = known - value
    apart[np.abs(apart) <= _ROUNDING * np.ptp(known)] = 0.0
    below, same = np.count_nonzero(apart < 0), np.count_nonzero(apart == 0)
    # Never quite 0 or 1, of which the normal quantile is infinite.
    share = (below + same / 2 + 0.5) / (known.size + 1)
    bias = normal.inv_cdf(share)
    acceleration = _acceleration(without_each[~np.isnan(without_each)])
    ends = []
    tail = normal.inv_cdf((1 - confidence) / 2)
    for step in (bias + tail, bias - tail):
        room = 1 - acceleration * step
        # At a confidence near 1 the correction may reach past infinity: then nothing is left out.
        ends.append(normal.cdf(bias + step / room) if room > 0 else float(step > 0))
    return np.quantile(known, ends)


def percentile_interval(resampled: Floats, confidence: float) -> Floats:
    """Return both ends of the plain percentile interval."""
    return np.quantile(resampled, [(1 - confidence) / 2, (1 + confidence) / 2])


def _acceleration(without_each: Floats) -> float:
    middle = math.fsum(without_each.tolist()) / without_each.size
    apart = middle - without_each
    # It has no unit: in units of the largest, no cube vanishes or grows beyond all numbers.
    parts = np.ldexp(apart, -np.frexp(np.abs(apart).max(initial=0.0))[1]).tolist()
    spread = math.fsum(a * a for a in parts) ** 1.5
    return math.fsum(a * a * a for a in parts) / (6 * spread) if spread else 0.0


def combine_rows(sample: Sample, rows: Floats) -> Floats:
    """Combine each row as a sample says: to a quantile, or to the largest value."""
    found: Floats = (
        rows.max(axis=1) if sample.share is None else np.quantile(rows, sample.share, axis=1)
    )
    return found
