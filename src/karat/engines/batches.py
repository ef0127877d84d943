"""The engines for runs and gold that are read in parts.

They exceed the memory limit, or are read faster in parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import TypeVar

import numpy as np
import polars as pl

from karat.arrays import Flags, Ints
from karat.data.run import Run
from karat.data.run_source import RunSource
from karat.engines.parts import Engine, OnePart, Part
from karat.match.gold_index import GoldParts, PreparedGold, PreparedParts

Result = TypeVar("Result")
_MISSING_QUERIES = 50_000
"""Queries of gold that are not in the run are scored in groups of this size."""


class Batches:
    """The engine of a run that is read in batches, each with the gold of its queries."""

    def __init__(self, gold: PreparedGold, source: RunSource) -> None:
        self.gold = gold
        self.source = source

    @cached_property
    def _gold_parts(self) -> GoldParts:
        return GoldParts(self.gold)

    def map(self, function: Callable[[Part], Result]) -> Iterator[Result]:
        """Yield the result for each batch, and for the queries that only gold has.

        If a query is in two batches, the function is called for partitions of the run instead, or
        for the whole run if it fits into the memory limit. Therefore, all results are computed
        before the first is yielded.
        """
        try:
            return iter(list(map(function, self._parts())))
        except _RepeatedQueryError as error:
            if not self.source.is_large:
                return iter([function(Part(self.gold, self.source.read()))])
            self.source.partition(error.query)
        try:
            return iter(list(map(function, self._parts())))
        except _RepeatedQueryError as error:
            raise self.source.repeated_query(error.query) from None

    def _parts(self) -> Iterator[Part]:
        seen = _SeenQueries(self._gold_parts)
        run: Run | None = None
        for run in self.source.batches():
            yield Part(self._gold_parts.part(seen.add(run.query_ids)), run)
        assert run is not None, "a file without results is an error"
        empty_run = run.only([])
        missing = np.flatnonzero(~seen.in_gold)
        for start in range(0, missing.size, _MISSING_QUERIES):
            yield Part(self._gold_parts.part(missing[start : start + _MISSING_QUERIES]), empty_run)


class PartitionedBatches:
    """The engine for gold in parts: the run is partitioned in the same way."""

    def __init__(self, gold: PreparedParts, source: RunSource) -> None:
        self.gold = gold
        self.source = source

    def map(self, function: Callable[[Part], Result]) -> Iterator[Result]:
        """Yield the result for each part of the run, and for the queries that only gold has."""
        return map(function, self._parts())

    def _parts(self) -> Iterator[Part]:
        empty_run: Run | None = None
        only_in_gold = []
        for number, runs in enumerate(self.source.partitions(self.gold.n_parts)):
            gold = GoldParts(self.gold.part(number))
            seen = _SeenQueries(gold)
            for run in runs:
                try:
                    queries = seen.add(run.query_ids)
                except _RepeatedQueryError as error:
                    raise self.source.repeated_query(error.query) from None
                empty_run = run.only([]) if empty_run is None else empty_run
                yield Part(gold.part(queries), run)
            missing = np.flatnonzero(~seen.in_gold)
            if missing.size and empty_run is None:
                only_in_gold.append(number)
            elif missing.size and empty_run is not None:
                yield Part(gold.part(missing), empty_run)
        if empty_run is None:
            # The run has no queries. Reading a file without results raises an error.
            empty_run = self.source.read()
        for number in only_in_gold:
            yield Part(self.gold.part(number), empty_run)


def local_engine(gold: PreparedGold, source: RunSource, *, needs_facts: bool) -> Engine:
    """Return the engine of a run in this process: in batches if that is needed, or faster."""
    if isinstance(gold, PreparedParts):
        return PartitionedBatches(gold, source)
    # If facts are needed, batches would be read twice, so a run that fits is read as a whole.
    if source.is_large or (source.is_faster_in_batches and not needs_facts):
        return Batches(gold, source)
    return OnePart(Part(gold, source.read()))


class _RepeatedQueryError(Exception):
    """A query is in two batches."""

    def __init__(self, query: str) -> None:
        super().__init__(query)
        self.query = query


class _SeenQueries:
    """The queries of all batches so far."""

    def __init__(self, gold: GoldParts) -> None:
        self._gold = gold
        self.in_gold: Flags = np.zeros(gold.query_ids.len(), np.bool_)
        self._not_in_gold: set[str] = set()

    def add(self, query_ids: pl.Series) -> Ints:
        """Add the queries of a batch, and return the numbers of those in gold.

        Raise a `_RepeatedQueryError` if a query was added before.
        """
        numbers = self._gold.numbers(query_ids)
        is_known = numbers >= 0
        known, unknown = numbers[is_known], query_ids.filter(~is_known).to_list()
        repeated = self._gold.query_ids.gather(known[self.in_gold[known]]).to_list()
        repeated += self._not_in_gold.intersection(unknown)
        if repeated:
            raise _RepeatedQueryError(repeated[0])
        self.in_gold[known] = True
        self._not_in_gold.update(unknown)
        return known
