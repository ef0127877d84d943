"""Which differences between runs are real, and how that is marked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from string import ascii_letters
from typing import NamedTuple

import polars as pl

from karat.report.comparison import ComparisonSheet, better
from karat.stats.power import ALPHA


class Real(NamedTuple):
    """A difference that is shown: who is better than whom by what."""

    winner: str
    loser: str
    measure: str


def real(sheet: ComparisonSheet) -> Iterator[Real]:
    """Yield the differences whose corrected p is below 0.05, as the pairs stand."""
    known = sheet.pairs.drop_nulls(["p_corrected", "value_a", "value_b"])
    shown = known.filter(pl.col("p_corrected") < ALPHA, pl.col("difference") != 0)
    for a, b, measure, difference in shown.select("a", "b", "measure", "difference").iter_rows():
        b_is_better = better(measure, difference, 0.0)
        yield Real(b, a, measure) if b_is_better else Real(a, b, measure)


def best(measure: str, values: Sequence[float | None]) -> float | None:
    """Return the best of several values, None where there is none."""
    found = None
    for value in values:
        if value is not None and (found is None or better(measure, value, found)):
            found = value
    return found


def letter(at: int) -> str:
    """Return a, b, … z, A, … Z, aa, ab, …."""
    more, last = divmod(at, len(ascii_letters))
    return (letter(more - 1) if more else "") + ascii_letters[last]
