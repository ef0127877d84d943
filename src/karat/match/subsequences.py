"""How much a text has in common with every stretch of another, exactly."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]


def strand_starts(text: str, other: str) -> Ints:
    """Return what tells the longest common subsequence of a text and each stretch of another.

    That is as long as `other[start:end]`, less one for each of the first `end` numbers that is
    `start` or more. This is the combing of Tiskin ('Semi-local string comparison', 2006): for each
    pair of characters a strand from the left and one from above meet, and go on crosswise where
    the characters are equal, or bounce where they crossed before. Cells on a diagonal do not
    depend on one another, so each diagonal is one step.

    >>> starts = strand_starts("ac", "abc")
    >>> 3 - int(sum(starts[:3] >= 0)), 2 - int(sum(starts[:3] >= 1))  # "abc" and "bc"
    (2, 1)
    """
    rows, columns = len(text), len(other)
    kind: type[np.signedinteger[Any]] = np.int16 if rows + columns < 1 << 15 else np.int64
    codes, others = _codes(text)[::-1], _codes(other)
    across = np.arange(-rows, 0, dtype=kind)
    down = np.arange(columns, dtype=kind)
    for diagonal in range(rows + columns - 1):
        first, last = max(0, diagonal - columns + 1), min(rows - 1, diagonal)
        here = slice(rows - 1 - last, rows - first)
        there = slice(diagonal - last, diagonal - first + 1)
        left, above = across[here], down[there]
        crossing = (codes[here] == others[there]) | (left > above)
        kept = np.where(crossing, above, left)
        np.copyto(above, left, where=crossing)
        left[:] = kept
    return down.astype(np.int64)


def _codes(text: str) -> npt.NDArray[np.uint32]:
    return np.frombuffer(text.encode("utf-32-le"), np.uint32)
