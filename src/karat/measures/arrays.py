"""Small array steps that kernels share."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from karat.match.hits import Floats, Ints


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
    return np.array([base**exponent for exponent in range(size)])


def _table_size(largest: int) -> int:
    # Powers of two, so that a deeper list makes a new table only now and then.
    return 1 << (largest + 1).bit_length()


def discount(rank: Ints) -> Floats:
    """Return log2(rank + 1), from one table of `math.log2`: the same digits on every machine."""
    return _discounts(_table_size(int(rank.max(initial=1))))[rank]


def power(base: float, exponent: Ints) -> Floats:
    """Return base ** exponent for whole exponents, from one table as well."""
    return _powers(base, _table_size(int(exponent.max(initial=1))))[exponent]
