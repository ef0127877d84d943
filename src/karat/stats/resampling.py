"""Random draws for resampling and sign flips, and bootstrap intervals from resampled values.

All draws start from the raw bits of PCG64, whose stream NumPy guarantees, so that results are the
same on every machine and with every version. `to_integers` makes sums exact for the same reason.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from karat.arrays import Floats, Ints

SEED = 20261115
RESAMPLES = 10_000
_BLOCK_CELLS = 1 << 18
"""Cells of a block: 2 MiB of floats, which fit into the cache of a core."""
_BLOCK_ROWS = 16
"""The minimum number of rows of a block."""
_PRODUCT_SIZE = 1 << 17
"""The number of multiplications of a matrix product for which OpenBLAS uses one thread.

With two threads, such flat products take twice as long, and ten times if the cores are busy.
"""
_TIE = 1e-9
"""Resampled values closer than this share of their range are equal, such as 1/3 + 1/3 and 2/3."""


def random_integers(bits: np.random.PCG64, limit: int, shape: tuple[int, ...]) -> Ints:
    """Draw integers from 0 to limit − 1; probabilities are uneven by at most limit / 2^32."""
    size = int(np.prod(shape))
    raw = bits.random_raw(-(-size // 2)).astype("<u8", copy=False).view("<u4")[:size]
    drawn: Ints = ((raw.astype(np.uint64) * np.uint64(limit)) >> np.uint64(32)).astype(np.int64)
    return drawn.reshape(shape)


def random_shares(bits: np.random.PCG64, count: int) -> Floats:
    """Draw numbers between 0 and 1, both excluded."""
    raw = bits.random_raw(count).astype(np.uint64, copy=False) >> np.uint64(11)
    return (raw.astype(np.float64) + 0.5) * 2.0**-53


def resamples(n: int, draws: int | None = None) -> Iterator[Ints]:
    """Draw n of n queries with replacement, RESAMPLES times; yield blocks of rows."""
    bits = np.random.PCG64(SEED)
    columns = n + n % 2  # rows of even length use whole 64-bit words
    for rows in _block_sizes(RESAMPLES if draws is None else draws, columns, least=1):
        yield random_integers(bits, n, (rows, columns))[:, :n]


def counts_in(drawn: Ints) -> Ints:
    """Return how often each of n queries occurs in each row of n drawn queries."""
    n = drawn.shape[1]
    flat = np.bincount((drawn + np.arange(len(drawn))[:, None] * n).ravel(), minlength=drawn.size)
    return flat.reshape(drawn.shape)


@lru_cache(maxsize=2)
def draw_counts(n: int) -> NDArray[np.uint16]:
    """Return how often each resample contains each query; cached, since all measures use it."""
    return np.concatenate([counts_in(drawn).astype(np.uint16) for drawn in resamples(n)])


def resampled_sums(columns: Floats) -> Floats:
    """Return the sum of each column over the queries of each resample."""
    counts = draw_counts(len(columns))
    blocks = row_blocks(RESAMPLES, len(columns))
    return np.concatenate([counts[block].astype(np.float64) @ columns for block in blocks])


def coin_flips(n: int, draws: int) -> Iterator[Floats]:
    """Flip a coin for each of n queries, `draws` times; yield blocks of rows of 0 and 1."""
    bits = np.random.PCG64(SEED)
    words = -(-n // 64)
    for rows in _block_sizes(draws, n):
        raw = bits.random_raw(rows * words).astype("<u8", copy=False).view(np.uint8)
        yield np.unpackbits(raw.reshape(rows, -1), axis=1, count=n).astype(np.float64)


def flipped_sums(columns: Floats, draws: int) -> Iterator[Floats]:
    """Yield blocks of draws: the sum of each column of integers over the flipped queries.

    The flips are those of `coin_flips`. They are unpacked in parts of some queries, which fit into
    the cache and are multiplied by one thread.
    """
    bits = np.random.PCG64(SEED)
    n = len(columns)
    words = -(-n // 64)
    for rows in _block_sizes(draws, n):
        raw = bits.random_raw(rows * words).astype("<u8", copy=False).view(np.uint8)
        packed = raw.reshape(rows, -1)
        sums = np.zeros((rows, columns.shape[1]))
        step = max(_PRODUCT_SIZE // columns.shape[1] // rows // 8, 1)
        for first in range(0, packed.shape[1], step):
            part = columns[8 * first : 8 * (first + step)]
            flips = np.unpackbits(packed[:, first : first + step], axis=1, count=len(part))
            sums += flips.astype(np.float64) @ part
        yield sums


def all_sign_patterns(n: int) -> Floats:
    """Return all 2^n rows of n zeros and ones."""
    numbers = np.arange(1 << n)[:, None]
    return ((numbers >> np.arange(n)) & 1).astype(np.float64)


def row_blocks(rows: int, columns: int, least: int = _BLOCK_ROWS) -> Iterator[slice]:
    """Split the rows of a matrix into blocks that fit into the cache, of at least a few rows.

    A matrix product reads the whole other matrix once per block, so blocks of one row are slow.
    """
    step = max(least, _BLOCK_CELLS // max(columns, 1))
    for start in range(0, rows, step):
        yield slice(start, min(start + step, rows))


def _block_sizes(rows: int, columns: int, least: int = _BLOCK_ROWS) -> Iterator[int]:
    for block in row_blocks(rows, columns, least):
        yield block.stop - block.start


def to_integers(columns: Floats, rounding: Floats | float = 0.0) -> tuple[Floats, Ints]:
    """Return each column times 2^e, rounded to integers, and the exponent e of each column.

    Matrix products add in an order that depends on the processor and its number of cores. A sum of
    up to n of these integers stays below 2^53, so every order gives the same digits. Rounding
    changes a sum by at most 2^-51 · n of the largest value, far less than the error of any draw.
    The unit 2^-e is never smaller than `rounding`, the rounding error that the values already have.
    """
    bits = 52 - int(np.ceil(np.log2(max(len(columns), 2))))
    largest = np.abs(columns).max(axis=0, initial=0.0)
    exponents = bits - np.frexp(largest)[1]
    exponents = np.where(
        np.greater(rounding, 0), np.minimum(exponents, -np.frexp(rounding)[1]), exponents
    )
    return np.rint(np.ldexp(columns, exponents)), exponents


def bca_interval(
    value: float, resampled: Floats, without_each: Floats, confidence: float
) -> Floats:
    """Return both ends of the BCa bootstrap interval.

    B. Efron, Better Bootstrap Confidence Intervals, 1987. The bias is the share of the resampled
    values below the value (ties count half); the acceleration comes from the values without one
    query each.
    """
    normal = NormalDist()
    defined = resampled[~np.isnan(resampled)]
    differences = defined - value
    differences[np.abs(differences) <= _TIE * np.ptp(defined)] = 0.0
    n_below, n_equal = np.count_nonzero(differences < 0), np.count_nonzero(differences == 0)
    # Never exactly 0 or 1, where the normal quantile is infinite.
    share_below = (n_below + n_equal / 2 + 0.5) / (defined.size + 1)
    bias = normal.inv_cdf(share_below)
    acceleration = _acceleration(without_each[~np.isnan(without_each)])
    quantiles = []
    tail = normal.inv_cdf((1 - confidence) / 2)
    for step in (bias + tail, bias - tail):
        denominator = 1 - acceleration * step
        # With a confidence near 1, the correction can pass infinity: use the extreme value then.
        if denominator > 0:
            quantiles.append(normal.cdf(bias + step / denominator))
        else:
            quantiles.append(float(step > 0))
    return np.quantile(defined, quantiles)


def _acceleration(without_each: Floats) -> float:
    mean = math.fsum(without_each.tolist()) / without_each.size
    differences = mean - without_each
    # The result has no unit. Scaling by the largest difference avoids underflow and overflow.
    exponent = np.frexp(np.abs(differences).max(initial=0.0))[1]
    scaled = np.ldexp(differences, -exponent).tolist()
    denominator = 6 * math.fsum(d * d for d in scaled) ** 1.5
    return math.fsum(d * d * d for d in scaled) / denominator if denominator else 0.0
