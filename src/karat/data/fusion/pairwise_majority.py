"""Condorcet fusion: order the candidates so that each is preferred to the next by a majority."""

from __future__ import annotations

import numpy as np

from karat.arrays import Flags, Floats, Ints

_ROUNDING = 1e-12


def majority_order(order: Ints, ranks: Floats, weights: Floats, counts: Ints) -> Ints:
    """Sort the candidates of each query by pairwise majority, and return their indices.

    `order` contains the candidates of one query after the other; `counts` is the number of each
    query. One candidate is before another if runs with the larger sum of weights rank it higher;
    an item that a run did not retrieve is below all items of its list. If the sums are equal, the
    two keep their order.

    A majority may prefer a to b, b to c and c to a. Like Montague and Aslam (2002), this sorts with
    the comparison nevertheless, which gives a list in which no item is beaten by its successor. It
    is a merge sort from the bottom up, with all blocks of all queries merged at the same time.
    """
    positions = np.where(np.isnan(ranks), np.inf, ranks)
    ends = np.cumsum(counts)
    starts = ends - counts
    width = 1
    while width < counts.max():
        n_blocks = -(-counts // (2 * width))
        block = np.arange(n_blocks.sum()) - np.repeat(np.cumsum(n_blocks) - n_blocks, n_blocks)
        left = np.repeat(starts, n_blocks) + block * 2 * width
        end = np.minimum(left + 2 * width, np.repeat(ends, n_blocks))
        order = _merged(order, left, np.minimum(left + width, end), end, positions, weights)
        width *= 2
    return order


def _merged(
    order: Ints, left: Ints, middle: Ints, end: Ints, positions: Floats, weights: Floats
) -> Ints:
    """Merge all pairs of blocks [left, middle) and [middle, end), one item of each at a time."""
    merged = order.copy()
    has_two = middle < end
    left, middle, end = left[has_two], middle[has_two], end[has_two]
    target, right = left.copy(), middle.copy()
    while target.size:
        left_item = order[np.minimum(left, middle - 1)]
        right_item = order[np.minimum(right, end - 1)]
        takes_right = (right < end) & (
            (left == middle) | _beats(right_item, left_item, positions, weights)
        )
        merged[target] = np.where(takes_right, right_item, left_item)
        left, right, target = left + ~takes_right, right + takes_right, target + 1
        is_open = target < end
        if not is_open.all():
            left, middle, end = left[is_open], middle[is_open], end[is_open]
            right, target = right[is_open], target[is_open]
    return merged


def _beats(one: Ints, other: Ints, positions: Floats, weights: Floats) -> Flags:
    """Return which items are preferred to the others by a majority of the weights."""
    lead = np.zeros(one.size)
    for column, weight in zip(positions.T, weights, strict=True):
        first, second = column[one], column[other]
        lead += weight * ((first < second).astype(np.float64) - (second < first))
    # 0.1 + 0.2 - 0.3 is a tie, although it is not 0 in floating-point arithmetic.
    is_ahead: Flags = lead > _ROUNDING * weights.sum()
    return is_ahead
