"""What should have been found of each query, and what became of it in a run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import polars as pl

from karat.arrays import Ints
from karat.evaluation.loaded_run import LoadedRun
from karat.match.numbers import asked
from karat.match.spans import Least
from karat.measures import Measure
from karat.measures.families import FamilyName
from karat.measures.reading import Reading
from karat.report.page.model import Outcomes

ANSWERED, MISSING, FAILED, NOT_AT_HAND = range(4)


@dataclass(frozen=True, eq=False)
class GoldFound:
    """Per query: how much gold wants, how much of it a run found, and the first rank that did."""

    wanted: Ints
    found: Ints
    first: Ints


def first_of_gold(measures: Iterable[Measure]) -> Measure | None:
    """Return the first measure that reads gold: by its kind of gold, queries are told apart."""
    return next((measure for measure in measures if measure.declaration.reads_gold), None)


def gold_found(reading: Reading, family: FamilyName, measure: Measure | None) -> GoldFound:
    """Return what a run found over its whole lists, of one kind of gold.

    What counts as relevant, and how much of a span, is as the measure says, if it does.
    """
    params = {} if measure is None else measure.params
    if family == "rank":
        rel = relevant_from(measure)
        relevant = reading.data.relevant(rel)
        return GoldFound(reading.data.n_relevant(rel), relevant.count, relevant.first_rank)
    pieces = reading.data.pieces
    if family == "span":
        pieces = pieces(params.get("min_overlap", Least()))
    new = pieces.new
    found = np.bincount(new.query, new.grade, new.n_queries).astype(np.int64)
    return GoldFound(pieces.count, found, pieces.covering.first_rank)


def nothing_wanted(n_queries: int) -> GoldFound:
    """Return that nothing is known to be wanted: no measure reads gold."""
    none = np.zeros(n_queries, np.int64)
    return GoldFound(none, none, none)


def relevant_from(measure: Measure | None) -> int:
    """Return the lowest grade that counts as relevant."""
    rel: int = 1 if measure is None else measure.params.get("rel", 1)
    return rel


def outcomes(opened: LoadedRun, held: GoldFound) -> Outcomes:
    """Say what became of each query in a run."""
    query_ids, run = opened.query_ids, opened.run
    present, _ = asked(query_ids, run)
    status = np.where(present, ANSWERED, MISSING)
    if run.errors is not None:
        status[query_ids.is_in(run.errors["query_id"].implode()).to_numpy()] = FAILED
    return Outcomes(
        pl.Series("status", status, pl.UInt8),
        pl.Series("found", held.found, pl.Int32),
        pl.Series("first", held.first, pl.Int32),
    )


def not_at_hand(n_queries: int) -> Outcomes:
    """Say of a run that only its scores are known."""
    none = pl.Series(np.zeros(n_queries, np.int32))
    return Outcomes(pl.Series(np.full(n_queries, NOT_AT_HAND, np.uint8)), none, none)
