"""The topics that are evaluated: what kernels read, and what trec_eval makes of missing ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from karat.arrays import Flags, Floats, Ints
from karat.match.hits import Hits
from karat.measures import REGISTRY


@dataclass(frozen=True)
class Topics:
    """Topics in byte order of their ids.

    A topic that the run lacks counts, with -c, as a list of one item that nobody judged; the
    values that this would show are set to 0 afterwards. That is how trec_eval 10.0 does it.
    """

    ids: list[str]
    missing: Flags
    level: int
    documents: int
    _hits: Hits | None = None
    """Of topics, or of their judgment groups; preferences have none."""
    n_groups: Ints | None = None
    """How many judgment groups each topic has."""
    preferences: list[dict[str, float]] | None = None
    """The measures of preferences, for each topic."""

    @property
    def hits(self) -> Hits:
        """What kernels read."""
        assert self._hits is not None
        return self._hits

    @property
    def n_relevant(self) -> Ints:
        """How many items of each topic are relevant."""
        return self.hits.n_relevant(self.level)

    def value(self, name: str, *, cutoff: int | float | None = None, **given: Any) -> Floats:
        """Return what a kernel gives; parameters not given keep their defaults, rel follows -l."""
        declaration = REGISTRY[name]
        params = {param.name: param.default for param in declaration.params}
        if "rel" in params:
            params["rel"] = self.level
        return declaration.kernel(self.hits, cutoff, **(params | given))

    def without_missing(self, values: Any) -> Any:
        """Return values with 0, or no text, for the topics that the run lacks."""
        if isinstance(values, np.ndarray):
            return np.where(self.missing, 0.0, values)
        return ["" if gone else text for gone, text in zip(self.missing, values, strict=True)]

    def relevance_strings(self, most: int) -> list[str]:
        """Return the grades of the first items as text, one character an item."""
        lengths = np.clip(self.hits.length, 0, max(most, 0))
        starts = np.cumsum(lengths) - lengths
        characters = np.full(int(lengths.sum()), ord("-"), np.uint8)
        found = self.hits.found.within(most)
        grade = found.grade
        shown = np.where(grade > 9, ord(">"), np.where(grade < 0, ord("."), ord("0") + grade))
        characters[starts[found.query] + found.rank - 1] = shown
        text = characters.tobytes().decode("ascii")
        return [text[start : start + length] for start, length in zip(starts, lengths, strict=True)]


def average(topics: Topics, name: str, **given: Any) -> Floats:
    """Average a measure over the judgment groups of each topic, one after the other."""
    assert topics.n_groups is not None
    of_groups = topics.value(name, **given)
    counts = topics.n_groups
    topic = np.repeat(np.arange(counts.size), counts)
    return np.bincount(topic, of_groups, counts.size) / counts
