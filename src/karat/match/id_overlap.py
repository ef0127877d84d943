"""Compare the ids of gold with those of a run, to explain why nothing matches.

`DocumentIds` finds document ids that differ only by a path prefix, such as `docs/a.md` and `a.md`.
`overlap` and `document_overlap` return which ids of gold occur anywhere in a run.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from heapq import nsmallest
from itertools import chain, islice

import numpy as np
import polars as pl

from karat.arrays import Flags, Ints
from karat.data.run import Run
from karat.errors import InputError, counted
from karat.match.hashed_ids import HashedIds

_HINT = "use the same document ids in gold and run"


@dataclass(frozen=True)
class DocumentIds:
    """All document ids of gold, with an index of their path suffixes."""

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

        `docs/alder.md` is renamed to `alder.md` if no other id of gold fits. Exact matches take
        precedence: a gold id that occurs unchanged in the run is not matched with another id.
        """
        distinct_ids = frozenset(run_ids)
        exact = distinct_ids & self.gold
        renamed: dict[str, str] = {}
        run_id_of: dict[str, str] = {}
        for run_id in sorted(distinct_ids - exact):
            shorter = [suffix for suffix in _suffixes(run_id) if suffix in self.gold]
            candidates = [*shorter, *self._by_suffix.get(run_id, ())]
            if exact.issuperset(candidates):
                continue
            if len(candidates) > 1:
                raise InputError(
                    f"document {run_id!r} of the run matches several documents of gold: "
                    f"{', '.join(map(repr, candidates[:3]))}",
                    field="doc_id",
                    hint=_HINT,
                )
            (doc_id,) = candidates
            if doc_id in run_id_of:
                raise InputError(
                    f"documents {run_id_of[doc_id]!r} and {run_id!r} of the run both match "
                    f"document {doc_id!r} of gold",
                    field="doc_id",
                    hint=_HINT,
                )
            renamed[run_id], run_id_of[doc_id] = doc_id, run_id
        return renamed


def _suffixes(doc_id: str) -> Iterator[str]:
    """Yield the part of an id after each slash."""
    rest = doc_id
    while "/" in rest:
        rest = rest.partition("/")[2]
        if rest:
            yield rest


def with_renamed_documents(table: pl.DataFrame, renamed: Mapping[str, str]) -> pl.DataFrame:
    """Return a table with the renamed ids in its column doc_id."""
    if not renamed or "doc_id" not in table.columns:
        return table
    return table.with_columns(pl.col("doc_id").replace(dict(renamed)))


def document_ids(run: Run) -> list[str]:
    """Return the distinct document ids of a run, or of a part of it."""
    if run.lists is not None or "doc_id" not in run.results.columns:
        return []
    return run.results["doc_id"].drop_nulls().unique(maintain_order=True).to_list()


def document_ids_note(renamed: Mapping[str, str]) -> str:
    """Return a note on the ids that were matched by their path suffix."""
    run_id, gold_id = next(iter(renamed.items()))
    return (
        f"{counted(len(renamed), 'document id')} matched by path suffix, "
        f"such as {run_id!r} in the run with {gold_id!r} in gold"
    )


_EXAMPLES = 3


@dataclass(frozen=True)
class PartOverlap:
    """Which ids of gold occur in a part of a run, without the ids themselves."""

    found: Ints
    """The positions of the ids in those of gold."""
    documents: Ints
    """The positions of ids of gold that are document ids of the part."""
    first_lists: Mapping[str, tuple[str, ...]]
    """Some ids of the part: the first of each list, for the first query ids by bytes."""


@dataclass(frozen=True)
class Overlap:
    """Which ids of gold occur anywhere in a run, or in several runs."""

    ids: pl.Series | HashedIds
    """The ids of gold: of relevant items, or of the documents of spans."""
    found: Flags
    is_document: Flags
    """Which ids of gold are document ids of the run, but not necessarily ids of its items."""
    first_lists: Mapping[str, tuple[str, ...]]
    """Some ids of the run: the first of each list, for the first query ids by bytes."""

    @property
    def sample(self) -> tuple[str, ...]:
        """Some ids of the run, as examples."""
        lists = [self.first_lists[query] for query in sorted(self.first_lists)[:_EXAMPLES]]
        return tuple(dict.fromkeys(chain.from_iterable(lists)))[:_EXAMPLES]

    @classmethod
    def merged(cls, ids: pl.Series | HashedIds, parts: Iterable[PartOverlap]) -> Overlap:
        """Return which ids of gold occur in any part of a run."""
        found: Flags = np.zeros(len(ids), np.bool_)
        is_document: Flags = np.zeros(len(ids), np.bool_)
        first_lists: dict[str, tuple[str, ...]] = {}
        for part in parts:
            found[part.found] = True
            is_document[part.documents] = True
            first_lists.update(part.first_lists)
        return cls(ids, found, is_document, first_lists)

    @property
    def is_small(self) -> bool:
        """Whether fewer than half of the ids of gold occur in a run that is not empty."""
        return bool(self.sample) and bool(2 * np.count_nonzero(self.found) < self.found.size)

    @property
    def has_more_documents(self) -> bool:
        """Whether more ids of gold are document ids of the run than ids of its items."""
        return bool(np.count_nonzero(self.is_document) > np.count_nonzero(self.found))

    def first_ids(self, is_selected: Flags) -> list[str]:
        """Return some of the selected ids of gold, as examples: the first by bytes."""
        if isinstance(self.ids, pl.Series):
            return self.ids.filter(is_selected).head(_EXAMPLES).to_list()
        return self.ids.smallest(is_selected, _EXAMPLES)

    def merge(self, other: Overlap) -> Overlap:
        """Return which ids of gold occur in either run."""
        return Overlap(
            self.ids,
            self.found | other.found,
            self.is_document | other.is_document,
            {**other.first_lists, **self.first_lists},
        )


def overlap(gold_ids: pl.Series | HashedIds, run: Run) -> PartOverlap:
    """Search for each relevant id of gold in the lists of all queries."""
    if isinstance(gold_ids, HashedIds) or run.lists is None:
        first_ids = nsmallest(_EXAMPLES, run.segments.query_ids)
        return PartOverlap(
            np.flatnonzero(_occurs_in(gold_ids, run, "item_id")),
            np.flatnonzero(_occurs_in(gold_ids, run, "doc_id")),
            {query: _first_items(run, query) for query in first_ids},
        )
    relevant = set(gold_ids)
    retrieved: set[str] = set()
    for items_of_query in run.lists.by_query.values():
        retrieved |= relevant.intersection(items_of_query)
    found = np.fromiter((item in retrieved for item in gold_ids), np.bool_, gold_ids.len())
    lists = run.lists.by_query
    first_ids = nsmallest(_EXAMPLES, filter(lists.get, lists))
    return PartOverlap(
        np.flatnonzero(found),
        np.zeros(0, np.int64),
        {query: tuple(islice(dict.fromkeys(lists[query]), _EXAMPLES)) for query in first_ids},
    )


def _occurs_in(gold_ids: pl.Series | HashedIds, run: Run, column: str) -> Flags:
    """Return which ids of gold occur in a column of a run."""
    if column not in run.results.columns:
        return np.zeros(len(gold_ids), np.bool_)
    if isinstance(gold_ids, HashedIds):
        return gold_ids.are_in(run.results[column].drop_nulls())
    gold, retrieved = gold_ids.alias(column).to_frame(), run.results.select(column)
    common = gold.join(retrieved, on=column, how="semi").to_series()
    return gold_ids.is_in(common.implode()).to_numpy()


def _first_items(run: Run, query: str) -> tuple[str, ...]:
    items = run.results.filter(pl.col("query_id") == query)["item_id"]
    return tuple(items.unique(maintain_order=True).head(_EXAMPLES))


def document_overlap(doc_ids: frozenset[str], run_ids: Collection[str]) -> Overlap:
    """Search for each document of gold among the documents of a run."""
    gold_ids = pl.Series("doc_id", sorted(doc_ids), pl.String)
    found = np.fromiter((doc_id in run_ids for doc_id in gold_ids), np.bool_, gold_ids.len())
    return Overlap(gold_ids, found, found, {"": tuple(nsmallest(_EXAMPLES, run_ids))})
