"""Functions that compute the values of trec_eval with the kernels of karat."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from karat.arrays import Floats
from karat.compat.trec_eval.parameters import Pairs
from karat.compat.trec_eval.topics import Topics
from karat.measures.aggregate import GEOMETRIC_FLOOR
from karat.measures.array_math import logarithm
from karat.measures.kernels.interpolated import average_at_recall, relevant_needed

Compute = Callable[[Topics, Any], list[Any]]
"""From topics and parameters to one array of values per line."""


def plain(karat: str, **fixed: Any) -> Compute:
    """Return a function for a measure with one line."""
    return lambda topics, _: [topics.value(karat, **fixed)]


def per_parameter(karat: str, parameter: str | None = None) -> Compute:
    """Return a function for a measure with one line per cutoff, or per value of a parameter."""

    def compute(topics: Topics, values: Any) -> list[Floats]:
        if parameter is None:
            return [topics.value(karat, cutoff=value) for value in values]
        return [topics.value(karat, **{parameter: value}) for value in values]

    return compute


def preference(name: str) -> Compute:
    """Return the function that computes a preference measure."""

    def compute(topics: Topics, _: Any) -> list[Floats]:
        assert topics.preferences is not None
        return [np.array([values[name] for values in topics.preferences], np.float64)]

    return compute


def gains(karat: str) -> Compute:
    """Return a function for a measure with gains by grade."""
    return lambda topics, pairs: [topics.value(karat, gain=pairs.gains or "linear")]


def logarithmic(karat: str) -> Compute:
    """Return a function for the logarithms of a measure; the summary shows a geometric mean."""
    return lambda topics, _: [logarithm(np.maximum(topics.value(karat), GEOMETRIC_FLOOR), math.log)]


def _undefined_where_empty(topics: Topics, values: Floats, point: float) -> Floats:
    """Return -NaN where trec_eval divides 0 by 0, because -J or -M leaves no items."""
    needed = relevant_needed(topics.hits, point, topics.level)
    return np.where((topics.hits.length == 0) & (needed == 0), -np.nan, values)


def interpolated(topics: Topics, points: tuple[float, ...]) -> list[Floats]:
    """Return iprec_at_recall for each recall level."""
    return [
        _undefined_where_empty(topics, topics.value("IPrec", cutoff=point), point)
        for point in points
    ]


def eleven_points(topics: Topics, points: tuple[float, ...]) -> list[Floats]:
    """Return 11pt_avg, the mean over recall levels."""
    values = average_at_recall(topics.hits, points, topics.level)
    return [_undefined_where_empty(topics, values, min(points))]


def at_levels(topics: Topics, pairs: Pairs) -> list[Floats]:
    """Return Rndcg: 0 without relevant items, -NaN (0 / 0 in trec_eval) without gains."""
    gain = pairs.gains or "linear"
    values = topics.value("RnDCG", gain=gain)
    has_no_gain = topics.value("IDCG", gain=gain) == 0
    return [np.where(topics.n_relevant > 0, np.where(has_no_gain, -np.nan, values), 0.0)]


def utility(topics: Topics, weights: tuple[float, ...]) -> list[Floats]:
    """Return utility for the weights a, b, c and d."""
    a, b, c, d = weights
    return [topics.value("Utility", a=a, b=b, c=c, d=d, documents=topics.documents)]


def rank_biased(topics: Topics, pairs: Pairs) -> list[Floats]:
    """Return rbp, which divides gains by the largest grade of each topic and ignores -l."""
    return [topics.value("RBP", p=pairs.persistence, gain="query", rel=1)]


def residual(topics: Topics, pairs: Pairs) -> list[Floats]:
    """Return rbp_resid: how much unjudged items could add to rbp."""
    return [topics.value("RBPresid", p=pairs.persistence)]


def all_relevant(topics: Topics) -> Floats:
    """Return num_rel as trec_eval adds it with -c: all grades above 0, regardless of -l."""
    return topics.value("NumRel", rel=1)


def relevance_string(topics: Topics, lengths: tuple[float, ...]) -> list[Any]:
    """Return relstring: the grades of the first items as text."""
    return [topics.relevance_strings(int(lengths[0]))]
