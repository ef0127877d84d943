"""How karat's kernels make trec_eval's values, one array for each line that a topic gets."""

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
"""From topics and parameters to one array for each line."""


def plain(karat: str, **fixed: Any) -> Compute:
    """Make one line from a kernel; `rel` follows -l where the kernel takes it."""
    return lambda topics, _: [topics.value(karat, **fixed)]


def each(karat: str, parameter: str | None = None) -> Compute:
    """Make a line for each cutoff, or for each value of a parameter."""

    def compute(topics: Topics, values: Any) -> list[Floats]:
        if parameter is None:
            return [topics.value(karat, cutoff=value) for value in values]
        return [topics.value(karat, **{parameter: value}) for value in values]

    return compute


def preference(name: str) -> Compute:
    """Make one line from what was worked out of preferences."""

    def compute(topics: Topics, _: Any) -> list[Floats]:
        assert topics.preferences is not None
        return [np.array([values[name] for values in topics.preferences], np.float64)]

    return compute


def gains(karat: str) -> Compute:
    """Make one line from a kernel that takes gains."""
    return lambda topics, given: [topics.value(karat, gain=given.gains or "linear")]


def logarithmic(karat: str) -> Compute:
    """Make what a geometric mean adds up; it is printed in the summary only."""
    return lambda topics, _: [logarithm(np.maximum(topics.value(karat), GEOMETRIC_FLOOR), math.log)]


def _undefined_where_empty(topics: Topics, values: Floats, point: float) -> Floats:
    """Print -nan as trec_eval does, which divides 0 by 0 where -J or -M leaves nothing."""
    needed = relevant_needed(topics.hits, point, topics.level)
    return np.where((topics.hits.length == 0) & (needed == 0), -np.nan, values)


def interpolated(topics: Topics, given: tuple[float, ...]) -> list[Floats]:
    """Make a line for each point of recall."""
    return [
        _undefined_where_empty(topics, topics.value("IPrec", cutoff=point), point)
        for point in given
    ]


def eleven_points(topics: Topics, given: tuple[float, ...]) -> list[Floats]:
    """Average over points of recall."""
    values = average_at_recall(topics.hits, given, topics.level)
    return [_undefined_where_empty(topics, values, min(given))]


def at_levels(topics: Topics, given: Pairs) -> list[Floats]:
    """Without relevant items it is 0; without gains trec_eval divides 0 by 0."""
    gain = given.gains or "linear"
    values = topics.value("RnDCG", gain=gain)
    without = topics.value("IDCG", gain=gain) == 0
    return [np.where(topics.n_relevant > 0, np.where(without, -np.nan, values), 0.0)]


def utility(topics: Topics, given: tuple[float, ...]) -> list[Floats]:
    """Weigh what was retrieved and what was not."""
    a, b, c, d = given
    return [topics.value("Utility", a=a, b=b, c=c, d=d, documents=topics.documents)]


def rank_biased(topics: Topics, given: Pairs) -> list[Floats]:
    """Scale gains by each topic's largest grade, and pass over -l."""
    return [topics.value("RBP", p=given.persistence, gain="query", rel=1)]


def residual(topics: Topics, given: Pairs) -> list[Floats]:
    """Say what unjudged items could add to that."""
    return [topics.value("RBPresid", p=given.persistence)]


def all_relevant(topics: Topics) -> Floats:
    """Return what trec_eval sums up with -c: every grade above 0, whatever -l says."""
    return topics.value("NumRel", rel=1)


def relevance_string(topics: Topics, given: tuple[float, ...]) -> list[Any]:
    """Write the grades of the first items as text."""
    return [topics.relevance_strings(int(given[0]))]
