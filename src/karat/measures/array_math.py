"""Small array steps that kernels share."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np

from karat.arrays import Floats, Ints
from karat.errors import MeasureError
from karat.match.hits import RankedRows


def divide(numerator: Any, denominator: Any) -> Floats:
    """Divide query by query; 0 where the denominator is 0."""
    numerator, denominator = np.asarray(numerator), np.asarray(denominator)
    out = np.zeros(np.broadcast(numerator, denominator).shape)
    quotient: Floats = np.divide(numerator, denominator, out=out, where=denominator != 0)
    return quotient


@cache
def _discounts(size: int) -> Floats:
    return np.array([1.0] + [math.log2(rank + 1) for rank in range(1, size)])


@cache
def _powers(base: float, size: int) -> Floats:
    # One multiplication after the other, as a reader would do it down the list.
    factors = np.full(size, base)
    factors[0] = 1.0
    powers: Floats = np.multiply.accumulate(factors)
    return powers


def _table_size(largest: int) -> int:
    # Powers of two, so that a deeper list makes a new table only now and then.
    return 1 << (largest + 1).bit_length()


def discount(rank: Ints) -> Floats:
    """Return log2(rank + 1), from one table of `math.log2`: the same digits on every machine."""
    return _discounts(_table_size(int(rank.max(initial=1))))[rank]


def logarithm(values: Floats, log: Callable[[float], float]) -> Floats:
    """Return the logarithm of numbers that no table holds, by the `math` module as well."""
    return np.fromiter(map(log, values.tolist()), np.float64, values.size)


def running(places: RankedRows, weights: Floats) -> Floats:
    """Return the sum of the weights up to each place, within its query, in rank order."""
    sums = weights.astype(np.float64)
    if places.ordinal.max(initial=0) > np.count_nonzero(places.count):  # few queries, long lists
        stops = np.cumsum(places.count).tolist()
        for begin, end in pairwise([0, *stops]):
            np.add.accumulate(sums[begin:end], out=sums[begin:end])
        return sums
    by_step = np.argsort(places.ordinal, kind="stable")
    ends = np.cumsum(np.bincount(places.ordinal))
    for begin, end in pairwise(ends[1:].tolist()):
        step = by_step[begin:end]
        sums[step] += sums[step - 1]
    return sums


def running_at(places: RankedRows, sums: Floats, query: Ints, rank: Ints) -> Floats:
    """Return what a running sum amounts to at given ranks of given queries."""
    width = max(int(places.rank.max(initial=0)), int(rank.max(initial=0))) + 1
    before = np.searchsorted(places.query * width + places.rank, query * width + rank, "right")
    there = (before > 0) & (places.query[before - 1] == query) if places.query.size else before > 0
    reached = np.zeros(query.size)
    reached[there] = sums[before[there] - 1]
    return reached


def power(base: float, exponent: Ints) -> Floats:
    """Return base ** exponent for whole exponents, from one table as well."""
    return _powers(base, _table_size(int(exponent.max(initial=1))))[exponent]


def gain_of_grades(grade: Ints, gain: Any) -> Floats:
    """Return what grades are worth; grades that own gains leave out keep their linear one."""
    linear = np.maximum(grade, 0).astype(np.float64)
    if gain == "linear":
        return linear
    if gain == "exp2":
        if linear.max(initial=0) > 1000:
            raise MeasureError("2^grade is too large", hint="use gain=linear for such grades")
        return np.exp2(linear) - 1
    for level, value in gain.items():
        linear[grade == level] = value
    return linear
