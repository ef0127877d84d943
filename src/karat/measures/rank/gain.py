"""Discounted cumulative gain."""

from __future__ import annotations

from typing import Any

import numpy as np

from karat.errors import MeasureError
from karat.match.hits import Floats, Hits, Ints, Places
from karat.measures.arrays import discount, divide
from karat.measures.declare import GAIN, measure


@measure(
    "DCG",
    title="Discounted cumulative gain",
    formula="Σ gain / log2(rank + 1) over the top k; gain = grade, 2^grade − 1 with gain=exp2",
    params=(GAIN,),
    no_gold=False,
)
def dcg(hits: Hits, k: int | None, gain: Any) -> Floats:
    return _discounted(hits.found.within(k), gain)


@measure(
    "nDCG",
    aliases=("ndcg_cut",),
    title="Normalised discounted cumulative gain",
    formula="DCG@k / the DCG@k of all judged items in the best order",
    params=(GAIN,),
)
def ndcg(hits: Hits, k: int | None, gain: Any) -> Floats:
    return divide(dcg(hits, k, gain), _discounted(_best(hits.gold, gain).within(k), gain))


def worth(grade: Ints, gain: Any) -> Floats:
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


def _discounted(places: Places, gain: Any) -> Floats:
    return places.total(worth(places.grade, gain) / discount(places.rank))


def _best(gold: Places, gain: Any) -> Places:
    """Order gold by gain; own gains need not rise with the grade."""
    if not isinstance(gain, dict):
        return gold
    order = np.lexsort((-worth(gold.grade, gain), gold.query))
    return Places(gold.n_queries, gold.query, gold.rank, gold.grade[order])
