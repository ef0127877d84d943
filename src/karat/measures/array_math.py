"""Array arithmetic that several kernels use."""

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
    """Divide element by element; the result is 0 where the denominator is 0."""
    numerator, denominator = np.asarray(numerator), np.asarray(denominator)
    out = np.zeros(np.broadcast(numerator, denominator).shape)
    quotient: Floats = np.divide(numerator, denominator, out=out, where=denominator != 0)
    return quotient


@cache
def _discounts(size: int) -> Floats:
    return np.array([1.0] + [math.log2(rank + 1) for rank in range(1, size)])


@cache
def _powers(base: float, size: int) -> Floats:
    # By repeated multiplication, in the order in which a user reads down the list.
    factors = np.full(size, base)
    factors[0] = 1.0
    powers: Floats = np.multiply.accumulate(factors)
    return powers


def _table_size(largest: int) -> int:
    # A power of two, so that longer lists rarely need a new table.
    return 1 << (largest + 1).bit_length()


def discount(rank: Ints) -> Floats:
    """Return log2(rank + 1).

    It is looked up in a table made by `math.log2`, so that all machines give the same digits.
    """
    return _discounts(_table_size(int(rank.max(initial=1))))[rank]


def logarithm(values: Floats, log: Callable[[float], float]) -> Floats:
    """Return logarithms by a function of `math`, so that all machines give the same digits."""
    return np.fromiter(map(log, values.tolist()), np.float64, values.size)


def running_sum(rows: RankedRows, weights: Floats) -> Floats:
    """Return the sum of the weights up to each row, within its query, in rank order."""
    sums = weights.astype(np.float64)
    if rows.ordinal.max(initial=0) > np.count_nonzero(rows.count):  # few queries with long lists
        stops = np.cumsum(rows.count).tolist()
        for begin, end in pairwise([0, *stops]):
            np.add.accumulate(sums[begin:end], out=sums[begin:end])
        return sums
    by_step = np.argsort(rows.ordinal, kind="stable")
    ends = np.cumsum(np.bincount(rows.ordinal))
    for begin, end in pairwise(ends[1:].tolist()):
        step = by_step[begin:end]
        sums[step] += sums[step - 1]
    return sums


def running_sum_at(rows: RankedRows, sums: Floats, query: Ints, rank: Ints) -> Floats:
    """Return the values that the running sums `sums` have at these ranks of these queries."""
    width = max(int(rows.rank.max(initial=0)), int(rank.max(initial=0))) + 1
    before = np.searchsorted(rows.query * width + rows.rank, query * width + rank, "right")
    has_row = before > 0
    if rows.query.size:
        has_row &= rows.query[before - 1] == query
    sums_there = np.zeros(query.size)
    sums_there[has_row] = sums[before[has_row] - 1]
    return sums_there


def power(base: float, exponent: Ints) -> Floats:
    """Return base ** exponent for integer exponents, looked up in a table."""
    return _powers(base, _table_size(int(exponent.max(initial=1))))[exponent]


def gain_of_grades(grade: Ints, gain: Any) -> Floats:
    """Return the gains of grades; grades that a {grade: gain} mapping omits stay linear."""
    linear = np.maximum(grade, 0).astype(np.float64)
    if gain == "linear":
        return linear
    if gain == "exp2":
        if linear.max(initial=0) > 1000:
            raise MeasureError(
                "grades above 1000 are too large for gain=exp2", hint="use gain=linear"
            )
        return np.exp2(linear) - 1
    for level, value in gain.items():
        linear[grade == level] = value
    return linear
