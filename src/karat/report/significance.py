"""Which runs are significantly better than which, and the letters that stand for runs."""

from __future__ import annotations

from collections.abc import Iterator
from string import ascii_letters
from typing import NamedTuple

from karat.report.comparison import ComparisonSheet, mark
from karat.report.tables import BETTER


class SignificantDifference(NamedTuple):
    """A difference that the paired test shows: winner, loser and measure."""

    winner: str
    loser: str
    measure: str


def significant(sheet: ComparisonSheet) -> Iterator[SignificantDifference]:
    """Yield the significant differences, in the order of the pairs."""
    for row in sheet.pairs.iter_rows(named=True):
        if shown := mark(row):
            a, b = row["a"], row["b"]
            winner, loser = (b, a) if shown == BETTER else (a, b)
            yield SignificantDifference(winner, loser, row["measure"])


def letter(at: int) -> str:
    """Return a, b, … z, A, … Z, aa, ab, …."""
    more, last = divmod(at, len(ascii_letters))
    return (letter(more - 1) if more else "") + ascii_letters[last]
