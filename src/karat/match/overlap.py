"""Whether gold and run use the same ids at all."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain, islice

import numpy as np
import polars as pl

from karat.arrays import Flags
from karat.data.run import Run
from karat.match.prepared import PreparedGold


@dataclass(frozen=True)
class Overlap:
    """Which ids of gold occur anywhere in a run, and some ids of the run."""

    ids: pl.Series
    """The ids of gold: of relevant items, or of the documents that spans are in."""
    found: Flags
    sample: tuple[str, ...]


def overlap(gold: PreparedGold, run: Run) -> Overlap:
    """Look for every relevant id in all lists, whatever the query."""
    wanted = gold.relevant_ids
    if run.lists is None:
        items = run.results["item_id"]
        found = wanted.to_frame().join(items.to_frame(), on="item_id", how="semi").to_series()
        flags = wanted.is_in(found.implode()).to_numpy()
        return Overlap(wanted, flags, tuple(items.head(1000).unique(maintain_order=True).head(3)))
    relevant = set(wanted)
    seen: set[str] = set()
    for retrieved in run.lists.by_query.values():
        seen |= relevant.intersection(retrieved)
    flags = np.fromiter((item in seen for item in wanted), np.bool_, wanted.len())
    first = islice(chain.from_iterable(run.lists.by_query.values()), 1000)
    return Overlap(wanted, flags, tuple(dict.fromkeys(first))[:3])


def document_overlap(doc_ids: frozenset[str], run_ids: list[str]) -> Overlap:
    """Look for every document of gold's spans in all lists, whatever the query."""
    wanted = pl.Series("doc_id", sorted(doc_ids), pl.String)
    known = set(run_ids)
    flags = np.fromiter((doc_id in known for doc_id in wanted), np.bool_, wanted.len())
    return Overlap(wanted, flags, tuple(run_ids[:3]))
