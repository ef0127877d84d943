"""Comparisons and the choices of what to show of them, whatever shows them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from string import ascii_letters
from typing import Any, NamedTuple

import polars as pl

from karat.errors import counted
from karat.evaluation.comparison import Comparison, Moved, comparison_document, tests
from karat.format import probability
from karat.report.sheet import Sheet
from karat.report.tables import BETTER, WORSE, declaration_of, measure_named
from karat.stats.corrections import TITLES
from karat.stats.inference import FEW_GEOMETRIC
from karat.stats.pairwise import PAIRS
from karat.stats.power import ALPHA

PairRow = dict[str, Any]
"""A row of pairs: a pair of runs, and a measure."""

FEW_PAIRS = 10
"""More pairs are shown below each other, and without the queries that moved."""
_MOVED_SHOWN = 3


@dataclass(frozen=True, eq=False)
class ComparisonSheet:
    """A comparison, and what is shown of it."""

    comparison: Comparison
    n_moved: int | None = None
    """How many queries that rose and that fell are shown of each pair, by the first measure: 3 if
    it is None, or 0 if there are more than 10 pairs."""
    difference: float | None = None
    """Show how many queries it would take to show this difference."""

    def __post_init__(self) -> None:
        _ = self.moved, self.needed  # whatever is wrong is an error before anything is shown

    @cached_property
    def runs(self) -> list[Sheet]:
        """The scores of each run."""
        return [Sheet(score) for score in self.comparison.scores]

    @cached_property
    def moved(self) -> list[Moved]:
        """The queries that moved most."""
        n = self.n_moved
        if n is None:
            n = 0 if self.many else _MOVED_SHOWN
        return self.comparison.moved_queries(n) if n else []

    @cached_property
    def needed(self) -> pl.DataFrame | None:
        """How many queries it would take to show the difference, if that was asked."""
        if self.difference is None:
            return None
        return self.comparison.queries_needed(self.difference)

    @property
    def pairs(self) -> pl.DataFrame:
        """One row per pair and measure."""
        return self.comparison.pairs

    @property
    def groups(self) -> pl.DataFrame | None:
        """One row per pair, measure and group, if there are groups."""
        return self.comparison.groups

    @cached_property
    def names(self) -> list[tuple[str, str]]:
        """The pairs, each as the names of a and b."""
        return self.comparison.pair_names

    @property
    def many(self) -> bool:
        """Whether there are too many pairs to show a table of each."""
        return len(self.names) > FEW_PAIRS

    @property
    def measures(self) -> list[str]:
        """The names of the measures, in the order asked."""
        return self.pairs["measure"].unique(maintain_order=True).to_list()

    def as_dict(self) -> dict[str, Any]:
        """Return what is shown as plain data."""
        return comparison_document(self.comparison, self.moved, self.needed)

    def label(self, measure: str) -> str:
        """Return the name that is printed for a measure."""
        return self.runs[0].label(measure)

    @property
    def group_fields(self) -> list[str]:
        """The fields that the groups are made by."""
        return [] if self.groups is None else [c for c in self.groups.columns if c not in PAIRS]

    def corrects(self, frame: pl.DataFrame) -> bool:
        """Tell whether there is more than one test to correct for."""
        return self.comparison.correction != "none" and tests(frame) > 1

    def remarks(self) -> Iterator[str]:
        """Say of each pair which queries it does not rest on, and what cannot be shown."""
        for a, b in self.names:
            own = self.pairs.filter(pl.col("a") == a, pl.col("b") == b)
            apart = own.filter(pl.col("left_out") > 0)
            for n, part in sorted(apart.partition_by("left_out", as_dict=True).items()):
                labels = ", ".join(map(self.label, part["measure"]))
                named = "" if part.height == own.height else f" of {labels}"
                only = f"{counted(int(n[0]), 'query')} with a value in only one of the two left out"
                yield f"{b} − {a}: {only}{named}"
            yield from self._of_few(a, b, own)
            yield from self._alone(a, b, own)
        yield from self._ratios()
        if any(moved.changes is None for moved in self.moved):
            yield "what changed in lists is not known where scores were given for a run"

    def _of_few(self, a: str, b: str, rows: pl.DataFrame) -> Iterator[str]:
        """State where so few queries differ that no test can show anything."""
        few = rows.filter(pl.col("method") == "few").with_columns(
            differing=pl.col("wins") + pl.col("losses")
        )
        parts = few.partition_by("differing", "n", as_dict=True, maintain_order=True)
        for (differing, n), part in parts.items():
            labels = ", ".join(map(self.label, part["measure"]))
            if differing:
                only = f"only {differing} of {n} queries differ by {labels}"
                yield f"{b} − {a}: {only}, too few to test"
            else:
                yield f"{b} − {a}: no query differs by {labels}"

    def _alone(self, a: str, b: str, rows: pl.DataFrame) -> Iterator[str]:
        """State which differences are significant alone, but not after correction."""
        for row in rows.filter(pl.col("p") < ALPHA, pl.col("p_corrected") >= ALPHA).iter_rows(
            named=True
        ):
            yield f"{b} − {a}, {self.label(row['measure'])}: {self.alone(row)}"

    def alone(self, row: PairRow) -> str:
        """Return the sentence for a difference that is significant only before correction."""
        how = TITLES[self.comparison.correction]
        return (
            f"significant alone (p {probability(row['p'])}), not after {how} over "
            f"{tests(self.pairs):,} pairs (p {probability(row['p_corrected'])})"
        )

    def _ratios(self) -> Iterator[str]:
        """Show differences of geometric means as ratios, with their intervals."""
        for row in self.pairs.drop_nulls("low").iter_rows(named=True):
            if declaration_of(row["measure"]).combine == "geometric" and row["value_a"]:
                ratio, low, high = (
                    1 + row[name] / row["value_a"] for name in ("difference", "low", "high")
                )
                few = "" if row["n"] >= FEW_GEOMETRIC else ", too narrow with so few queries"
                yield (
                    f"{self.label(row['measure'])} of {row['b']} / {row['a']}: {ratio:.3f} "
                    f"[{low:.3f}, {high:.3f}]{few}"
                )


def significance_mark(row: PairRow) -> str:
    """Return the mark of a significant difference: whether b is better or worse."""
    difference, p = row["difference"], row["p_corrected"]
    # Signed ranks may tell runs apart whose means are the same.
    if p is None or p >= ALPHA or not difference:
        return ""
    return BETTER if measure_named(row["measure"]).is_better(difference, 0.0) else WORSE


class SignificantDifference(NamedTuple):
    """A difference that the paired test shows: winner, loser and measure."""

    winner: str
    loser: str
    measure: str


def significant_differences(sheet: ComparisonSheet) -> Iterator[SignificantDifference]:
    """Yield the significant differences, in the order of the pairs."""
    for row in sheet.pairs.iter_rows(named=True):
        if shown := significance_mark(row):
            a, b = row["a"], row["b"]
            winner, loser = (b, a) if shown == BETTER else (a, b)
            yield SignificantDifference(winner, loser, row["measure"])


def run_letter(at: int) -> str:
    """Return a, b, … z, A, … Z, aa, ab, …."""
    more, last = divmod(at, len(ascii_letters))
    return (run_letter(more - 1) if more else "") + ascii_letters[last]
