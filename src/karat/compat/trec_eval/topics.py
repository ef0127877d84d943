"""The topics that are evaluated: the input of the kernels, with missing topics as in trec_eval."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from karat.arrays import Flags, Floats, Ints
from karat.match.hits import Hits
from karat.measures import REGISTRY


@dataclass(frozen=True)
class Topics:
    """Topics in the byte order of their ids.

    With -c, a topic that is not in the run counts as a list of one unjudged item. Values that this
    would affect are set to 0 afterwards. trec_eval 10.0 does the same.
    """

    ids: list[str]
    missing: Flags
    level: int
    documents: int
    _hits: Hits | None = None
    """One query per topic, or per judgment group; None for preferences."""
    n_groups: Ints | None = None
    """The number of judgment groups of each topic."""
    preferences: list[dict[str, float]] | None = None
    """The values of the preference measures, for each topic."""

    @property
    def hits(self) -> Hits:
        """The input of the kernels."""
        assert self._hits is not None
        return self._hits

    @property
    def n_relevant(self) -> Ints:
        """The number of relevant items of each topic."""
        return self.hits.n_relevant(self.level)

    def value(self, name: str, *, cutoff: int | float | None = None, **params: Any) -> Floats:
        """Return the values of a karat measure.

        -l sets `rel`; parameters that are not passed keep their defaults.
        """
        declaration = REGISTRY[name]
        defaults = {param.name: param.default for param in declaration.params}
        if "rel" in defaults:
            defaults["rel"] = self.level
        return declaration.kernel(self.hits, cutoff, **(defaults | params))

    def without_missing(self, values: Any) -> Any:
        """Return values with 0, or an empty text, for the topics that are not in the run."""
        if isinstance(values, np.ndarray):
            return np.where(self.missing, 0.0, values)
        return [
            "" if is_missing else text
            for is_missing, text in zip(self.missing, values, strict=True)
        ]

    def relevance_strings(self, most: int) -> list[str]:
        """Return the grades of the first items of each topic as text, one character per item."""
        lengths = np.clip(self.hits.length, 0, max(most, 0))
        starts = np.cumsum(lengths) - lengths
        characters = np.full(int(lengths.sum()), ord("-"), np.uint8)
        judged = self.hits.found.within(most)
        grade = judged.grade
        symbols = np.where(grade > 9, ord(">"), np.where(grade < 0, ord("."), ord("0") + grade))
        characters[starts[judged.query] + judged.rank - 1] = symbols
        text = characters.tobytes().decode("ascii")
        return [text[start : start + length] for start, length in zip(starts, lengths, strict=True)]


def average(topics: Topics, name: str, **params: Any) -> Floats:
    """Return the mean of a measure over the judgment groups of each topic."""
    assert topics.n_groups is not None
    group_values = topics.value(name, **params)
    counts = topics.n_groups
    topic = np.repeat(np.arange(counts.size), counts)
    return np.bincount(topic, group_values, counts.size) / counts
