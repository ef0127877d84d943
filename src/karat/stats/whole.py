"""Whole numbers in place of fractions, so that sums do not depend on the order of adding."""

from __future__ import annotations

import numpy as np

from karat.arrays import Floats, Ints


def whole(columns: Floats, rounding: Floats | float = 0.0) -> tuple[Floats, Ints]:
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
