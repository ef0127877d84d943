"""Which windows of a long text have much in common with a short one."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
from rapidfuzz import process
from rapidfuzz.distance import LCSseq

_BLOCK = 1 << 20  # as many windows are looked at in one go

Ints = npt.NDArray[np.int64]


def windows(text: str, long: str, size: int, common: int) -> Iterator[tuple[int, int]]:
    """Yield stretches that together hold each window of a size with so much in common with a text.

    What is in common is the longest common subsequence. A window that moves on by one character
    gains or loses at most one, so between two windows that have too little for their distance none
    has enough. Where that does not show, the middle between them is looked at, and so on; at the
    end there may be windows in the stretches that have a little less.
    """
    last = max(0, len(long) - size)
    for begin in range(0, max(1, last), _BLOCK):
        end = min(begin + _BLOCK, last)
        step = max(1, size // 2)
        places = np.array([*range(begin, end, step), end])
        held = _in_common(text, long, size, places, common - step)
        here, there = (slice(-1), slice(1, None)) if end > begin else (slice(1), slice(1))
        left, right, at_left, at_right = places[here], places[there], held[here], held[there]
        while left.size:
            enough = at_left + at_right + (right - left) >= 2 * common
            left, right = left[enough], right[enough]
            at_left, at_right = at_left[enough], at_right[enough]
            if step <= max(1, size // 16):
                break
            step = (step + 1) // 2
            middle = (left + right) // 2
            held = _in_common(text, long, size, middle, common - step)
            left, right = np.concatenate((left, middle)), np.concatenate((middle, right))
            at_left, at_right = np.concatenate((at_left, held)), np.concatenate((held, at_right))
        yield from zip(left.tolist(), (right + size).tolist(), strict=True)


def _in_common(text: str, long: str, size: int, places: Ints, least: int) -> Ints:
    """Count what the windows at some places have in common with a text; 0 where it is less."""
    parts = [long[place : place + size] for place in places.tolist()]
    held: Ints = process.cdist(
        [text], parts, scorer=LCSseq.similarity, score_cutoff=max(0, least), dtype=np.int64
    )[0]
    return held
