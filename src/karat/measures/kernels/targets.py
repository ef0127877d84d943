"""How well a list covers the pieces of gold: kernels for spans and evidence alike."""

from __future__ import annotations

import numpy as np

from karat.arrays import Floats
from karat.match.hits import RankedRows
from karat.match.targets import Targets
from karat.measures.array_math import discount, divide
from karat.measures.trace import trace_numbers, trace_rows


def reciprocal_rank(pieces: Targets, k: int | None) -> Floats:
    """Return 1 / the rank of the first item that covers a piece, 0 if there is none."""
    found = pieces.covering.within(k)
    first = found.where(found.ordinal == 1)
    trace_rows(first, pieces=first.grade, reciprocal=1.0 / first.rank)
    trace_numbers(first_rank_or_zero=found.first_rank)
    return _where_any(pieces, divide(1.0, found.first_rank))


def success(pieces: Targets, k: int | None) -> Floats:
    """Return 1 if an item of the top k covers a piece, else 0."""
    found = pieces.covering.within(k)
    trace_rows(found, pieces=found.grade)
    return _where_any(pieces, (found.count > 0).astype(np.float64))


def average_precision(pieces: Targets, k: int | None) -> Floats:
    """Return Σ new pieces · ranks so far that brought something new / rank, / pieces."""
    new = pieces.newly_covered.within(k)
    precision = new.ordinal / new.rank
    trace_rows(new, new_pieces=new.grade, precision=precision, product=new.grade * precision)
    total = new.total(new.grade * precision)
    trace_numbers(sum_of_products=total, divided_by=pieces.count)
    return _where_any(pieces, divide(total, pieces.count))


def ndcg(pieces: Targets, k: int | None) -> Floats:
    """Return the DCG of new pieces / that of the ideal order, which a lucky list can pass."""
    reached = _discounted(pieces.newly_covered.within(k))
    best = _discounted(pieces.ideal.within(k), ideal=True)
    trace_numbers(DCG=reached, ideal_DCG=best)
    return _where_any(pieces, np.minimum(divide(reached, best), 1.0))


def _discounted(places: RankedRows, *, ideal: bool = False) -> Floats:
    discounts = discount(places.rank)
    contribution = places.grade / discounts
    columns = {"new_pieces": places.grade, "discount": discounts, "contribution": contribution}
    trace_rows(places, ideal=ideal, **columns)
    return places.total(contribution)


def _where_any(pieces: Targets, values: Floats) -> Floats:
    """Leave out the queries in which there is no piece to cover."""
    return np.where(pieces.count > 0, values, np.nan)
