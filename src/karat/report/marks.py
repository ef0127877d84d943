"""Which runs are really better than which, and by what letters they go."""

from __future__ import annotations

from collections.abc import Iterator
from string import ascii_letters
from typing import NamedTuple

from karat.report.comparison import ComparisonSheet, mark
from karat.report.tables import BETTER


class Real(NamedTuple):
    """A difference that is shown: who is better than whom by what."""

    winner: str
    loser: str
    measure: str


def real(sheet: ComparisonSheet) -> Iterator[Real]:
    """Yield the differences that are marked, as the pairs stand."""
    for row in sheet.pairs.iter_rows(named=True):
        if shown := mark(row):
            a, b = row["a"], row["b"]
            winner, loser = (b, a) if shown == BETTER else (a, b)
            yield Real(winner, loser, row["measure"])


def letter(at: int) -> str:
    """Return a, b, … z, A, … Z, aa, ab, …."""
    more, last = divmod(at, len(ascii_letters))
    return (letter(more - 1) if more else "") + ascii_letters[last]
