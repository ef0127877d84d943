"""Whether gold and run speak of the same items at all."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain, islice

import numpy as np

from karat.data.run import Run
from karat.match.hits import Flags
from karat.match.prepared import PreparedGold


@dataclass(frozen=True)
class Overlap:
    """Which relevant ids of gold stand anywhere in a run, and some ids of the run."""

    found: Flags
    sample: tuple[str, ...]


def overlap(gold: PreparedGold, run: Run) -> Overlap:
    """Look for every relevant id in all lists, whatever the query."""
    wanted = gold.relevant_ids
    if run.lists is None:
        items = run.results["item_id"]
        found = wanted.to_frame().join(items.to_frame(), on="item_id", how="semi").to_series()
        flags = wanted.is_in(found.implode()).to_numpy()
        return Overlap(flags, tuple(items.head(1000).unique(maintain_order=True).head(3)))
    relevant = set(wanted)
    seen: set[str] = set()
    for retrieved in run.lists.by_query.values():
        seen |= relevant.intersection(retrieved)
    flags = np.fromiter((item in seen for item in wanted), np.bool_, wanted.len())
    first = islice(chain.from_iterable(run.lists.by_query.values()), 1000)
    return Overlap(flags, tuple(dict.fromkeys(first))[:3])
