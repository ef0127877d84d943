"""Groups of queries that lie apart from the rest by more than chance would have it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from karat.arrays import Floats
from karat.stats.groups import FEW
from karat.stats.power import ALPHA


@dataclass(frozen=True)
class Apart:
    """A group, how it compares with all other queries, and how likely that is by chance."""

    label: str
    n: int
    mean: float
    difference: float
    """Its mean less that of the other queries."""
    p: float
    """Corrected for all groups that were looked at."""


def apart(groups: Mapping[str, Floats]) -> list[Apart]:
    """Return the groups whose mean differs from that of all other queries, the lowest first.

    By Welch's t, corrected by Bonferroni over all groups of 5 queries or more.

    >>> low, high = np.array([0.1, 0.2, 0.1, 0.2, 0.3]), np.array([0.8, 0.9, 0.7, 0.9, 0.8, 1.0])
    >>> [(group.label, round(group.difference, 2)) for group in apart({"a": low, "b": high})]
    [('a', -0.67), ('b', 0.67)]
    """
    looked_at = [label for label, own in groups.items() if own.size >= FEW]
    found = []
    for label in looked_at:
        others = [values for other, values in groups.items() if other != label]
        own, rest = groups[label], np.concatenate([np.empty(0), *others])
        if rest.size < FEW:
            continue
        mean, beside = math.fsum(own) / own.size, math.fsum(rest) / rest.size
        p = _welch(own, rest, mean - beside)
        if p is not None and p * len(looked_at) < ALPHA:
            found.append(Apart(label, own.size, mean, mean - beside, p * len(looked_at)))
    return sorted(found, key=lambda group: (group.difference, group.label))


def _welch(one: Floats, other: Floats, difference: float) -> float | None:
    """Return the two-sided p; None where neither varies, and few queries would look certain."""
    from scipy.special import stdtr

    parts = [float(values.var(ddof=1)) / values.size for values in (one, other)]
    error = sum(parts)
    if error == 0:
        return None
    sizes = (one.size, other.size)
    degrees = error**2 / sum(part**2 / (n - 1) for part, n in zip(parts, sizes, strict=True))
    return float(2 * stdtr(degrees, -abs(difference) / math.sqrt(error)))
