"""Normalization: make the scores of different runs comparable before they are combined.

Each list, that is each query of each run, is normalized on its own. Items that a run did not
retrieve stay NaN. A list whose scores are all equal gets 0, as in ranx.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from karat.arrays import Floats
from karat.data.fusion.candidates import Candidates
from karat.errors import InputError

RANK_BASED = ("rank", "borda")
"""The normalizations that replace scores by values of the ranks."""


def normalized(candidates: Candidates, name: str, need: str) -> Floats:
    """Return normalized scores, one row per candidate and one column per run.

    `need` is what the scores are needed for, for the error message of a run without scores.
    """
    if name == "rank":
        return _by_rank(candidates)
    if name == "borda":
        return _by_borda(candidates)
    scores = candidates.scores(need)
    with np.errstate(over="ignore", invalid="ignore"):
        return _BY_SCORE[name](candidates, scores)


def _unchanged(_: Candidates, scores: Floats) -> Floats:
    return scores


def _min_max(candidates: Candidates, scores: Floats) -> Floats:
    low = _lowest(candidates, scores)
    return _divide(scores - low, _highest(candidates, scores) - low)


def _by_maximum(candidates: Candidates, scores: Floats) -> Floats:
    high = _highest(candidates, scores)
    invalid = (high <= 0) & (scores != 0) & ~np.isnan(scores)
    if invalid.any():
        row, column = (int(index[0]) for index in np.nonzero(invalid))
        query = candidates.pairs["query_id"][row]
        raise InputError(
            f"run {candidates.names[column]!r}, query {query!r}: the highest score is "
            f"{high[row, column]:g}, but the normalization max divides by it",
            field="score",
            hint="use the normalization min-max, which allows scores below 0",
        )
    return _divide(scores, high)


def _z_score(candidates: Candidates, scores: Floats) -> Floats:
    lengths = candidates.lengths[candidates.query]
    deviation = scores - _total(candidates, scores) / np.maximum(lengths, 1)
    spread = np.sqrt(_total(candidates, deviation**2) / np.maximum(lengths, 1))
    # Rounding of the mean must not turn equal scores into different ones.
    is_constant = _highest(candidates, scores) == _lowest(candidates, scores)
    return _divide(deviation, np.where(is_constant, 0.0, spread))


def _by_sum(candidates: Candidates, scores: Floats) -> Floats:
    shifted = scores - _lowest(candidates, scores)
    return _divide(shifted, _total(candidates, shifted))


def _by_rank(candidates: Candidates) -> Floats:
    lengths = candidates.lengths[candidates.query]
    return 1 - (candidates.ranks - 1) / np.maximum(lengths, 1)


def _by_borda(candidates: Candidates) -> Floats:
    """Return the Borda points divided by the number of candidates.

    The items of a query that a run did not retrieve share the points that are left.
    """
    return borda_points(candidates) / candidates.counts[candidates.query][:, None]


def borda_points(candidates: Candidates) -> Floats:
    """Return n for the first of n candidates, n-1 for the second, and so on.

    Candidates that are not in a list get the mean of the points that are left. All points are NaN
    if a run retrieved nothing for a query.
    """
    n_candidates = candidates.counts[candidates.query][:, None].astype(np.float64)
    lengths = candidates.lengths[candidates.query]
    unranked = np.where(lengths > 0, (n_candidates - lengths + 1) / 2, np.nan)
    points = n_candidates - (candidates.ranks - 1)
    return np.where(np.isnan(points), unranked, points)


def _lowest(candidates: Candidates, scores: Floats) -> Floats:
    """Return the lowest score of the list that each value is in."""
    starts = np.cumsum(candidates.counts) - candidates.counts
    low: Floats = np.fmin.reduceat(scores, starts, axis=0)[candidates.query]
    return low


def _highest(candidates: Candidates, scores: Floats) -> Floats:
    return -_lowest(candidates, -scores)


def _total(candidates: Candidates, scores: Floats) -> Floats:
    """Return the sum of the list that each value is in, added in the order of the candidates."""
    filled = np.nan_to_num(scores, nan=0.0, posinf=np.inf, neginf=-np.inf)
    columns = [np.bincount(candidates.query, column) for column in filled.T]
    totals: Floats = np.stack(columns, axis=1).astype(np.float64)
    return totals[candidates.query]


def _divide(values: Floats, divisor: Floats) -> Floats:
    """Divide; 0 where the divisor is 0."""
    zeros = np.where(np.isnan(values), np.nan, 0.0)
    return np.divide(values, divisor, out=zeros, where=divisor != 0)


_BY_SCORE: dict[str, Callable[[Candidates, Floats], Floats]] = {
    "min-max": _min_max,
    "max": _by_maximum,
    "z-score": _z_score,
    "sum": _by_sum,
    "none": _unchanged,
}
NORMALIZATIONS = (*_BY_SCORE, *RANK_BASED)
