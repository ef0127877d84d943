"""How the value of one query came about, and what changed from one list to another."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

Row = dict[str, Any]
TOP = 20
"""How many ranks are shown whatever stands there; beyond them, only what counts."""
MOST_ROWS = 60


@dataclass(frozen=True)
class Calculation:
    """How the value of one query came about: what the kernel noted, and what it returned."""

    run: str
    value: float | None
    rows: list[Row]
    """The list as far as it counts: rank, item, grade, and what was noted of the place."""
    columns: list[str]
    """What was noted of places, in the order of the kernel; the last is what a place brings."""
    counted: list[int]
    """The ranks that the measure counted."""
    ideal: list[Row]
    missed: list[Row]
    """What the measure would have rewarded, with its rank where it stands too far down."""
    matches: list[Row]
    """For each evidence, what covers it or comes nearest to it."""
    numbers: dict[str, Any]
    remarks: list[str]

    @property
    def picked(self) -> list[Row]:
        """The rows to show: the top of the list, and below it what counts."""
        return [*self.rows[:TOP], *(self.rows[rank - 1] for rank in self.counted_below)]

    @property
    def counted_below(self) -> list[int]:
        """The ranks below the top that are shown since they count."""
        return [rank for rank in self.counted if rank > TOP][: MOST_ROWS - len(self.rows[:TOP])]

    @cached_property
    def brought(self) -> dict[str, float]:
        """What each item brought that counts, over all its places; 1 where nothing says more."""
        brought: dict[str, float] = {}
        for rank in self.counted:
            row = self.rows[rank - 1]
            worth = float(row.get(self.columns[-1]) or 0.0) if self.columns else 1.0
            brought[row["item"]] = brought.get(row["item"], 0.0) + worth
        return brought

    @cached_property
    def ranks(self) -> dict[str, int]:
        """The first rank of each item: of those that count, the first that counts."""
        ranks = {row["item"]: row["rank"] for row in reversed(self.rows)}
        return ranks | {self.rows[rank - 1]["item"]: rank for rank in reversed(self.counted)}


@dataclass(frozen=True)
class Change:
    """Where an item stands in two lists, if it does, and what it brings to each."""

    item: str
    grade: int | None
    rank_a: int | None
    rank_b: int | None
    brought_a: float
    brought_b: float

    @property
    def difference(self) -> float:
        """What the item brings to the second list more than to the first."""
        return self.brought_b - self.brought_a

    @property
    def moved(self) -> bool:
        """Whether the item brings anything at all, and stands or brings otherwise than before."""
        before, after = (self.rank_a, self.brought_a), (self.rank_b, self.brought_b)
        return before != after and (self.brought_a != 0 or self.brought_b != 0)


def changes(first: Calculation, second: Calculation) -> list[Change]:
    """Return every item that counts in either list, the most telling first."""
    grades = {row["item"]: row.get("grade") for c in (first, second) for row in c.rows}
    found = [
        Change(
            item,
            grades[item],
            first.ranks.get(item),
            second.ranks.get(item),
            first.brought.get(item, 0.0),
            second.brought.get(item, 0.0),
        )
        for item in first.brought | second.brought
    ]
    return sorted(found, key=lambda change: (-abs(change.difference), change.item))
