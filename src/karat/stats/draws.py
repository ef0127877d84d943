"""Random draws that are the same everywhere: from raw bits, whose stream NumPy guarantees."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from karat.arrays import Floats, Ints

SEED = 20261115
RESAMPLES = 10_000
_CELLS = 1 << 18  # of a block: 2 MiB of floats, which the cache of a core holds
_ROWS = 16


def below(bits: np.random.PCG64, limit: int, shape: tuple[int, ...]) -> Ints:
    """Draw whole numbers from 0 up to a limit; uneven by at most limit / 2^32."""
    size = int(np.prod(shape))
    raw = bits.random_raw(-(-size // 2)).astype("<u8", copy=False).view("<u4")[:size]
    drawn: Ints = ((raw.astype(np.uint64) * np.uint64(limit)) >> np.uint64(32)).astype(np.int64)
    return drawn.reshape(shape)


def resamples(n: int) -> Iterator[Ints]:
    """Draw n of n queries with replacement, in blocks of rows; RESAMPLES rows in all."""
    bits = np.random.PCG64(SEED)
    for rows in _blocks(RESAMPLES, n + n % 2):  # an odd row would leave half a word behind
        yield below(bits, n, (rows, n + n % 2))[:, :n]


@lru_cache(maxsize=2)
def times_drawn(n: int) -> NDArray[np.uint16]:
    """Return how often each resample holds each query; kept, as every measure asks for it."""
    blocks = []
    for drawn in resamples(n):
        rows = np.arange(len(drawn))[:, None]
        flat = np.bincount((drawn + rows * n).ravel(), minlength=drawn.size)
        blocks.append(flat.reshape(drawn.shape).astype(np.uint16))
    return np.concatenate(blocks)


def resampled_sums(columns: Floats) -> Floats:
    """Sum each column over the queries of each resample: exact, RESAMPLES rows."""
    times = times_drawn(len(columns))
    sums = [times[at].astype(np.float64) @ columns for at in slices(RESAMPLES, len(columns))]
    return np.concatenate(sums)


def coin_flips(n: int, draws: int) -> Iterator[Floats]:
    """Flip a coin for each of n queries: blocks of rows of 0 and 1."""
    bits = np.random.PCG64(SEED)
    words = -(-n // 64)
    for rows in _blocks(draws, n):
        raw = bits.random_raw(rows * words).astype("<u8", copy=False).view(np.uint8)
        yield np.unpackbits(raw.reshape(rows, -1), axis=1, count=n).astype(np.float64)


def every_pattern(n: int) -> Floats:
    """Return all 2^n rows of n zeros and ones."""
    numbers = np.arange(1 << n)[:, None]
    return ((numbers >> np.arange(n)) & 1).astype(np.float64)


def _blocks(rows: int, columns: int) -> Iterator[int]:
    for part in slices(rows, columns):
        yield part.stop - part.start


def slices(rows: int, columns: int) -> Iterator[slice]:
    """Cut rows into blocks that a cache holds, or of a few rows where none does.

    A product of one row reads all of the other matrix; of several, it is read once for them all.
    """
    step = max(_ROWS, _CELLS // max(columns, 1))
    for begin in range(0, rows, step):
        yield slice(begin, min(begin + step, rows))
