"""Judgment groups (-R qrels_jg): several judges of one topic, each scored alone, then averaged."""

from __future__ import annotations

from typing import Any

import numpy as np

from karat.arrays import Floats
from karat.compat.trec_eval.topics import Topics


def average(topics: Topics, name: str, **given: Any) -> Floats:
    """Average a measure over the judgment groups of each topic, one after the other."""
    assert topics.n_groups is not None
    of_groups = topics.value(name, **given)
    counts = topics.n_groups
    topic = np.repeat(np.arange(counts.size), counts)
    return np.bincount(topic, of_groups, counts.size) / counts
