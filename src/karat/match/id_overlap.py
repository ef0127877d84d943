"""Document ids of a run that differ from those of gold only by a path prefix."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, islice

import numpy as np
import polars as pl

from karat.arrays import Flags
from karat.data.run import Run
from karat.errors import InputError, counted
from karat.match.gold_index import PreparedGold

HINT = "use the same document ids in gold and run"


@dataclass(frozen=True)
class DocumentIds:
    """The document ids of the whole gold: what a run's ids are compared with, once per run."""

    gold: frozenset[str]
    _by_suffix: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list), repr=False)

    @classmethod
    def of(cls, doc_ids: Iterable[str]) -> DocumentIds:
        """Index the ids by their path suffixes."""
        ids = cls(frozenset(doc_ids))
        for doc_id in sorted(ids.gold):
            for suffix in _suffixes(doc_id):
                ids._by_suffix[suffix].append(doc_id)
        return ids

    def renamed(self, run_ids: Iterable[str]) -> dict[str, str]:
        """Return the gold id for each run id that equals one only up to a path prefix.

        `docs/alder.md` is `alder.md` where no other id of gold fits. An exact match takes
        precedence: a gold id that occurs in the run as it is stands for no other document.
        """
        known = frozenset(run_ids)
        exact = known & self.gold
        renamed: dict[str, str] = {}
        taken: dict[str, str] = {}
        for run_id in sorted(known - exact):
            shorter = [suffix for suffix in _suffixes(run_id) if suffix in self.gold]
            fitting = [*shorter, *self._by_suffix.get(run_id, ())]
            open_ids = [doc_id for doc_id in fitting if doc_id not in exact]
            if not open_ids:
                continue
            if len(fitting) > 1:
                raise InputError(
                    f"document {run_id!r} of the run could be any of "
                    f"{', '.join(map(repr, fitting[:3]))} in gold",
                    field="doc_id",
                    hint=HINT,
                )
            (doc_id,) = open_ids
            if doc_id in taken:
                raise InputError(
                    f"documents {taken[doc_id]!r} and {run_id!r} of the run could both be "
                    f"{doc_id!r} in gold",
                    field="doc_id",
                    hint=HINT,
                )
            renamed[run_id], taken[doc_id] = doc_id, run_id
        return renamed


def _suffixes(doc_id: str) -> Iterator[str]:
    """Yield what remains of an id after each slash."""
    rest = doc_id
    while "/" in rest:
        rest = rest.partition("/")[2]
        if rest:
            yield rest


def with_renamed_documents(table: pl.DataFrame, renamed: Mapping[str, str]) -> pl.DataFrame:
    """Return a table with some document ids replaced."""
    if not renamed or "doc_id" not in table.columns:
        return table
    return table.with_columns(pl.col("doc_id").replace(dict(renamed)))


def document_ids(run: Run) -> list[str]:
    """Return the document ids of a run that places its items in documents."""
    if run.lists is not None or not {"doc_id", "start"} <= set(run.results.columns):
        return []
    return run.results["doc_id"].drop_nulls().unique(maintain_order=True).to_list()


def document_ids_note(renamed: Mapping[str, str]) -> str:
    """Return a sentence about ids that were matched by their path suffix."""
    run_id, gold_id = next(iter(renamed.items()))
    return (
        f"{counted(len(renamed), 'document id')} matched by path suffix, "
        f"such as {run_id!r} in the run with {gold_id!r} in gold"
    )


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
